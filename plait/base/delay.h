// For tests: random pauses between the parts of a step, which show that every barrier and every
// wait is needed. Programs never switch them on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace plait {

namespace detail {
inline std::atomic<bool> delays_on{false};
}

// From here on, a part of this process's steps in four begins late by up to `longest`; which,
// depends on the seed. Zero switches delays off.
void switch_delays(std::uint64_t seed, std::chrono::microseconds longest);

// By how much the next part begins late; zero where delays are off.
std::chrono::microseconds next_delay();

inline bool delays_on() { return detail::delays_on.load(std::memory_order_relaxed); }
// Before a part of a step on the CPU.
void delay_now();
inline void delay_point() {
  if (delays_on()) [[unlikely]]
    delay_now();
}

}  // namespace plait
