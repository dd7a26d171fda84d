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

// From here on, one in four parts of this process's steps begins late by up to `longest`; the seed
// decides which. Zero switches delays off.
void switch_delays(std::uint64_t seed, std::chrono::microseconds longest);

// Returns the delay of the next part; zero if delays are off.
std::chrono::microseconds next_delay();

// Tells whether delays are switched on.
inline bool delays_on() { return detail::delays_on.load(std::memory_order_relaxed); }
// delay_point() is called before a part of a step on the CPU, and pauses by delay_now() if delays
// are on.
void delay_now();
inline void delay_point() {
  if (delays_on()) [[unlikely]]
    delay_now();
}

}  // namespace plait
