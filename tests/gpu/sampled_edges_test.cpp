// All operations over the edges of a sample on the GPU, against the CPU's. Results have the same
// bits each time, and with one stream or two.
#include "plait/aggregate/cuda/sampled_edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/row_stride.h"
#include "tests/support/sampled_edges_case.h"

namespace plait::test {
namespace {

constexpr std::uint64_t kWidths[] = {1, 3, 4, 16, 100, 257};

// Returns the edges in memory of the GPU.
GpuSampledEdges on_gpu(const SampledEdges& edges) {
  struct Arrays {
    DeviceArray<EdgeOffset> offsets;
    DeviceArray<Slot> sources;
    DeviceArray<float> weights;
    DeviceArray<std::uint64_t> vertices;
  };
  const auto put = [](const auto& values) {
    using T = std::remove_cvref_t<decltype(values[0])>;
    return DeviceArray<T>(std::span<const T>(values));
  };
  const auto arrays = std::make_shared<const Arrays>(
      Arrays{put(edges.offsets), put(edges.sources), put(edges.weights), put(edges.vertices)});
  return {.own = edges.offsets.size() - 1,
          .inputs = edges.inputs,
          .edges = edges.sources.size(),
          .offsets = arrays->offsets.data(),
          .sources = arrays->sources.data(),
          .weights = edges.weights.empty() ? nullptr : arrays->weights.data(),
          .vertices = edges.vertices.empty() ? nullptr : arrays->vertices.data(),
          .arrays = arrays};
}

WantsGradients gradients(bool wanted) { return std::make_shared<std::atomic<bool>>(wanted); }

// The same edges on the CPU, and on the GPU three times: planned on another stream, on the same
// one, and on the default one; turned round in advance or for the first gradient.
class Both {
 public:
  explicit Both(const Sampled& s)
      : cpu(make_sample_aggregator(s.edges)), tolerance_(tolerance_of(s.edges)) {
    const SampleStreams streams[] = {
        {aside_.get(), work_.get()}, {work_.get(), work_.get()}, {nullptr, nullptr}};
    bool wanted = true;
    for (const SampleStreams& each : streams)
      gpu_.push_back(make_gpu_sample_aggregator(on_gpu(s.edges), each,
                                                gradients(std::exchange(wanted, false))));
    check_cuda(cudaDeviceSynchronize(), "planning");
  }

  // Calls run(aggregator, results) for all; the arrays of results are `sizes` long. Returns the
  // CPU's results, after it has compared all.
  template <class Run>
  std::vector<std::vector<float>> compare(const std::vector<std::uint64_t>& sizes, Run run) {
    std::vector<std::vector<float>> wanted;
    std::vector<float*> at;
    for (const std::uint64_t size : sizes) wanted.emplace_back(size, -7.0f);
    for (auto& values : wanted) at.push_back(values.data());
    run(*cpu, at, [](const std::vector<float>& v) { return v.data(); });

    std::vector<std::vector<float>> first;
    for (const auto& aggregator : gpu_) {
      std::vector<DeviceArray<float>> there, arguments;
      std::vector<float*> places;
      for (const std::uint64_t size : sizes)
        there.emplace_back(std::span<const float>(std::vector<float>(size, -7.0f)));
      for (auto& values : there) places.push_back(values.data());
      run(*aggregator, places, [&](const std::vector<float>& v) -> const float* {
        return arguments.emplace_back(std::span<const float>(v)).data();
      });
      for (std::size_t k = 0; k < there.size(); ++k) {
        const std::vector<float> found = there[k].to_host();
        expect_near(found, wanted[k], k);
        if (first.size() <= k)
          first.push_back(found);
        else
          EXPECT_TRUE(found.empty() ||
                      std::memcmp(found.data(), first[k].data(), found.size() * 4) == 0)
              << "result " << k << " has other bits again";
      }
    }
    return wanted;
  }

  const std::unique_ptr<Aggregator> cpu;

 private:
  // The more edges a row or a column has, the more its sums may differ.
  static double tolerance_of(const SampledEdges& edges) {
    std::vector<double> columns(edges.inputs + 1);
    for (const Slot column : edges.sources) ++columns[column];
    double most = *std::ranges::max_element(columns);
    for (std::size_t i = 0; i + 1 < edges.offsets.size(); ++i)
      most = std::max(most, static_cast<double>(edges.offsets[i + 1] - edges.offsets[i]));
    return 1e-4 + 3e-6 * std::sqrt(most);
  }
  void expect_near(const std::vector<float>& found, const std::vector<float>& wanted,
                   std::size_t number) const {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], tolerance_ * (1 + std::abs(double{wanted[i]})))
          << "result " << number << ", at " << i;
  }

  double tolerance_;
  GpuStream aside_, work_;
  std::vector<std::unique_ptr<Aggregator>> gpu_;
};

void check_sums(Both& both, const Sampled& s, std::uint64_t width, std::mt19937& random) {
  const std::uint64_t own = both.cpu->own(), inputs = both.cpu->inputs();
  const auto x = random_floats(random, inputs * width), dy = random_floats(random, own * width);
  both.compare({own * width, inputs * width}, [&](Aggregator& a, const auto& out, auto&& in) {
    const auto factors = [&](const std::vector<float>& v) { return v.empty() ? nullptr : in(v); };
    const Scaling scaling{factors(s.pre), factors(s.post), s.weighted};
    a.forward(scaling, in(x), out[0], width);
    a.backward(scaling, in(dy), out[1], width);
  });
}

// Values are few, so that edges tie.
void check_extrema(Both& both, std::uint64_t width, Extremum which, std::mt19937& random) {
  const std::uint64_t own = both.cpu->own(), inputs = both.cpu->inputs(), half = row_stride(width);
  std::vector<float> x(inputs * width);
  for (float& value : x) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  const auto found =
      both.compare({own * width, own * width}, [&](Aggregator& a, const auto& out, auto&& in) {
        a.over_edges(in(x),
                     ExtremumForward{
                         .edges = {}, .width = width, .y = out[0], .ties = out[1], .which = which});
      });
  std::vector<float> moved(own * 2 * half, 1e30f);
  for (std::uint64_t i = 0; i < own; ++i)
    for (std::uint64_t c = 0; c < width; ++c) {
      moved[i * 2 * half + c] = found[0][i * width + c];
      moved[i * 2 * half + half + c] = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8;
    }
  both.compare({inputs * width}, [&](Aggregator& a, const auto& out, auto&& in) {
    a.over_edges(in(moved),
                 ExtremumBackward{.edges = {}, .width = width, .x = in(x), .dx = out[0]});
  });
}

void check_attention(Both& both, const AttentionShape& shape, float p, std::mt19937& random) {
  const std::uint64_t own = both.cpu->own(), inputs = both.cpu->inputs(), wide = shape.width();
  const Dropout dropout(5, p);
  const AttentionDropout dropped{.step = {&dropout, 7, 2}};
  const std::uint64_t forward = shape.forward_width(), backward = shape.backward_width();
  const auto rows = random_floats(random, inputs * forward),
             t = random_floats(random, own * shape.heads);
  const std::uint64_t heads = own * shape.heads;
  const auto found = both.compare({own * wide, own * wide, heads, heads},
                                  [&](Aggregator& a, const auto& out, auto&& in) {
                                    a.over_edges(in(rows), AttentionForward{.edges = {},
                                                                            .shape = shape,
                                                                            .dropout = dropped,
                                                                            .t = in(t),
                                                                            .y = out[0],
                                                                            .u = out[1],
                                                                            .b = out[2],
                                                                            .norm = out[3]});
                                  });
  auto moved = random_floats(random, own * backward);
  for (std::uint64_t i = 0; i < heads; ++i) {
    float* const tail = &moved[i / shape.heads * backward + shape.tail() + i % shape.heads];
    tail[0] = t[i];
    tail[shape.heads] = found[3][i];
  }
  const auto h = random_floats(random, inputs * wide);
  std::vector<float> s(inputs * shape.heads);
  for (std::uint64_t i = 0; i < s.size(); ++i)
    s[i] = rows[i / shape.heads * forward + shape.tail() + i % shape.heads];
  both.compare({inputs * wide, s.size()}, [&](Aggregator& a, const auto& out, auto&& in) {
    a.over_edges(in(moved), AttentionBackward{.edges = {},
                                              .shape = shape,
                                              .dropout = dropped,
                                              .h = in(h),
                                              .s = in(s),
                                              .h_stride = wide,
                                              .s_stride = shape.heads,
                                              .dh = out[0],
                                              .ds = out[1]});
  });
}

void check_all(Sampled s, std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << s.edges.offsets.size() - 1 << " rows, " << s.edges.inputs
                                  << " inputs, " << s.edges.sources.size() << " edges");
  std::mt19937 random(static_cast<unsigned>(seed));
  for (std::uint64_t i = 0; i < s.edges.inputs; ++i) s.edges.vertices.push_back(i * 7 + 3);
  Both both(s);
  for (const std::uint64_t width : kWidths) {
    SCOPED_TRACE(testing::Message() << "width " << width);
    check_sums(both, s, width, random);
    check_extrema(both, width, width % 2 == 0 ? Extremum::greatest : Extremum::least, random);
  }
  check_attention(both, {.heads = 1, .features = 16}, 0, random);
  check_attention(both, {.heads = 4, .features = 8}, 0.5f, random);
  check_attention(both, {.heads = 3, .features = 5}, 0.25f, random);
}

// Returns a sample whose rows have few edges, except for some hubs that read, or are read by,
// thousands.
Sampled sample_with_hubs(std::mt19937& random, std::uint64_t own, std::uint64_t inputs) {
  Sampled s;
  s.edges.inputs = inputs;
  for (std::uint64_t i = 0; i < own; ++i) {
    const std::uint64_t degree = i % 100 == 7 ? 5000 : random() % 16;
    for (std::uint64_t e = 0; e < degree; ++e)
      s.edges.sources.push_back(static_cast<Slot>(random() % 4 == 0 ? 11 : random() % inputs));
    s.edges.offsets.push_back(s.edges.sources.size());
  }
  s.edges.weights = random_floats(random, s.edges.sources.size());
  s.pre = random_floats(random, inputs);
  s.post = random_floats(random, own);
  return s;
}

TEST(SampledEdgesCuda, RandomSamplesAreAsOnTheCpu) {
  std::mt19937 random(3);
  check_all(random_sample(random, 300, 900), 1);
  check_all(random_sample(random, 1, 1), 2);
  Sampled plain = random_sample(random, 50, 50);
  plain.pre = plain.post = plain.edges.weights = {};
  check_all(plain, 3);
  Sampled unweighted = random_sample(random, 40, 41);
  unweighted.weighted = false;
  check_all(unweighted, 4);
  Sampled one_side = random_sample(random, 2000, 3000);
  one_side.pre = {};
  check_all(one_side, 5);
}

TEST(SampledEdgesCuda, HubsAreCut) {
  std::mt19937 random(4);
  check_all(sample_with_hubs(random, 250, 1000), 1);
  check_all(sample_with_hubs(random, 5000, 12000), 2);
}

TEST(SampledEdgesCuda, RowsAndEdgesMayBeMissing) {
  check_all({}, 1);  // a rank without examples
  Sampled no_edges;
  no_edges.edges = {
      .offsets = {0, 0, 0}, .sources = {}, .weights = {}, .inputs = 5, .vertices = {}};
  check_all(no_edges, 2);
}

TEST(SampledEdgesCuda, ManyBatchesShareThePool) {
  std::mt19937 random(5);
  const GpuStream aside, work;
  const Sampled s = random_sample(random, 500, 2000);
  const auto x = random_floats(random, 2000 * 20);
  const DeviceArray<float> x_there{std::span<const float>(x)};
  std::vector<float> wanted(500 * 20);
  make_sample_aggregator(s.edges)->forward({}, x.data(), wanted.data(), 20);
  std::vector<DeviceArray<float>> results;
  for (int batch = 0; batch < 50; ++batch) {
    const auto gpu = make_gpu_sample_aggregator(on_gpu(s.edges), {aside.get(), work.get()},
                                                gradients(batch % 2 == 0));
    DeviceEvent planned;
    planned.record(aside.get());
    check_cuda(cudaStreamWaitEvent(work.get(), planned.get()), "waiting");
    gpu->forward({}, x_there.data(), results.emplace_back(wanted.size()).data(), 20);
  }
  for (const auto& result : results) {
    const std::vector<float> found = result.to_host();
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5) << i;
  }
}

// A room on a stream of its own, with samples that move in.
class Room {
 public:
  explicit Room(std::span<const Sampled> samples) {
    std::vector<SampleCounts> seen;
    for (const Sampled& s : samples) {
      made_.push_back(make_gpu_sample_aggregator(on_gpu(s.edges), {stream_.get(), stream_.get()},
                                                 gradients(true)));
      seen.push_back(sample_counts(*made_.back()));
    }
    const std::array rooms{room_for(seen)};
    room_ = std::move(make_gpu_sample_rooms(rooms, stream_.get())[0]);
  }

  // Moves sample `number` in and returns the room.
  Aggregator& with(std::size_t number) {
    EXPECT_TRUE(fits(sample_counts(*made_[number]), counts()));
    std::vector<PaddedCopy> copies;
    move_in(*made_[number], *room_, copies);
    gpu_copy_padded(copies, stream_.get());
    return *room_;
  }
  // The room's counts, in which one partial sum is no row's.
  SampleCounts counts() const { return sample_counts(*room_); }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_.get()), "a room"); }

 private:
  GpuStream stream_;
  std::vector<std::unique_ptr<Aggregator>> made_;
  std::unique_ptr<Aggregator> room_;
};

// Calls run(aggregator, in, out): in(values, rows of the room) and out(rows, rows of the room) give
// arrays where the aggregator is. Compares results, and requires zeros behind them.
template <class Run>
void compare_in_room(Aggregator& room, Aggregator& cpu, const Room& of, Run run) {
  std::vector<std::vector<float>> wanted;
  std::vector<DeviceArray<float>> arguments, found;
  run(
      cpu, [](const std::vector<float>& v, std::uint64_t) { return v.data(); },
      [&](std::uint64_t count, std::uint64_t) { return wanted.emplace_back(count, -7.0f).data(); });
  run(
      room,
      [&](std::vector<float> v, std::uint64_t most) -> const float* {
        v.resize(most, 3.0f);  // rows that are none
        return arguments.emplace_back(std::span<const float>(v)).data();
      },
      [&](std::uint64_t, std::uint64_t most) {
        return found.emplace_back(std::span<const float>(std::vector<float>(most, -7.0f))).data();
      });
  of.wait();
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    const std::vector<float> here = found[r].to_host();
    for (std::size_t i = 0; i < here.size(); ++i) {
      const float there = i < wanted[r].size() ? wanted[r][i] : 0;
      ASSERT_NEAR(here[i], there, 1e-3 * (1 + std::abs(there))) << "result " << r << ", at " << i;
    }
  }
}

TEST(SampledEdgesCuda, RoomsGiveTheResultsOfEachSample) {
  std::mt19937 random(6);
  std::vector<Sampled> samples{sample_with_hubs(random, 3000, 12000),
                               sample_with_hubs(random, 250, 1000)};
  samples.push_back(random_sample(random, 40, 60));
  for (Sampled& s : samples)
    for (std::uint64_t i = 0; i < s.edges.inputs; ++i) s.edges.vertices.push_back(i * 7 + 3);
  Room room(samples);
  const SampleCounts most = room.counts();
  for (const std::size_t number : std::initializer_list<std::size_t>{0, 1, 2, 1, 0}) {
    SCOPED_TRACE(testing::Message() << "sample " << number);
    const Sampled& s = samples[number];
    const auto cpu = make_sample_aggregator(s.edges);
    Aggregator& here = room.with(number);
    const std::uint64_t own = cpu->own(), inputs = cpu->inputs();
    for (const std::uint64_t width : std::initializer_list<std::uint64_t>{1, 16, 100}) {
      const auto x = random_floats(random, inputs * width), dy = random_floats(random, own * width);
      compare_in_room(here, *cpu, room, [&](Aggregator& a, auto in, auto out) {
        const Scaling scaling{in(s.pre, most.inputs), in(s.post, most.own), true};
        a.forward(scaling, in(x, most.inputs * width), out(own * width, most.own * width), width);
        a.backward(scaling, in(dy, most.own * width), out(inputs * width, most.inputs * width),
                   width);
      });
      compare_in_room(here, *cpu, room, [&](Aggregator& a, auto in, auto out) {
        a.over_edges(in(x, most.inputs * width),
                     ExtremumForward{.edges = {},
                                     .width = width,
                                     .y = out(own * width, most.own * width),
                                     .ties = out(own * width, most.own * width)});
      });
    }
    const AttentionShape shape{.heads = 4, .features = 8};
    const Dropout dropout(5, 0.5f);
    const std::uint64_t width = shape.forward_width(), wide = shape.width(), heads = shape.heads;
    const auto rows = random_floats(random, inputs * width), t = random_floats(random, own * heads);
    compare_in_room(here, *cpu, room, [&](Aggregator& a, auto in, auto out) {
      a.over_edges(in(rows, most.inputs * width),
                   AttentionForward{.edges = {},
                                    .shape = shape,
                                    .dropout = {.step = {&dropout, 7, 2}},
                                    .t = in(t, most.own * heads),
                                    .y = out(own * wide, most.own * wide),
                                    .u = out(own * wide, most.own * wide),
                                    .b = out(own * heads, most.own * heads),
                                    .norm = out(own * heads, most.own * heads)});
    });
  }
}

TEST(SampledEdgesCuda, CountsAndWeightsAreOfOwnRows) {
  const auto wanted = gradients(false);
  const auto sample = make_gpu_sample_aggregator(on_gpu({.offsets = {0, 2, 2},
                                                         .sources = {1, 2},
                                                         .weights = {0.5f, 2},
                                                         .inputs = 3,
                                                         .vertices = {}}),
                                                 {}, wanted);
  EXPECT_EQ(sample->own(), 2u);
  EXPECT_EQ(sample->inputs(), 3u);
  EXPECT_EQ(sample->edges(), 2u);
  EXPECT_EQ(sample->edge_counts(), (std::vector<float>{2, 0}));
  EXPECT_EQ(std::vector<float>(sample->degree().begin(), sample->degree().end()),
            (std::vector<float>{2.5f, 0}));
  EXPECT_FALSE(wanted->load());
  const DeviceArray<float> dy(std::vector<float>{1, 1});
  DeviceArray<float> dx(3);
  sample->backward({}, dy.data(), dx.data(), 1);
  EXPECT_TRUE(wanted->load());  // later batches turn their edges round in advance
  EXPECT_EQ(dx.to_host(), (std::vector<float>{0, 1, 1}));
}

}  // namespace
}  // namespace plait::test
