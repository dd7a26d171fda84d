// The memory of this host and process, and words for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

// Returns the bytes that can be taken now: the lowest of MemAvailable, what cgroups leave
// (base/cgroup.h) and PLAIT_HOST_MEMORY. Throws UsageError if that is no number of bytes ("8G").
std::uint64_t available_memory();

// Returns the bytes that this process holds now and that no file backs.
std::uint64_t held_memory();
// Returns the bytes of shared memory that this process has touched.
std::uint64_t held_shared_memory();

// Returns the most bytes of memory that this process has had so far: resident, mapped files
// included.
std::uint64_t peak_memory();

// Gives memory that the allocator has kept of freed blocks back to the system, so that
// available_memory() counts it as free. The allocator comes to keep blocks of up to 32 MiB, and at
// most 64 MiB in each of its arenas.
void give_back_freed_memory();

// Blocks of at most so many bytes are kept when they are freed.
inline constexpr std::uint64_t kKeptBlock = std::uint64_t{32} << 20;

// Keeps memory that is freed in this process, up to 2 GiB in each arena of the allocator, for the
// allocations that follow: the steps of a training take and free the same blocks, and each one that
// the system takes back in between comes anew, page by page. Blocks of more than kKeptBlock still
// go back at once. available_memory() counts what is kept as taken.
void keep_freed_memory();

// Returns "1.5 KiB" for 1536.
std::string format_bytes(std::uint64_t bytes);

// Returns an estimate as a number of bytes; the largest number if the estimate is larger.
std::uint64_t whole_bytes(double estimate);

// Throws DoesNotFitError "WHAT needs X, but only Y is free" if `bytes` are more than `free`.
void require_memory(std::uint64_t bytes, std::string_view what, std::uint64_t free);
// The same for the memory that is available. While there is an EqualDemands, also if as many
// processes as it says do not fit together when each takes the bytes.
void require_memory(std::uint64_t bytes, std::string_view what);

// Tells require_memory(), while it lives, that so many processes of this host take equal memory at
// the same time, each without knowing how far the others are. No other one lives meanwhile.
class EqualDemands {
 public:
  // The constructor notes the memory that is available: all processes must have made theirs before
  // any of them goes on.
  explicit EqualDemands(std::uint64_t processes);
  ~EqualDemands();
  EqualDemands(const EqualDemands&) = delete;
  EqualDemands& operator=(const EqualDemands&) = delete;
};

}  // namespace plait
