#include "plait/world/rank_limits.h"

#include <algorithm>
#include <cstdint>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

// Ranks that share memory hand it to each other, which takes time by the square of their number; on
// several hosts they connect: on two processors 128 ranks in 15 s, while joining may take 60 s.
constexpr int kRanksOfProcessor = 64;
// Memory of a rank before it reads a graph, and of each of its connections in the kernel.
constexpr std::uint64_t kOfRank = 4 << 20;
constexpr std::uint64_t kOfConnection = 4 << 10;

}  // namespace

void require_room_for_ranks(int ranks) {
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int most = std::min(kMostRanks, kRanksOfProcessor * processors);
  require<UsageError>(
      ranks >= 1 && ranks <= most,
      "{} ranks were asked for; 1..{} can be with {} processor{}, because each rank "
      "connects to each other one",
      ranks, most, processors, processors == 1 ? "" : "s");
  const auto count = static_cast<std::uint64_t>(ranks);
  require_memory(count * (kOfRank + count * kOfConnection),
                 fmt::format("starting {} ranks", ranks));
}

}  // namespace plait
