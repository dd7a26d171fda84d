#include "plait/world/watched_world.h"

#include <algorithm>

#include "plait/base/system_limits.h"
#include "plait/world/descriptors.h"
#include "plait/world/difference.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"
#include "plait/world/together.h"

namespace plait {

const std::vector<std::string>& WatchedWorld::kind_names() {
  static const std::vector<std::string> names{"a barrier", "a reduction over ranks",
                                              "an exchange of data", "a broadcast",
                                              "an operation on a graph"};
  return names;
}

template <class Operation>
void WatchedWorld::collective(Kind kind, Operation&& operation) {
  begin_kind(kind);
  check_alive();
  const Timed timed("collectives");
  const std::uint64_t before = collectives().bytes_sent();
  try {
    operation();
    count_moved(collectives().bytes_sent() - before);
  } catch (const Error& error) {
    explain(error.what());
  }
}

void WatchedWorld::meet_for_group() {
  bool failed = false;
  try {
    require_descriptors_of_group(one_host() ? 0 : size());
  } catch (const SystemLimitError&) {
    failed = true;
  }
  const auto all = gather_values(*this, failed);
  const auto first = std::ranges::find(all, true) - all.begin();
  if (first == size()) return;
  throw OnAllRanks<SystemLimitError>(
      fmt::format("rank {}: too many open files: it can open no connections for another group of "
                  "ranks; raise the limit (ulimit -n)",
                  number_of(static_cast<int>(first))));
}

void WatchedWorld::barrier() {
  collective(kBarrier, [&] { collectives().barrier(); });
}

void WatchedWorld::all_reduce(const ReducedValues& values, Reduction how) {
  constexpr std::size_t kIntegers = 2;  // alternatives from here on
  require<UsageError>(how == Reduction::sum || values.index() >= kIntegers,
                      "least and largest values are taken of integers");
  collective(kReduction, [&] { collectives().all_reduce(values, how); });
}

void WatchedWorld::broadcast(std::span<std::byte> bytes, int root) {
  require<UsageError>(root >= 0 && root < size(), "broadcast: rank {} is none of {}", root, size());
  collective(kBroadcast, [&] { collectives().broadcast(bytes, root); });
}

std::vector<std::vector<std::byte>> WatchedWorld::all_gather(std::span<const std::byte> mine) {
  const auto ranks = static_cast<std::size_t>(size());
  const std::vector<Given> sizes = agree(*this, "an exchange of data", {.count = mine.size()});
  std::vector<std::vector<std::byte>> parts(ranks);
  const std::vector<std::span<const std::byte>> send(ranks, mine);
  std::vector<std::span<std::byte>> receive(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts[rank].resize(sizes[rank].count);
    receive[rank] = parts[rank];
  }
  all_to_all(send, receive);
  return parts;
}

void WatchedWorld::all_to_all(std::span<const std::span<const std::byte>> send,
                              std::span<const std::span<std::byte>> received) {
  require_parts(send, received, rank(), size());
  collective(kExchange, [&] { collectives().all_to_all(send, received); });
}

}  // namespace plait
