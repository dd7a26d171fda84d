#include "plait/symmetric/rows.h"

#include "plait/base/memory.h"

namespace plait {
SymmetricRows::SymmetricRows(World& world, std::uint64_t floats) : floats_(floats) {
  if (world.size() > 1 && world.one_host()) {
    heap_ = SymmetricHeap::create(world, floats * sizeof(float), SizeRule::largest);
    floats_ = heap_->bytes() / sizeof(float);
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
