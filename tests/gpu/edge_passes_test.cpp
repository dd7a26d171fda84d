// Attention and extrema over several ranks, done in passes while rows arrive, against the reference
// on the whole graph. Ranks share GPUs where there are fewer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plait/base/gpu.h"
#include "tests/gpu/aggregate_checks.h"
#include "tests/support/attention_case.h"
#include "tests/support/extremum_case.h"

namespace plait::test {
namespace {

// The passes of a run: shares of the halo, or none for those that the schedule has.
const std::vector<std::vector<double>> kShares{{}, {1}, {0.1, 0.4, 0.5, 0.95}};

// One rank's part of a case: an aggregator, and arrays on its GPU.
class Part {
 public:
  Part(World& world, const BothWays& graph, PartitionScheme scheme,
       const std::vector<double>& shares)
      : rank_(world.rank()),
        name_(fmt::format("{} vertices, {}, {} cuts", graph.graph.vertices(), to_string(scheme),
                          shares.size())),
        partition_(make_partition(scheme, graph.graph, world.size())),
        aggregator_(make_gpu_aggregator(world, graph.graph, false, partition_,
                                        {.route = {.strategy = Strategy::pipelined},
                                         .shards = {.slot_vertices = true},
                                         .max_width = 264,
                                         .tuning = {.pass_shares = shares}})) {}

  const std::string& name() const { return name_; }
  DeviceArray<float> own(const std::vector<float>& values, std::uint64_t width) const {
    return DeviceArray<float>(std::span<const float>(own_part(values, partition_, rank_, width)));
  }
  DeviceArray<float> filled(std::uint64_t width) const {
    return DeviceArray<float>(std::vector<float>(aggregator_->own() * width, -7.0f));
  }
  // Runs it twice, and checks that `results` have the same bits again.
  void run(const DeviceArray<float>& rows, const EdgeOperation& operation,
           const std::vector<const DeviceArray<float>*>& results, const std::string& name) {
    std::vector<std::vector<float>> first;
    for (int run = 0; run < 2; ++run) {
      aggregator_->over_edges(rows.data(), operation);
      aggregator_->cost();  // waits, and throws if a wait has failed
      for (std::size_t k = 0; k < results.size(); ++k) {
        const std::vector<float> now = results[k]->to_host();
        if (run == 0)
          first.push_back(now);
        else
          expect(now.empty() || std::memcmp(now.data(), first[k].data(), now.size() * 4) == 0,
                 name + ": not the same bits again");
      }
    }
  }
  // `expected`: of all vertices. NaN counts as equal to NaN.
  void expect_near(const DeviceArray<float>& found, const std::vector<float>& expected,
                   std::uint64_t width, double tolerance, const std::string& name) const {
    const std::vector<float> wanted = own_part(expected, partition_, rank_, width),
                             values = found.to_host();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool same =
          values[i] == wanted[i] || (values[i] != values[i] && wanted[i] != wanted[i]);
      if (same || std::abs(values[i] - wanted[i]) <= tolerance) continue;
      expect(false, fmt::format("{}: row {} column {} is {}, not {}", name, i / width, i % width,
                                values[i], wanted[i]));
    }
  }

 private:
  int rank_;
  std::string name_;
  Partition partition_;
  std::unique_ptr<GpuAggregator> aggregator_;
};

void check_attention(Part& part, const BothWays& graph, const AttentionCase::Options& options) {
  const AttentionShape& shape = options.shape;
  AttentionCase c(graph, options);
  for (std::size_t i = 0; i < c.ids.size(); ++i) c.ids[i] = i;
  const AttentionOut expected = c.reference();
  const std::vector<float> backward_rows =
      c.backward_rows(expected, shape.backward_width() - shape.tail() - 3 * shape.heads);
  const AttentionGradient gradient = c.reference_gradient(backward_rows);
  const double tolerance =
      1e-4 * std::sqrt(static_cast<double>(shape.features)) / (1 - double{options.p});

  const std::string name = fmt::format("{}: attention, {} heads of {}, p {}", part.name(),
                                       shape.heads, shape.features, options.p);
  const DeviceArray<float> x = part.own(c.x, c.stride), t = part.own(c.t, shape.heads);
  DeviceArray<float> y = part.filled(shape.width()), u = part.filled(shape.width()),
                     b = part.filled(shape.heads), norm = part.filled(shape.heads),
                     inferred = part.filled(shape.width());
  AttentionForward forward{.edges = {},
                           .shape = shape,
                           .dropout = {.step = c.which_dropped().step},
                           .t = t.data(),
                           .y = inferred.data()};
  part.run(x, forward, {&inferred}, name);
  part.expect_near(inferred, expected.y, shape.width(), tolerance, name + ", inferred");
  forward.y = y.data();
  forward.u = u.data();
  forward.b = b.data();
  forward.norm = norm.data();
  part.run(x, forward, {&y, &u, &b, &norm}, name);
  part.expect_near(y, expected.y, shape.width(), tolerance, name + ", y");
  part.expect_near(u, expected.u, shape.width(), tolerance, name + ", u");
  part.expect_near(b, expected.b, shape.heads, tolerance, name + ", b");
  part.expect_near(norm, expected.norm, shape.heads, tolerance, name + ", norm");

  const DeviceArray<float> rows = part.own(backward_rows, shape.backward_width()),
                           h = part.own(c.h, shape.width()), s = part.own(c.s, shape.heads);
  DeviceArray<float> dh = part.filled(shape.width()), ds = part.filled(shape.heads);
  part.run(rows,
           AttentionBackward{.edges = {},
                             .shape = shape,
                             .dropout = forward.dropout,
                             .h = h.data(),
                             .s = s.data(),
                             .h_stride = shape.width(),
                             .s_stride = shape.heads,
                             .dh = dh.data(),
                             .ds = ds.data()},
           {&dh, &ds}, name);
  part.expect_near(dh, gradient.dh, shape.width(), tolerance, name + ", dh");
  part.expect_near(ds, gradient.ds, shape.heads, tolerance, name + ", ds");
}

// Extrema and, of these values, sums of gradients are exact.
void check_extremum(Part& part, const BothWays& graph, std::uint64_t width) {
  const std::string name = fmt::format("{}: extremum, width {}", part.name(), width);
  for (const Extremum which : {Extremum::greatest, Extremum::least}) {
    const ExtremumCase c = ExtremumCase(graph, width, 0, width % 2 == 1).of(which);
    std::vector<float> y, ties, dx;
    apply_reference(c.forward(y, ties));
    const std::uint64_t row_width = 2 * row_stride(width);
    const std::vector<float> rows = c.backward_rows(y);
    apply_reference(c.backward(rows, c.own_rows(), dx));

    const DeviceArray<float> x = part.own(c.x, width), backward = part.own(rows, row_width);
    DeviceArray<float> found = part.filled(width), found_ties = part.filled(width),
                       found_dx = part.filled(width);
    ExtremumForward forward{
        .edges = {}, .width = width, .y = found.data(), .ties = nullptr, .which = which};
    part.run(x, forward, {&found}, name);
    part.expect_near(found, y, width, 0, name + ", without ties");
    forward.ties = found_ties.data();
    part.run(x, forward, {&found, &found_ties}, name);
    part.expect_near(found, y, width, 0, name);
    part.expect_near(found_ties, ties, width, 0, name + ", ties");
    part.run(backward,
             ExtremumBackward{.edges = {}, .width = width, .x = x.data(), .dx = found_dx.data()},
             {&found_dx}, name);
    part.expect_near(found_dx, dx, width, 0, name + ", gradient");
  }
}

const std::vector<AttentionShape> kShapes{{1, 1},  {1, 3}, {2, 47}, {1, 64},
                                          {3, 65}, {8, 8}, {2, 128}};

void check_graph(World& world, const BothWays& graph) {
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash})
    for (const std::vector<double>& shares : kShares) {
      Part part(world, graph, scheme, shares);
      for (const AttentionShape& shape : kShapes) {
        const std::uint64_t padding = shape.forward_width() - shape.tail() - shape.heads;
        for (const float p : {0.0f, 0.5f})
          check_attention(part, graph, {.shape = shape, .p = p, .padding = padding});
      }
      for (const std::uint64_t width : {1, 3, 47, 64, 65, 128}) check_extremum(part, graph, width);
    }
}

const RankProgram kPasses("gpu passes over edges", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  check_graph(world, random_both_ways(90, 700, 5));
  check_graph(world, random_both_ways(300, 200, 6));  // most rows are empty
  for (const bool inwards : {false, true})            // a hub that is cut
    check_graph(world, star_both_ways(2001, inwards));
});

// Small enough for compute-sanitizer, under which each wait between GPUs takes long.
const RankProgram kFewPasses("gpu few passes over edges", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const BothWays graph = star_both_ways(901, true);
  Part part(world, graph, PartitionScheme::hash, kShares[2]);
  check_attention(part, graph, {.shape = {2, 65}, .p = 0.5f, .padding = 2});
  check_extremum(part, graph, 65);
});

TEST(GpuEdgePasses, MatchTheReferenceOnSeveralRanks) { expect_on_ranks("gpu passes over edges"); }

TEST(GpuEdgePasses, FewOnTwoRanks) {
  const Outcome outcome =
      run_job({.program = "gpu few passes over edges", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
