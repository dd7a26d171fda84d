// How much memory there is, and how to say so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

// Bytes that can be taken now without swapping: MemAvailable, or what is left under the cgroup's
// limit where that is lower.
std::uint64_t available_memory();

// Bytes that this process holds now and that no file backs.
std::uint64_t held_memory();

// Bytes of memory that this process has had at most so far: resident, mapped files included.
std::uint64_t peak_memory();

// 1536 -> "1.5 KiB".
std::string format_bytes(std::uint64_t bytes);

// An estimate as a number of bytes; the largest there is, where it is beyond all numbers.
std::uint64_t whole_bytes(double estimate);

// Throws DoesNotFitError "WHAT needs X, but only Y is free" if `bytes` are more than `free`.
void require_memory(std::uint64_t bytes, std::string_view what,
                    std::uint64_t free = available_memory());

}  // namespace plait
