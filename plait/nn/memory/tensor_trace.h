// The memory that libtorch takes for some work, found by doing the work on few rows. The order in
// which libtorch takes blocks and gives them back is the same for many rows, and each block's size
// is linear in their number. So two small rehearsals tell the memory of the whole, whatever the
// work is.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plait/plan/memory_plan.h"

namespace plait {

// Blocks of the CPU's memory that libtorch takes and gives back, in order.
struct TensorTrace {
  // One block taken, or given back.
  struct Event {
    std::size_t block;    // its number, in the order in which blocks are taken
    std::uint64_t bytes;  // 0: given back
  };
  std::vector<Event> events;
  std::size_t kept_at = 0;  // number of events before the call of kept()
};

// Does work(kept) and returns the blocks that libtorch takes on the CPU meanwhile. The work calls
// kept() when everything that it begins with is in memory. One thread of the process at a time may
// call this; blocks that other threads take meanwhile are noted too.
TensorTrace trace_tensors(const std::function<void(const std::function<void()>&)>& work);

// The way in which memory is given for blocks.
enum class BlockMemory {
  kept,    // their bytes, and small ones are kept when they are freed (base/memory.h): the CPU
  cached,  // libtorch's cache of GPU memory, whose segments are split and kept
};

// One rehearsal, with so many rows.
struct Rehearsal {
  std::uint64_t rows;
  TensorTrace trace;
};
// Returns the bytes that the work holds with `rows` rows, after rehearsals with `few` and `more`
// rows.
WorkBytes work_bytes(const Rehearsal& few, const Rehearsal& more, std::uint64_t rows,
                     BlockMemory memory);

}  // namespace plait
