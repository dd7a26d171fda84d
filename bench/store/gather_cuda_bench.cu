// Random rows gathered by GPUs, from their own memory and from all GPUs' together.
//
//   gather_cuda_bench [--repetitions=N] [--mib=N] [--json=FILE] [BYTES...]
//
// BYTES: of rows; without any, powers of two from 4 to 4096, and 400. Each GPU holds 8 GiB of rows,
// or a quarter of its free memory if that is less, and gathers N MiB (1024) of rows whose ids are
// uniform. Prints GB/s of results per GPU, of the slowest GPU of a repetition: median (least -
// most): `own`, the first GPU from its own memory while the others rest; and with several GPUs
// `all`, every GPU at once from the memory of all. Results are compared first: the exit code is 3
// if they differ. One process holds all GPUs. FILE (build/bench/gather-N.json, for N GPUs) receives
// the rates as JSON.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/random.h"
#include "plait/store/cuda/gather_rows.h"

namespace plait {
namespace {

struct Options {
  int repetitions = 15;
  std::uint64_t mib = 1024;
  std::string json;
  std::vector<std::uint64_t> bytes;
};

// The word at a place of the rows of all GPUs, in the order of ids.
__device__ std::uint32_t word_at(std::uint64_t place) {
  return static_cast<std::uint32_t>(place * 0x9E3779B97F4A7C15u >> 32);
}

__global__ void fill(std::uint32_t* words, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += step)
    words[i] = word_at(first + i);
}

__global__ void draw_ids(std::uint64_t* ids, std::uint64_t count, std::uint64_t rows,
                         std::uint64_t seed) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const Philox::Block words = Philox(seed)(i);
  ids[i] = uniform_below(rows, words[0], words[1]);
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

  // Rows of `bytes`, gathered by the first GPU from itself, or by all from all.
  std::vector<double> run(std::uint64_t bytes, bool all, int repetitions) {
    require<UsageError>(bytes > 0 && bytes % 4 == 0 && words_ * 4 % bytes == 0,
                        "rows of {} bytes; their words must divide {}", bytes, words_);
    const std::uint64_t rows = words_ * 4 / bytes, count = results_ / bytes;
    const std::size_t gatherers = all ? devices_.size() : 1;
    std::vector<GatherRows> args(gatherers);
    for (std::size_t r = 0; r < gatherers; ++r) {
      Device& d = *devices_[r];
      d.use();
      args[r] = {.from = rows_of(bytes, rows, gatherers),
                 .ids = d.ids.data(),
                 .count = count,
                 .width = bytes,
                 .out = d.out.data(),
                 .out_stride = bytes};
      draw_ids<<<static_cast<unsigned>((count + 255) / 256), 256, 0, d.stream>>>(
          d.ids.data(), count, args[r].from.rows, bytes * 64 + r);
      check_cuda(cudaMemsetAsync(d.out.data(), 0xff, d.out.size(), d.stream), "results");
      check_cuda(cudaStreamSynchronize(d.stream), "ids");
    }
    std::vector<double> rates;
    for (int k = -2; k < repetitions; ++k) {
      const float slowest = once(args);
      if (k == -2) check(args);
      if (k >= 0) rates.push_back(static_cast<double>(count * bytes) / slowest / 1e6);
    }
    std::ranges::sort(rates);
    return rates;
  }

 private:
  StoredRows rows_of(std::uint64_t bytes, std::uint64_t rows, std::size_t ranks) const {
    StoredRows all;
    all.stride = bytes, all.rows = rows * ranks, all.ranks = static_cast<int>(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      all.base[r] = reinterpret_cast<const std::byte*>(devices_[r]->words.data());
      all.starts[r + 1] = all.starts[r] + rows;
    }
    return all;
  }
  float once(const std::vector<GatherRows>& args) {
    for (std::size_t r = 0; r < args.size(); ++r) {
      Device& d = *devices_[r];
      d.use();
      d.begin.record(d.stream);
      gpu_gather_rows(args[r], d.stream);
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
    for (const bool all : {false, true}) {
      if (all && gpu_count() == 1) continue;
      const std::vector<double> rates = contest.run(bytes, all, o.repetitions);
      const char* name = all ? "all" : "own";
      std::printf("%5llu B  %-4s %5.0f (%.0f - %.0f)\n", static_cast<unsigned long long>(bytes),
                  name, rates[rates.size() / 2], rates.front(), rates.back());
      std::fflush(stdout);
      results.add("gather", {{"gpus", gpu_count()}, {"bytes", bytes}, {"from", name}},
                  spread_fields(rates, "gb_s"));
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
