// Scratch memory of operations, which captured steps may use as well.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Floats on the GPU that operations of every width share. They grow with the widest operation.
// Captured steps go on using the memory that they were captured with; so memory that steps were
// captured with is kept, until this object is destroyed, when more is taken.
class StepMemory {
 public:
  float* data() { return now_.data(); }
  const float* data() const { return now_.data(); }
  std::uint64_t size() const { return now_.size(); }

  // Makes room for `floats`, and returns whether the memory is new. `captured`: steps were captured
  // that may use the memory as it is. Else it is freed first, which waits for the GPU. Throws
  // DoesNotFitError; the room is then as before if steps were captured, else there is none.
  bool reserve(std::uint64_t floats, bool captured) {
    if (floats <= now_.size()) return false;
    if (!captured) now_ = DeviceArray<float>();
    DeviceArray<float> more(floats);
    if (captured) before_.push_back(std::move(now_));
    now_ = std::move(more);
    return true;
  }

 private:
  DeviceArray<float> now_;
  std::vector<DeviceArray<float>> before_;
};

}  // namespace plait
