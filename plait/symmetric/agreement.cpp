#include "plait/symmetric/agreement.h"

#include <algorithm>

#include "plait/base/memory.h"
#include "plait/world/gather.h"

namespace plait {

std::uint64_t agree_on_size(World& world, const MemoryRequest& mine, const std::string& where,
                            SizeRule rule) {
  const auto all = gather_values(world, mine);
  const std::uint64_t bytes = std::ranges::max(all, {}, &MemoryRequest::bytes).bytes;
  for (int rank = 0; rank < world.size(); ++rank) {
    const MemoryRequest& request = all[static_cast<std::size_t>(rank)];
    require<UsageError>(rule == SizeRule::largest || request.bytes == mine.bytes,
                        "the symmetric heap needs the same size on every rank, but rank {} asks "
                        "for {} bytes and rank {} for {}",
                        world.number_of(world.rank()), mine.bytes, world.number_of(rank),
                        request.bytes);
    require<DoesNotFitError>(bytes < request.available / request.sharers,
                             "the symmetric heap needs {} on each of {} {} of {}, but only {} "
                             "are free in all",
                             format_bytes(bytes), request.sharers,
                             request.sharers == 1 ? "rank" : "ranks", where,
                             format_bytes(request.available));
  }
  return bytes;
}

std::string first_failure(World& world, const std::string& failure, RankName name) {
  // Texts are exchanged only where there is one.
  const auto failed = gather_values(world, !failure.empty());
  if (std::ranges::find(failed, true) == failed.end()) return {};
  const auto all = world.all_gather(std::as_bytes(std::span(failure.data(), failure.size())));
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto& text = all[static_cast<std::size_t>(rank)];
    const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
    if (text.empty()) continue;
    return world.size() == 1 || name == RankName::none
               ? std::string(view)
               : fmt::format("rank {}: {}", world.number_of(rank), view);
  }
  return {};
}

void agree_on_failure(World& world, const std::string& failure, RankName name) {
  const std::string first = first_failure(world, failure, name);
  require<DoesNotFitError>(first.empty(), "{}", first);
}

}  // namespace plait
