#include "plait/measure/cpu_rates.h"

#include <algorithm>
#include <functional>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/processor.h"
#include "plait/base/random.h"
#include "plait/base/timer.h"
#include "plait/kernels/spmm.h"
#include "plait/measure/copy_rate.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/heap.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr std::uint64_t kTableBytes = std::uint64_t{64} << 20;  // of rows in memory
constexpr std::uint64_t kCachedBytes = std::uint64_t{1} << 19;  // of rows in a cache
constexpr std::uint64_t kReadBytes = std::uint64_t{32} << 20;   // by one product
constexpr std::uint64_t kFewestReads = 1 << 15;
constexpr std::uint64_t kDegree = 16;  // rows read for one sum
constexpr int kRepetitions = 5;
constexpr double kLeastSeconds = 4e-3;  // of a repetition: an interruption may take 1e-3
constexpr double kMostTimes = 1000;

// Returns the median seconds of the slowest rank. In each repetition, `work` is done as often in a
// row as fills kLeastSeconds, at most kMostTimes.
double seconds_of(World& world, const std::function<void()>& work) {
  const auto seconds = [&](int times) {
    world.barrier();
    const Stopwatch watch;
    for (int k = 0; k < times; ++k) work();
    return largest_of_all(world, watch.seconds() / times);
  };
  seconds(1);  // for the caches
  const double once = std::max(std::min({seconds(1), seconds(1), seconds(1)}), 1e-9);
  const auto times = static_cast<int>(std::clamp(kLeastSeconds / once, 1.0, kMostTimes));
  std::vector<double> all;
  for (int r = 0; r < kRepetitions; ++r) all.push_back(seconds(times));
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// Sums of rows that stand at random in the parts of ranks: a product with a random matrix.
class RandomRows {
 public:
  // Reads rows of `width` floats among the first `table_bytes` of a part.
  RandomRows(std::uint64_t width, std::uint64_t table_bytes, int parts)
      : width_(width),
        rows_(table_bytes / (width * sizeof(float))),
        reads_(std::max(kFewestReads, kReadBytes / (width * sizeof(float)))),
        offsets_(reads_ / kDegree + 1),
        columns_(reads_),
        owner_(rows_ * static_cast<std::uint64_t>(parts)),
        row_(owner_.size()),
        y_(reads_ / kDegree * width) {
    for (std::uint64_t i = 0; i < offsets_.size(); ++i) offsets_[i] = i * kDegree;
    for (std::uint64_t h = 0; h < owner_.size(); ++h) {
      owner_[h] = static_cast<std::uint32_t>(h / rows_);
      row_[h] = static_cast<std::uint32_t>(h % rows_);
    }
    const Philox random(width);
    for (std::uint64_t k = 0; k < reads_; ++k)
      columns_[k] = static_cast<Slot>((std::uint64_t{random(k)[0]} * owner_.size()) >> 32);
  }

  // Sums rows of the part `own`.
  void sum_own(const float* own) { sum({own, width_, static_cast<Slot>(owner_.size())}); }
  // Sums rows of these parts. The constructor was told the number of parts.
  void sum_parts(const float* const* parts) {
    RowSource source{parts[0], width_, 0};
    source.peers = parts;
    source.halo_owner = owner_.data();
    source.halo_row = row_.data();
    sum(source);
  }
  double bytes() const { return static_cast<double>(reads_ * width_ * sizeof(float)); }

 private:
  void sum(const RowSource& source) {
    spmm({.begin = offsets_.span().first(offsets_.size() - 1),
          .end = offsets_.span().subspan(1),
          .columns = columns_.data(),
          .weights = nullptr,
          .x = source,
          .width = width_,
          .y = y_.data(),
          .y_stride = width_,
          .row_scale = nullptr});
  }

  std::uint64_t width_, rows_, reads_;
  Buffer<EdgeOffset> offsets_;
  Buffer<Slot> columns_;
  Buffer<std::uint32_t> owner_, row_;
  Buffer<float> y_;
};

class CpuRates {
 public:
  explicit CpuRates(World& world)
      : world_(world), heap_(SymmetricHeap::create(world, kTableBytes)) {
    std::ranges::fill(heap_->part(world.rank()), std::byte{0});  // takes the pages
    for (int rank = 0; rank < world.size(); ++rank) {
      parts_.push_back(reinterpret_cast<const float*>(heap_->part(rank).data()));
      if (rank != world.rank()) peers_.push_back(parts_.back());
    }
    heap_->barrier();
  }

  MachineRates measure() {
    for (const std::uint64_t bytes : measured_row_bytes()) measure_rows(bytes);
    add(Rate::copy, 0, measure_copy_rate(world_));
    if (world_.size() > 1) add(Rate::barrier, 0, seconds_of(world_, [&] { heap_->barrier(); }));
    const auto threads = static_cast<std::size_t>(thread_count());
    add(Rate::launch, 0,
        seconds_of(world_, [&] { parallel_for(2 * threads, [](std::size_t) {}); }));
    if (processor_cache() > 0) add(Rate::cache, 0, static_cast<double>(processor_cache()));
    add(Rate::threads, 0, static_cast<double>(threads));
    return std::move(rates_);
  }

 private:
  void add(Rate rate, std::uint64_t row_bytes, double value) {
    rates_.push_back({rate, row_bytes, value});
  }
  void measure_rows(std::uint64_t row_bytes) {
    const std::uint64_t width = row_bytes / sizeof(float);
    const float* const own = parts_[static_cast<std::size_t>(world_.rank())];
    for (const auto& [rate, table] :
         {std::pair{Rate::local_rows, kTableBytes}, std::pair{Rate::cached_rows, kCachedBytes}}) {
      RandomRows rows(width, table, 1);
      add(rate, row_bytes, rows.bytes() / seconds_of(world_, [&] { rows.sum_own(own); }));
    }
    if (peers_.empty()) return;
    RandomRows rows(width, kTableBytes / peers_.size(), static_cast<int>(peers_.size()));
    add(Rate::all_peer_rows, row_bytes,
        rows.bytes() / seconds_of(world_, [&] { rows.sum_parts(peers_.data()); }));
    RandomRows one(width, kTableBytes, 1);
    const bool reads = world_.rank() == 0;
    add(Rate::peer_rows, row_bytes, one.bytes() / seconds_of(world_, [&] {
                                      if (reads) one.sum_parts(peers_.data());
                                    }));
  }

  World& world_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::vector<const float*> parts_, peers_;  // of all ranks, and of all but this one
  MachineRates rates_;
};

}  // namespace

MachineRates measure_cpu_rates(World& world) { return CpuRates(world).measure(); }

}  // namespace plait
