// For tests: one failure in the middle of a step, which shows that results are right or refused
// afterwards, wherever it comes. Programs never switch it on.
#pragma once

#include <atomic>

namespace plait {

// The failures that a part of a step can end in: a UsageError, a DoesNotFitError, or an error of
// the device.
enum class Fault { refusal, memory, device };

namespace detail {
inline std::atomic<bool> fault_on{false};
}

// Lets part `number` of this process's steps fail, counted from 0 from here on; those before and
// after it do not.
void switch_fault(Fault fault, int number);
// Switches the failure off, and tells whether it was still to come.
bool take_back_fault();

// Comes before a part of a step; fault_now() throws if it is the part that is to fail.
void fault_now();
inline void fault_point() {
  if (detail::fault_on.load(std::memory_order_relaxed)) [[unlikely]]
    fault_now();
}

}  // namespace plait
