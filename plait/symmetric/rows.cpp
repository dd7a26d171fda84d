#include "plait/symmetric/rows.h"

#include <algorithm>
#include <cstring>

#include "plait/base/memory.h"

namespace plait {
namespace {

std::uint64_t largest_of_all(World& world, std::uint64_t mine) {
  std::uint64_t most = mine;
  for (const auto& bytes : world.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, bytes.data(), sizeof(theirs));
    most = std::max(most, theirs);
  }
  return most;
}

}  // namespace

SymmetricRows::SymmetricRows(World& world, std::uint64_t floats) : floats_(floats) {
  if (world.size() > 1 && world.one_host()) {
    floats_ = largest_of_all(world, floats);
    heap_ = SymmetricHeap::create(world, floats_ * sizeof(float));
    for (int rank = 0; rank < world.size(); ++rank)
      peers_.push_back(reinterpret_cast<const float*>(heap_->part(rank).data()));
    own_ = reinterpret_cast<float*>(heap_->part(world.rank()).data());
  } else {
    require_memory(floats * sizeof(float), "the rows of one rank");
    private_ = Buffer<float>(floats);
    own_ = private_.data();
  }
}

void SymmetricRows::barrier() {
  if (heap_) heap_->barrier();
}

}  // namespace plait
