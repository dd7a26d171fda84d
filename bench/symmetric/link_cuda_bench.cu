// Times blocks that cross from GPU to GPU by copy engines, all GPUs at once, each to all others.
//
//   link_cuda_bench [--repetitions=N] [--json=FILE] [MB...]
//
// Prints GB/s per GPU, of the slowest GPU of a repetition: median (least - most). FILE
// (build/bench/link-N.json, for N GPUs) receives the rates as JSON.
//   ring      rank r pushes to r + 1, then r + 2, ...: at any time each GPU receives from one other
//   in four   the same, each block in four copies
//   at once   a stream a target, all together
//   pull      rank r fetches from r + 1, then r + 2, ...
// One process holds all GPUs; a kernel holds the copies back until all are enqueued.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"

namespace plait {
namespace {

enum class Way { ring, in_four, at_once, pull };
constexpr const char* kNames[] = {"ring", "in four", "at once", "pull"};

// The kernel waits for 5 s at most.
__global__ void hold(const volatile int* go) {
  for (int k = 0; *go == 0 && k < 5'000'000; ++k) __nanosleep(1000);
}

// One GPU: a block to send, room for one block of each other GPU, and one stream per target.
struct Gpu {
  Gpu(int number, int gpus, std::size_t bytes) : number_(number) {
    for (int peer = 0; peer < gpus; ++peer)
      if (peer != number) check_cuda(cudaDeviceEnablePeerAccess(peer, 0), "peer access");
    block = DeviceArray<char>(bytes);
    received = DeviceArray<char>(bytes * static_cast<std::size_t>(gpus));
    check_cuda(cudaMemset(block.data(), number + 1, bytes), "a block");
    streams.resize(static_cast<std::size_t>(gpus));
    for (cudaStream_t& stream : streams)
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    check_cuda(cudaDeviceSynchronize(), "a block");
  }
  void use() const { number_.use(); }

 private:
  // This member comes first, so that the others are made on this GPU.
  struct Number {
    int value;
    Number(int number) : value(number) { use(); }
    void use() const { check_cuda(cudaSetDevice(value), "a GPU"); }
  } number_;

 public:
  DeviceArray<char> block, received;
  std::vector<cudaStream_t> streams;
  DeviceEvent begin, end;
};

class Ring {
 public:
  Ring(int gpus, std::size_t most_bytes) {
    for (int r = 0; r < gpus; ++r) gpus_.push_back(std::make_unique<Gpu>(r, gpus, most_bytes));
    check_cuda(cudaHostAlloc(reinterpret_cast<void**>(&go_), sizeof(int), cudaHostAllocPortable),
               "host memory");
  }

  // Returns GB/s per GPU.
  double run(Way way, std::size_t bytes) {
    *go_ = 0;
    for (std::size_t r = 0; r < gpus_.size(); ++r) enqueue(way, bytes, r);
    *const_cast<volatile int*>(go_) = 1;
    float slowest = 0;
    for (const auto& gpu : gpus_) slowest = std::max(slowest, gpu->end.since(gpu->begin));
    return static_cast<double>((gpus_.size() - 1) * bytes) / slowest / 1e6;
  }

 private:
  void enqueue(Way way, std::size_t bytes, std::size_t rank) {
    Gpu& gpu = *gpus_[rank];
    gpu.use();
    hold<<<1, 1, 0, gpu.streams[0]>>>(go_);
    gpu.begin.record(gpu.streams[0]);
    for (std::size_t step = 1; step < gpus_.size(); ++step) {
      Gpu& peer = *gpus_[(rank + step) % gpus_.size()];
      cudaStream_t stream = gpu.streams[way == Way::at_once ? step : 0];
      if (way == Way::at_once) wait(stream, gpu.begin);
      const std::size_t pieces = way == Way::in_four ? 4 : 1, piece = bytes / pieces;
      for (std::size_t k = 0; k < pieces; ++k) {
        Gpu& from = way == Way::pull ? peer : gpu;
        Gpu& to = way == Way::pull ? gpu : peer;
        check_cuda(
            cudaMemcpyAsync(to.received.data() + step * to.block.size() + k * piece,
                            from.block.data() + k * piece, piece, cudaMemcpyDeviceToDevice, stream),
            "a copy");
      }
      if (way == Way::at_once) {
        DeviceEvent done;
        done.record(stream);
        wait(gpu.streams[0], done);
      }
    }
    gpu.end.record(gpu.streams[0]);
  }
  static void wait(cudaStream_t stream, const DeviceEvent& event) {
    check_cuda(cudaStreamWaitEvent(stream, event.get(), 0), "an event");
  }

  std::vector<std::unique_ptr<Gpu>> gpus_;
  int* go_ = nullptr;
};

void run(int repetitions, const std::vector<std::size_t>& megabytes, std::string json) {
  require(gpu_count() > 1, "{} GPUs are there; a link needs two", gpu_count());
  if (json.empty()) json = "build/bench/link-" + std::to_string(gpu_count()) + ".json";
  Results results(json);
  Ring ring(gpu_count(), std::ranges::max(megabytes) << 20);
  for (const std::size_t mb : megabytes)
    for (const Way way : {Way::ring, Way::in_four, Way::at_once, Way::pull}) {
      std::vector<double> rates;
      for (int k = 0; k < repetitions; ++k) rates.push_back(ring.run(way, mb << 20));
      std::ranges::sort(rates);
      const char* name = kNames[static_cast<int>(way)];
      std::printf("%5zu MiB  %-8s %4.0f (%.0f - %.0f)\n", mb, name, rates[rates.size() / 2],
                  rates.front(), rates.back());
      results.add("link", {{"gpus", gpu_count()}, {"block_mib", mb}, {"way", name}},
                  spread_fields(rates, "gb_s"));
    }
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  int repetitions = 21;
  std::vector<std::size_t> megabytes;
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("--repetitions="))
      repetitions = std::stoi(a.substr(14));
    else if (a.starts_with("--json="))
      json = a.substr(7);
    else
      megabytes.push_back(std::stoull(a));
  }
  if (megabytes.empty()) megabytes = {4, 16, 40, 157, 512};
  try {
    plait::run(repetitions, megabytes, json);
  } catch (const plait::Error& error) {
    std::fprintf(stderr, "link_cuda_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
