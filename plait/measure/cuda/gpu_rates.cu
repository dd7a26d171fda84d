// Rates of GPUs, measured with all GPUs at work at once unless the rate says otherwise.
//
//   random rows   A warp's threads read 16 bytes each, side by side, so that 2 or more threads
//   share
//                 a row; each has four loads in flight. Rows are drawn by Philox, four per block of
//                 it, one for each load.
//   pushes        The parts of the heap have a first half that is sent and a second one that
//                 receives. By copy engines, rank r sends to r + 1, then r + 2, and so on, so that
//                 each GPU receives from one other at any time; by a kernel, as strategies do
//                 (DeviceSignals::push).
//   signal        A step in which each GPU raises a signal at all others, waits for theirs, and
//   ends.
#include <algorithm>
#include <functional>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/error.h"
#include "plait/base/random.h"
#include "plait/machine/machine.h"
#include "plait/measure/cuda/gpu_rates.h"
#include "plait/symmetric/cuda/signals.cuh"
#include "plait/symmetric/peer_access.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{512} << 20;       // of a part, in bytes
constexpr std::uint64_t kHostBytes = std::uint64_t{256} << 20;  // of the host's table
constexpr std::uint64_t kLocalReads = std::uint64_t{1} << 30;   // bytes
constexpr std::uint64_t kPeerReads = std::uint64_t{256} << 20;
constexpr std::uint64_t kHostReads = std::uint64_t{32} << 20;
constexpr std::uint64_t kKernelPush = std::uint64_t{64} << 20;
constexpr int kRepetitions = 5;
constexpr unsigned kThreads = 512, kBlocksOfUnit = 4, kInFlight = 4;

// Random rows of several tables of the same shape.
struct RandomReads {
  const uint4* tables[kMostGpus];
  unsigned count;        // of tables
  std::uint32_t rows;    // of a table
  unsigned shift;        // a row has 1 << shift pieces of 16 bytes
  std::uint64_t pieces;  // to read
  std::uint32_t* kept;   // keeps the compiler from leaving the reads out
};

__global__ void __launch_bounds__(kThreads) read_rows(const __grid_constant__ RandomReads reads) {
  const Philox random(reads.pieces);
  const std::uint64_t all = std::uint64_t{gridDim.x} * kThreads;
  const std::uint32_t within = (1u << reads.shift) - 1;
  std::uint32_t sum = 0;
  for (std::uint64_t k = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
       k < reads.pieces / kInFlight; k += all) {
    const Philox::Block drawn = random(k >> reads.shift);
    uint4 value[kInFlight];
#pragma unroll
    for (unsigned j = 0; j < kInFlight; ++j) {
      const std::uint32_t row = __umulhi(drawn.words[j], reads.rows);
      const unsigned table = ((drawn.words[j] & 0xffffu) * reads.count) >> 16;
      value[j] = reads.tables[table][(std::uint64_t{row} << reads.shift) + (k & within)];
    }
#pragma unroll
    for (unsigned j = 0; j < kInFlight; ++j)
      sum ^= value[j].x ^ value[j].y ^ value[j].z ^ value[j].w;
  }
  if (sum == 1) *reads.kept = sum;
}

__global__ void fill(uint4* to, std::uint64_t pieces) {
  const Philox random(pieces);
  const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t k = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; k < pieces;
       k += all) {
    const Philox::Block drawn = random(k);
    to[k] = {drawn.words[0], drawn.words[1], drawn.words[2], drawn.words[3]};
  }
}

__global__ void nothing() {}

// Memory of the host that the GPU reads by plain addresses.
class HostTable {
 public:
  HostTable() {
    check_pinned(cudaHostAlloc(&data_, kHostBytes, cudaHostAllocMapped), kHostBytes,
                 "memory of the host");
    std::fill_n(static_cast<char*>(data_), kHostBytes, 1);
  }
  ~HostTable() { cudaFreeHost(data_); }
  HostTable(const HostTable&) = delete;
  HostTable& operator=(const HostTable&) = delete;

  const uint4* data() const { return static_cast<const uint4*>(data_); }

 private:
  void* data_ = nullptr;
};

unsigned attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "a GPU");
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "an attribute of a GPU");
  return static_cast<unsigned>(value);
}

// Signals stand in front of the halves.
std::uint64_t bytes_of_signals(int ranks) {
  constexpr std::uint64_t kAlign = 4096;
  return (DeviceSignals::bytes(ranks) + kAlign - 1) / kAlign * kAlign;
}

class GpuRates {
 public:
  explicit GpuRates(World& world)
      : world_(world),
        first_(bytes_of_signals(world.size())),
        heap_(DeviceHeap::create(world, first_ + 2 * kHalf, DeviceTransport::vmm)),
        signals_(*heap_, world),
        kept_(1),
        units_(attribute(cudaDevAttrMultiProcessorCount)) {
    for (int step = 1; step < world.size(); ++step)
      peers_.push_back((world.rank() + step) % world.size());
    fill<<<units_ * kBlocksOfUnit, kThreads, 0, stream_.get()>>>(
        reinterpret_cast<uint4*>(sent(world.rank())), 2 * kHalf / sizeof(uint4));
    check_cuda(cudaStreamSynchronize(stream_.get()), "filling memory");
    world.barrier();
  }

  MachineRates measure() {
    measure_rows();
    const double copied = seconds_of([&] { copy(received(rank()), sent(rank()), kHalf); });
    add(Rate::copy, 0, static_cast<double>(kHalf) / copied);
    const double fetched = seconds_of(
        [&] { copy(received(rank()), host_.data(), kHostBytes, cudaMemcpyHostToDevice); });
    add(Rate::host_copy, 0, static_cast<double>(kHostBytes) / fetched);
    if (!peers_.empty()) measure_links();
    constexpr int kLaunches = 1000;
    add(Rate::launch, 0, seconds_of([&] {
                           for (int k = 0; k < kLaunches; ++k)
                             nothing<<<1, 1, 0, stream_.get()>>>();
                         }) / kLaunches);
    add(Rate::cache, 0, attribute(cudaDevAttrL2CacheSize));
    signals_.check();
    return std::move(rates_);
  }

 private:
  int rank() const { return world_.rank(); }
  std::byte* sent(int rank) const { return heap_->part(rank) + first_; }
  std::byte* received(int rank) const { return sent(rank) + kHalf; }

  void add(Rate rate, std::uint64_t row_bytes, double value) {
    rates_.push_back({rate, row_bytes, value});
  }
  void copy(void* to, const void* from, std::uint64_t bytes,
            cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()), "a copy");
  }

  // Returns the median seconds that the slowest rank's GPU takes for the work that `work` enqueues.
  double seconds_of(const std::function<void()>& work) {
    std::vector<double> seconds;
    for (int r = 0; r <= kRepetitions; ++r) {
      world_.barrier();
      begin_.record(stream_.get());
      work();
      check_cuda(cudaGetLastError(), "work on the GPU");
      end_.record(stream_.get());
      signals_.mark(stream_.get());
      const double mine = static_cast<double>(end_.since(begin_)) / 1e3;
      seconds.push_back(largest_of_all(world_, mine));
    }
    seconds.erase(seconds.begin());  // the first one warms up
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
  }

  // Measures the rates of rows that stand in these tables of `bytes` each. A rank that does not
  // read waits.
  void measure_reads(Rate rate, const std::vector<const void*>& tables, std::uint64_t bytes,
                     std::uint64_t to_read, bool reads = true) {
    for (const std::uint64_t row_bytes : measured_row_bytes()) {
      RandomReads list{.tables = {},
                       .count = static_cast<unsigned>(tables.size()),
                       .rows = static_cast<std::uint32_t>(bytes / row_bytes),
                       .shift = 0,
                       .pieces = to_read / sizeof(uint4),
                       .kept = kept_.data()};
      while (sizeof(uint4) << list.shift < row_bytes) ++list.shift;
      for (std::size_t t = 0; t < tables.size(); ++t)
        list.tables[t] = static_cast<const uint4*>(tables[t]);
      const double seconds = seconds_of([&] {
        if (reads) read_rows<<<units_ * kBlocksOfUnit, kThreads, 0, stream_.get()>>>(list);
      });
      add(rate, row_bytes, static_cast<double>(to_read) / seconds);
    }
  }

  void measure_rows() {
    measure_reads(Rate::local_rows, {sent(rank())}, kHalf, kLocalReads);
    const std::uint64_t fits = attribute(cudaDevAttrL2CacheSize) / 4;
    measure_reads(Rate::cached_rows, {sent(rank())}, fits, 4 * kLocalReads);
    if (!peers_.empty()) {
      measure_reads(Rate::peer_rows, {sent(peers_.front())}, kHalf, kPeerReads, rank() == 0);
      std::vector<const void*> all;
      for (const int peer : peers_) all.push_back(sent(peer));
      measure_reads(Rate::all_peer_rows, all, kHalf, kPeerReads);
    }
    measure_reads(Rate::host_rows, {host_.data()}, kHostBytes, kHostReads);
  }

  void measure_links() {
    const std::uint64_t block = kHalf / peers_.size() / sizeof(uint4) * sizeof(uint4);
    const auto all = static_cast<double>(block * peers_.size());
    constexpr int kTimes = 4;  // so that a rank that begins late does not count
    const double by_engines = seconds_of([&] {
      for (int k = 0; k < kTimes; ++k)
        for (std::size_t step = 0; step < peers_.size(); ++step)
          copy(received(peers_[step]) + step * block, sent(rank()) + step * block, block);
    });
    add(Rate::engine_push, 0, kTimes * all / by_engines);

    const std::uint64_t piece = kKernelPush / peers_.size() / sizeof(uint4) * sizeof(uint4);
    std::vector<Push> pushes;
    std::vector<Signal> arrivals;
    for (std::size_t step = 0; step < peers_.size(); ++step) {
      pushes.push_back({peers_[step], sent(rank()) + step * piece,
                        received(peers_[step]) + step * piece, piece, 0});
      arrivals.push_back({peers_[step], 0});
    }
    constexpr int kPushes = 10, kSignals = 100;
    const double by_kernel = seconds_of([&] {
      for (int k = 0; k < kPushes; ++k) {
        signals_.push(pushes, {}, machine().push_blocks, stream_.get());
        signals_.wait(arrivals, stream_.get());
        signals_.end_step({}, stream_.get());
      }
    });
    add(Rate::kernel_push, 0, kPushes * static_cast<double>(piece * peers_.size()) / by_kernel);
    add(Rate::signal, 0, seconds_of([&] {
                           for (int k = 0; k < kSignals; ++k) {
                             signals_.raise_everywhere(0, stream_.get());
                             signals_.wait(arrivals, stream_.get());
                             signals_.end_step({}, stream_.get());
                           }
                         }) / kSignals);
  }

  World& world_;
  const std::uint64_t first_;  // byte of the first half
  std::unique_ptr<DeviceHeap> heap_;
  DeviceSignals signals_;
  HostTable host_;
  GpuStream stream_;
  DeviceEvent begin_, end_;
  DeviceArray<std::uint32_t> kept_;
  const unsigned units_;    // multiprocessors
  std::vector<int> peers_;  // in the order in which this rank sends
  MachineRates rates_;
};

}  // namespace

MachineRates measure_gpu_rates(World& world) {
  require_peer_access(world);
  return GpuRates(world).measure();
}

}  // namespace plait
