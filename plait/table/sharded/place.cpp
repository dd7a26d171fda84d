#include "plait/table/sharded/place.h"

#include <algorithm>

#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

std::uint64_t less(std::uint64_t bytes, std::uint64_t reserve) {
  return bytes - std::min(bytes, reserve);
}

// The memory of a rank.
struct RankMemory {
  std::uint64_t host = 0, on_gpu = 0, reserve = 0;
  GpuId gpu = {};
};

}  // namespace

TablePlace choose_place(World& world, const StoreQuestion& question, bool mappable,
                        std::uint64_t reserve) {
  RankMemory mine{.reserve = reserve};
  on_all_or_none(world, [&] {
    mine.host = available_memory();
    if (!question.gpus) return;
    // More than any table needs, so that caches give back what they keep.
    mine.on_gpu = gpu_free_memory(~std::uint64_t{0});
    mine.gpu = current_gpu_id();
  });
  const auto all = gather_values(world, mine);
  FreeMemory free{.host = ~std::uint64_t{0}, .mappable = mappable};
  Bytes reserved = 0;
  bool reaches = true;
  for (const RankMemory& rank : all) {
    free.host = std::min(free.host, rank.host);
    reserved = reserved + rank.reserve;
    if (!question.gpus) continue;
    const auto sharers =
        static_cast<std::uint64_t>(std::ranges::count(all, rank.gpu, &RankMemory::gpu));
    free.gpus.push_back(less(rank.on_gpu / sharers, rank.reserve));
    reaches = reaches && gpu_reaches(rank.gpu);
  }
  if (!question.gpus) {
    free.host = less(free.host, reserved.value);
    return choose_place(question, free);
  }
  const auto reached = gather_values(world, reaches);
  free.peers = std::ranges::find(reached, false) == reached.end();
  return choose_place(question, free);
}

}  // namespace plait
