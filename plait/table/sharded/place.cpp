#include "plait/table/sharded/place.h"

#include <algorithm>

#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"

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
  const auto all = gather_found(world, [&] {
    RankMemory mine{.host = available_memory(), .reserve = reserve};
    if (!question.gpus) return mine;
    // More than any table needs, so that caches give back what they keep.
    mine.on_gpu = gpu_free_memory(~std::uint64_t{0});
    mine.gpu = current_gpu_id();
    return mine;
  });
  FreeMemory free{.host = ~std::uint64_t{0}, .mappable = mappable};
  Bytes reserved = 0;
  for (const RankMemory& rank : all) {
    free.host = std::min(free.host, rank.host);
    reserved = reserved + rank.reserve;
    if (!question.gpus) continue;
    const auto sharers =
        static_cast<std::uint64_t>(std::ranges::count(all, rank.gpu, &RankMemory::gpu));
    free.gpus.push_back(less(rank.on_gpu / sharers, rank.reserve));
  }
  if (!question.gpus) {
    free.host = less(free.host, reserved.value);
    return choose_place(question, free);
  }
  const auto reached =
      gather_found(world, [&] { return std::ranges::all_of(all, gpu_reaches, &RankMemory::gpu); });
  free.peers = std::ranges::find(reached, false) == reached.end();
  return choose_place(question, free);
}

}  // namespace plait
