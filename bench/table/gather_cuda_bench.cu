// Random rows gathered by GPUs, from their own memory and from all GPUs' together.
//
//   gather_cuda_bench [--repetitions=N] [--mib=N] [--json=FILE] [BYTES...]
//
// BYTES: of rows; without any, powers of two from 4 to 4096, and 400. Each GPU holds 8 GiB of rows,
// or a quarter of its free memory if that is less, and gathers N MiB (1024) of rows whose ids are
// uniform. Prints GB/s of results per GPU, of the slowest GPU of a repetition: median (least -
// most): `own`, the first GPU from its own memory while the others rest; and with several GPUs
// `all`, every GPU at once from the memory of all.
//
// With several GPUs, rows of 64 bytes and more are also gathered from all by ids of Zipf's
// distribution with exponent 1 (row k comes up 1 / k times as often as the first): `zipf` as
// before; `distinct`, each distinct remote row once; `hot`, with copies of the hottest hundredth of
// all rows on each GPU; and `both`. A second figure is the share of ids whose rows crossed.
//
// Results are compared first: the exit code is 3 if they differ. One process holds all GPUs. FILE
// (build/bench/gather-N.json, for N GPUs) receives the rates as JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/random.h"
#include "plait/table/cuda/distinct_rows.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/hot_rows.h"

namespace plait {
namespace {

struct Options {
  int repetitions = 15;
  std::uint64_t mib = 1024;
  std::string json;
  std::vector<std::uint64_t> bytes;
};

// A way to gather.
struct Way {
  const char* name;
  bool all = true;  // from the memory of all GPUs, by all
  bool zipf = true, distinct = false, hot = false;
};
constexpr std::array kWays{Way{"own", false, false},
                           Way{"all", true, false},
                           Way{"zipf"},
                           Way{"distinct", true, true, true},
                           Way{"hot", true, true, false, true},
                           Way{"both", true, true, true, true}};

// Returns the row that comes up k-th most often, from 0: hot rows are scattered over all ids.
__host__ __device__ std::uint64_t row_of_place(std::uint64_t k, std::uint64_t rows) {
  constexpr std::uint64_t kPrime = 2147483647;  // more than rows of 64 bytes on 8 GPUs
  return k % rows * kPrime % rows;
}

// The word at a place of the rows of all GPUs, in the order of ids.
__device__ std::uint32_t word_at(std::uint64_t place) {
  return static_cast<std::uint32_t>(place * 0x9E3779B97F4A7C15u >> 32);
}

__global__ void fill(std::uint32_t* words, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += step)
    words[i] = word_at(first + i);
}

// The place k of a row of Zipf's distribution is below x with the share ln(x) / ln(rows).
__global__ void draw_ids(std::uint64_t* ids, std::uint64_t count, std::uint64_t rows,
                         std::uint64_t seed, bool zipf) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const Philox::Block words = Philox(seed)(i);
  const double share = uniform_double(words[0], words[1]);
  const auto place =
      static_cast<std::uint64_t>(exp(share * log(static_cast<double>(rows) + 1))) - 1;
  ids[i] = zipf ? row_of_place(place, rows) : uniform_below(rows, words[0], words[1]);
}

__global__ void count_wrong(const std::uint32_t* found, const std::uint64_t* ids,
                            std::uint64_t count, std::uint64_t words, unsigned long long* wrong) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count * words;
       i += step)
    if (found[i] != word_at(ids[i / words] * words + i % words)) atomicAdd(wrong, 1ull);
}

// One GPU: its rows, the ids that it gathers, and the results.
struct Device {
  Device(int number, int gpus, std::uint64_t row_words, std::uint64_t results) : number_(number) {
    for (int peer = 0; peer < gpus; ++peer)
      if (peer != number) check_cuda(cudaDeviceEnablePeerAccess(peer, 0), "peer access");
    words = DeviceArray<std::uint32_t>(row_words);
    fill<<<4096, 256>>>(words.data(), static_cast<std::uint64_t>(number) * row_words, row_words);
    ids = DeviceArray<std::uint64_t>(results / 4);
    out = DeviceArray<std::byte>(results);
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaDeviceSynchronize(), "rows");
  }
  void use() const { number_.use(); }

 private:
  // This member comes first, so that the others are made on this GPU.
  struct Number {
    int value;
    Number(int number) : value(number) { use(); }  // NOLINT: a number as it is
    void use() const { check_cuda(cudaSetDevice(value), "a GPU"); }
  } number_;

 public:
  DeviceArray<std::uint32_t> words;
  DeviceArray<std::uint64_t> ids;
  DeviceArray<std::byte> out;
  DeviceArray<HotIds> hot_index;  // with the copies, of the way that is measured
  DeviceArray<std::byte> hot_rows;
  std::unique_ptr<GpuDistinctGather> distinct;
  cudaStream_t stream = nullptr;
  DeviceEvent begin, end;
};

class Contest {
 public:
  Contest(int gpus, std::uint64_t results) : results_(results) {
    std::uint64_t least = std::uint64_t{8} << 30;
    for (int r = 0; r < gpus; ++r) {
      use_gpu(r);
      least = std::min(least, gpu_free_memory() / 4);
    }
    constexpr std::uint64_t kWords = 25600;  // whole rows of all sizes that are measured
    words_ = least / 4 / kWords * kWords;
    for (int r = 0; r < gpus; ++r)
      devices_.push_back(std::make_unique<Device>(r, gpus, words_, results));
  }

  // The rates of a way, and the share of ids whose rows crossed.
  struct Measured {
    std::vector<double> rates;
    double crossed = 0;
  };

  // Gathers rows of `bytes`.
  Measured run(std::uint64_t bytes, const Way& way, int repetitions) {
    require<UsageError>(bytes > 0 && bytes % 4 == 0 && words_ * 4 % bytes == 0,
                        "rows of {} bytes; their words must divide {}", bytes, words_);
    const std::size_t gatherers = way.all ? devices_.size() : 1;
    const StoredRows from = rows_of(bytes, words_ * 4 / bytes, gatherers);
    std::vector<GatherRows> args(gatherers);
    for (std::size_t r = 0; r < gatherers; ++r) {
      args[r] = {.from = from,
                 .ids = devices_[r]->ids.data(),
                 .count = results_ / bytes,
                 .width = bytes,
                 .out = devices_[r]->out.data(),
                 .out_stride = bytes};
      args[r].from.own = static_cast<int>(r);
      prepare(*devices_[r], args[r], way, bytes * 64 + r);
    }
    Measured measured;
    for (int k = -2; k < repetitions; ++k) {
      const float slowest = once(args, way);
      if (k == -2) check(args);
      if (k >= 0)
        measured.rates.push_back(static_cast<double>(args[0].count * bytes) / slowest / 1e6);
    }
    std::ranges::sort(measured.rates);
    measured.crossed = crossed_share(args[0], way);
    return measured;
  }

 private:
  // Draws ids, and copies hot rows, which is not measured.
  void prepare(Device& d, GatherRows& args, const Way& way, std::uint64_t seed) {
    d.use();
    draw_ids<<<static_cast<unsigned>((args.count + 255) / 256), 256, 0, d.stream>>>(
        d.ids.data(), args.count, args.from.rows, seed, way.zipf);
    check_cuda(cudaMemsetAsync(d.out.data(), 0xff, d.out.size(), d.stream), "results");
    check_cuda(cudaStreamSynchronize(d.stream), "ids");
    d.hot_index = {}, d.hot_rows = {}, d.distinct = {};
    if (way.hot) copy_hot(d, args);
    if (way.distinct) d.distinct = std::make_unique<GpuDistinctGather>(args.count);
  }
  // Copies those of the hottest hundredth of the rows that are not this GPU's own.
  void copy_hot(Device& d, GatherRows& args) {
    std::vector<std::uint64_t> hot;
    for (std::uint64_t k = 0; k < args.from.rows / 100; ++k) {
      const std::uint64_t id = row_of_place(k, args.from.rows);
      if (crosses(args.from, place_of(args.from, args.from.starts, id))) hot.push_back(id);
    }
    std::ranges::sort(hot);
    d.hot_index = DeviceArray<HotIds>(hot_index(hot, args.from.rows));
    d.hot_rows = DeviceArray<std::byte>(hot.size() * args.width);
    const DeviceArray<std::uint64_t> ids{std::span<const std::uint64_t>(hot)};
    GatherRows copy = args;
    copy.ids = ids.data(), copy.count = hot.size(), copy.out = d.hot_rows.data();
    gpu_gather_rows(copy, d.stream);
    check_cuda(cudaStreamSynchronize(d.stream), "hot rows");
    args.from.hot = d.hot_index.data();
    args.from.base[args.from.ranks] = d.hot_rows.data();
  }
  void gather(Device& d, const GatherRows& args, const Way& way) {
    if (way.distinct)
      d.distinct->gather(args, d.stream);
    else
      gpu_gather_rows(args, d.stream);
  }
  double crossed_share(GatherRows args, const Way& way) {
    Device& d = *devices_[0];
    d.use();
    DeviceArray<GatherCounts> counts{std::vector<GatherCounts>(1)};
    args.counts = counts.data();
    gather(d, args, way);
    return static_cast<double>(counts.to_host()[0].crossed) / static_cast<double>(args.count);
  }
  StoredRows rows_of(std::uint64_t bytes, std::uint64_t rows, std::size_t ranks) const {
    StoredRows all;
    all.stride = bytes, all.rows = rows * ranks, all.ranks = static_cast<int>(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      all.base[r] = reinterpret_cast<const std::byte*>(devices_[r]->words.data());
      all.starts[r + 1] = all.starts[r] + rows;
    }
    return all;
  }
  float once(const std::vector<GatherRows>& args, const Way& way) {
    for (std::size_t r = 0; r < args.size(); ++r) {
      Device& d = *devices_[r];
      d.use();
      d.begin.record(d.stream);
      gather(d, args[r], way);
      d.end.record(d.stream);
    }
    float slowest = 0;
    for (std::size_t r = 0; r < args.size(); ++r)
      slowest = std::max(slowest, devices_[r]->end.since(devices_[r]->begin));
    return slowest;
  }
  void check(const std::vector<GatherRows>& args) {
    for (std::size_t r = 0; r < args.size(); ++r) {
      devices_[r]->use();
      DeviceArray<unsigned long long> wrong{std::vector<unsigned long long>{0}};
      count_wrong<<<4096, 256, 0, devices_[r]->stream>>>(
          reinterpret_cast<const std::uint32_t*>(args[r].out), args[r].ids, args[r].count,
          args[r].width / 4, wrong.data());
      check_cuda(cudaGetLastError(), "comparing");
      require<MismatchError>(wrong.to_host()[0] == 0, "rows of {} bytes differ on GPU {}",
                             args[r].width, r);
    }
  }

  const std::uint64_t results_;
  std::uint64_t words_ = 0;  // of each GPU
  std::vector<std::unique_ptr<Device>> devices_;
};

void run(Options o) {
  require(gpu_count() > 0, "no GPU is there");
  if (o.json.empty()) o.json = "build/bench/gather-" + std::to_string(gpu_count()) + ".json";
  Results results(o.json);
  Contest contest(gpu_count(), o.mib << 20);
  std::printf("GB/s of results per GPU, %d x %s\n", gpu_count(), current_gpu_name().c_str());
  for (const std::uint64_t bytes : o.bytes)
    for (const Way& way : kWays) {
      if ((way.all && gpu_count() == 1) || (way.zipf && bytes < 64)) continue;
      const auto [rates, crossed] = contest.run(bytes, way, o.repetitions);
      std::printf("%5llu B  %-8s %5.0f (%.0f - %.0f)", static_cast<unsigned long long>(bytes),
                  way.name, rates[rates.size() / 2], rates.front(), rates.back());
      if (way.zipf) std::printf("  %.3f crossed", crossed);
      std::printf("\n");
      std::fflush(stdout);
      ResultFields fields = spread_fields(rates, "gb_s");
      if (way.zipf) fields["crossed"] = crossed;
      results.add("gather", {{"gpus", gpu_count()}, {"bytes", bytes}, {"from", way.name}}, fields);
    }
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("--repetitions="))
      o.repetitions = std::stoi(a.substr(14));
    else if (a.starts_with("--mib="))
      o.mib = std::stoull(a.substr(6));
    else if (a.starts_with("--json="))
      o.json = a.substr(7);
    else
      o.bytes.push_back(std::stoull(a));
  }
  if (o.bytes.empty()) o.bytes = {4, 8, 16, 32, 64, 128, 256, 400, 512, 1024, 2048, 4096};
  return o;
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  try {
    plait::run(plait::parse(argc, argv));
  } catch (const plait::Error& error) {
    std::fprintf(stderr, "gather_cuda_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
