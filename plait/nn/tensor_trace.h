// The memory that libtorch takes for some work, found by doing the work on few rows: what it takes
// and gives back, in its order, is the same for many rows, and each block's size is linear in their
// number. So two small rehearsals tell the memory of the whole, whatever the work is.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plait/plan/memory_plan.h"

namespace plait {

// Blocks of the CPU's memory that libtorch takes and gives back.
struct TensorTrace {
  struct Event {
    std::size_t block;    // by the order in which they were taken
    std::uint64_t bytes;  // 0: given back
  };
  std::vector<Event> events;
  std::size_t kept_at = 0;  // events after which what is held is what the work begins with
};

// Does work(kept) while what libtorch takes on the CPU is noted; the work calls kept() when all is
// there that it begins with. For one thread of the process at a time; what other threads take
// meanwhile is noted too.
TensorTrace trace_tensors(const std::function<void(const std::function<void()>&)>& work);

// How memory is given for blocks.
enum class BlockMemory {
  exact,   // as many bytes as they have: the CPU
  cached,  // libtorch's cache of GPU memory, whose segments are split and kept
};

// What the work holds with `rows` rows, after rehearsals with `few` and `more` rows.
struct Rehearsal {
  std::uint64_t rows;
  TensorTrace trace;
};
WorkBytes work_bytes(const Rehearsal& few, const Rehearsal& more, std::uint64_t rows,
                     BlockMemory memory);

}  // namespace plait
