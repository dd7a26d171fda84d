// The kernels of intersect() on GPUs (operators.cuh). A group of threads puts the list of a row in
// a table in shared memory, and looks there for the entries of the other lists: a warp for a short
// row, a block for a piece of a long one. Groups count in shared memory what they find, and tell of
// it once at the end, so that global memory is changed about twice per entry of a list.
//
// A piece looks for entries of some other lists among some entries of the row, so that its table
// has room for rows of any length. Threads take entries in turn whatever list they are in: lists of
// different lengths cost what their entries cost. Each entry is read once per row that looks at it,
// 4 bytes, mostly from the second-level cache.
#pragma once

#include "plait/base/cuda/warp.cuh"
#include "plait/frontier/cuda/kernels.cuh"
#include "plait/frontier/lists.h"

namespace plait::frontier {

// The work on all rows.
template <class F>
struct Intersection {
  SlotLists lists;
  LentEntries lent;
  std::uint64_t own;
  F f;
  Pieces pieces;  // of long rows
};

// The shared memory of a group of kGroup threads: it looks among kEntries entries of a row for
// those of kOthers other lists.
template <int kGroup, int kEntries_, int kPlaces, int kOthers_>
class ListTable {
 public:
  static constexpr std::uint32_t kEntries = kEntries_, kOthers = kOthers_;

  __host__ __device__ static std::uint32_t pieces(std::uint32_t size) {
    return (size + kEntries - 1) / kEntries * ((size + kOthers - 1) / kOthers);
  }

  // All threads of the group call it.
  template <class F>
  __device__ void intersect(const Intersection<F>& work, std::uint32_t row, std::uint32_t piece) {
    const ListPlace list = work.lists.places[row];
    const std::uint64_t begin = list.first() - work.lists.first;
    const std::uint32_t parts = (list.size() + kOthers - 1) / kOthers;
    const std::uint64_t first = begin + piece / parts * kEntries;
    const std::uint64_t first_other = begin + piece % parts * kOthers;
    const auto entries =
        static_cast<std::uint32_t>(min(begin + list.size() - first, std::uint64_t{kEntries}));
    const auto others =
        static_cast<std::uint32_t>(min(begin + list.size() - first_other, std::uint64_t{kOthers}));
    const unsigned shift = take(work.lists.numbers + first, entries);
    const std::uint32_t found = find_others(work, first_other, others, shift);
    sync();
    const Slot* const slots = work.lists.slots;
    tell(work.f, row, found);
    for (std::uint32_t i = me(); i < others; i += kGroup)
      if (of_other_[i] > 0) work.f(slots[first_other + i], std::uint64_t{of_other_[i]});
    for (std::uint32_t i = me(); i < entries; i += kGroup)
      if (const std::uint32_t times = times_[place_of(work.lists.numbers[first + i], shift)];
          times > 0)
        work.f(slots[first + i], std::uint64_t{times});
    sync();  // others have read it
  }

 private:
  static constexpr int kWarps = kGroup / kWarp;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  __device__ static std::uint32_t me() { return threadIdx.x % kGroup; }
  __device__ static void sync() {
    if constexpr (kGroup == kWarp)
      __syncwarp();
    else
      __syncthreads();
  }

  // Adds what the threads of each warp have found to the row's.
  template <class F>
  __device__ static void tell(const F& f, std::uint32_t row, std::uint32_t found) {
    const auto of_warp = sum_of_warp(static_cast<unsigned long long>(found));
    if (threadIdx.x % kWarp == 0 && of_warp > 0) f(std::uint64_t{row}, std::uint64_t{of_warp});
  }

  // Makes a table of these numbers, a quarter of whose places is taken if there is room. Returns
  // the shift that makes places of hashes.
  __device__ unsigned take(const std::uint32_t* numbers, std::uint32_t size) {
    const unsigned bits = min(34 - __clz(static_cast<int>(size)), 31 - __clz(kPlaces));
    for (std::uint32_t i = me(); i < 1u << bits; i += kGroup)
      numbers_[i] = kNoVertex, times_[i] = 0;
    for (std::uint32_t i = me(); i < kOthers; i += kGroup) of_other_[i] = 0;
    sync();
    const unsigned shift = 32 - bits;
    for (std::uint32_t i = me(); i < size; i += kGroup) {
      std::uint32_t at = hash(numbers[i], shift);
      while (atomicCAS(numbers_ + at, kNoVertex, numbers[i]) != kNoVertex) at = after(at, shift);
    }
    sync();
    return shift;
  }
  __device__ static std::uint32_t hash(std::uint32_t number, unsigned shift) {
    return number * 0x9e3779b1u >> shift;
  }
  __device__ static std::uint32_t after(std::uint32_t at, unsigned shift) {
    return (at + 1) & (~0u >> shift);
  }
  // Returns the place of a number; kNone if it is not in the table.
  __device__ std::uint32_t place_of(std::uint32_t number, unsigned shift) const {
    for (std::uint32_t at = hash(number, shift);; at = after(at, shift)) {
      const std::uint32_t there = numbers_[at];
      if (there == number) return at;
      if (there == kNoVertex) return kNone;
    }
  }

  // Looks for the entries of other lists. Returns how many this thread has found.
  template <class F>
  __device__ std::uint32_t find_others(const Intersection<F>& work, std::uint64_t first,
                                       std::uint32_t count, unsigned shift) {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < count; i += kWarp) {
      const std::uint32_t other = i + threadIdx.x % kWarp;
      ListPlace list;
      if (other < count) list = work.lists.places[work.lists.slots[first + other]];
      if (!work.lent.have(list)) list = ListPlace();
      for_entries(work.lent, list, other, [&](std::uint32_t of, std::uint32_t number) {
        const std::uint32_t place = place_of(number, shift);
        if (place == kNone) return;
        atomicAdd(times_ + place, 1u);
        atomicAdd(of_other_ + of, 1u);
        ++found;
      });
    }
    return found;
  }

  // Calls visit(other, number) for the entries of the lists of all lanes, which threads of the
  // group take in turn; all its warps have the same lists.
  template <class Visit>
  __device__ void for_entries(const LentEntries& lent, ListPlace list, std::uint32_t other,
                              const Visit& visit) {
    const unsigned lane = threadIdx.x % kWarp;
    Runs& runs = runs_[kWarps == 1 ? 0 : threadIdx.x / kWarp];
    std::uint32_t end = list.size();
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
      const std::uint32_t before = __shfl_up_sync(kAll, end, distance);
      if (lane >= distance) end += before;
    }
    const std::uint32_t begin = end - list.size(), total = __shfl_sync(kAll, end, kWarp - 1);
    const bool any = list.size() > 0;
    const unsigned run = __popc(__ballot_sync(kAll, any) & lanes_before());
    if (any) runs.entry[run] = lent.of(list) - begin, runs.other[run] = other;
    __syncwarp();
    // Returns the list of the entry at this place among all, and the entry.
    const auto entry = [&](std::uint32_t at) {
      const unsigned begun = __popc(__ballot_sync(kAll, any && begin < at));
      const unsigned begins =
          __reduce_or_sync(kAll, any && begin - at < kWarp ? 1u << (begin - at) : 0);
      if (at + lane >= total) return Entry{0, kNoVertex};
      const unsigned of = begun + __popc(begins & ((2u << lane) - 1)) - 1;
      return Entry{runs.other[of], __ldg(runs.entry[of] + (at + lane))};
    };
    std::uint32_t at = threadIdx.x % kGroup / kWarp * kWarp;
    Entry next = entry(at);
    while (at < total) {
      const Entry now = next;
      at += kGroup;
      next = entry(at);  // is on its way meanwhile
      if (now.number != kNoVertex) visit(now.other, now.number);
      __syncwarp();
    }
    __syncwarp();  // others have read the runs
  }

  struct Entry {
    std::uint32_t other, number;
  };
  // The lists that have entries: where an entry 0 of all lists would stand for each, and its number
  // among the other lists of the piece.
  struct Runs {
    const std::uint32_t* entry[kWarp];
    std::uint32_t other[kWarp];
  };

  Runs runs_[kWarps];
  std::uint32_t numbers_[kPlaces], times_[kPlaces];  // kNoVertex: a free place
  std::uint32_t of_other_[kOthers];                  // entries found
};

using WarpTable = ListTable<kWarp, 64, 256, 64>;
using BlockTable = ListTable<kThreads, 2048, 4096, 256>;

// The pieces of a row that a warp does not do alone.
struct CountPieces {
  const ListPlace* places;
  __device__ std::uint64_t operator()(std::uint64_t row) const {
    const std::uint32_t size = places[row].size();
    return size > WarpTable::kEntries ? BlockTable::pieces(size) : 0;
  }
};

template <class F>
__global__ void __launch_bounds__(kThreads) intersect_rows(const Intersection<F> work) {
  __shared__ WarpTable tables[kThreads / kWarp];
  for (std::uint64_t i = thread() / kWarp; i < work.own; i += threads() / kWarp) {
    const auto row = static_cast<std::uint32_t>(i);
    const std::uint32_t size = work.lists.places[row].size();
    if (size < 2) continue;
    if (size <= WarpTable::kEntries)
      tables[threadIdx.x / kWarp].intersect(work, row, 0);
    else if (threadIdx.x % kWarp == 0)
      work.pieces.add(row, BlockTable::pieces(size), 1);
  }
}

template <class F>
__global__ void __launch_bounds__(kThreads) intersect_pieces(const Intersection<F> work) {
  __shared__ BlockTable table;
  for (std::uint64_t i = blockIdx.x; i < *work.pieces.count; i += gridDim.x) {
    const std::uint64_t piece = work.pieces.of[i];
    table.intersect(work, static_cast<std::uint32_t>(piece),
                    static_cast<std::uint32_t>(piece >> 32));
  }
}

}  // namespace plait::frontier
