#include "plait/symmetric/rows.h"

#include <cstring>
#include <new>
#include <span>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/saturating.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

constexpr const char* kPrivate = "the rows of one rank";

// Collective. Returns the sum over the ranks of this host.
std::uint64_t sum_over_host(World& world, std::uint64_t mine) {
  const auto all = world.all_gather(std::as_bytes(std::span(&mine, 1)));
  Bytes sum = 0;
  for (const int rank : world.ranks_of_host()) {
    std::uint64_t one = 0;
    std::memcpy(&one, all[static_cast<std::size_t>(rank)].data(), sizeof one);
    sum = sum + one;
  }
  return sum.value;
}

// Collective.
void replace_private(World& world, std::unique_ptr<PrivateRows>& rows, std::uint64_t bytes) {
  const std::uint64_t needed = sum_over_host(world, bytes);
  const std::uint64_t held = sum_over_host(world, rows ? rows->bytes() : 0);
  agree_on_failure(world, failure_of([&] {
                     require_memory(needed, "the rows of the ranks of one host",
                                    available_memory() + held);
                   }));
  replace_memory(world, rows, bytes, [&](std::size_t size) {
    std::unique_ptr<PrivateRows> made;
    agree_on_failure(world, failure_of([&] { made = std::make_unique<PrivateRows>(size); }));
    return made;
  });
}

}  // namespace

PrivateRows::PrivateRows(std::size_t bytes) try : memory_(bytes / sizeof(float)) {
} catch (const std::bad_alloc&) {
  throw DoesNotFitError(fmt::format("{} for {} cannot be had", format_bytes(bytes), kPrivate));
}

void SymmetricRows::reserve(std::uint64_t floats) {
  const bool shared = world_.size() > 1 && world_.one_host();
  const std::uint64_t bytes = (Bytes(floats) * sizeof(float)).value;
  lost_ = false;
  try {
    together(world_, "while making room for rows", [&] {
      if (shared)
        SymmetricHeap::replace(world_, heap_, bytes, SizeRule::largest);
      else
        replace_private(world_, private_, bytes);
    });
  } catch (...) {
    lost_ = shared ? !heap_ : !private_;
    find_parts();
    throw;
  }
  find_parts();
}

void SymmetricRows::find_parts() {
  peers_.clear();
  own_ = private_ ? private_->data() : nullptr;
  if (!heap_) return;
  for (int rank = 0; rank < world_.size(); ++rank)
    peers_.push_back(reinterpret_cast<const float*>(heap_->part(rank).data()));
  own_ = reinterpret_cast<float*>(heap_->part(world_.rank()).data());
}

void SymmetricRows::barrier() {
  if (heap_) heap_->barrier();
}

std::vector<std::uint64_t> SymmetricRows::barrier(std::uint64_t word) {
  return heap_ ? heap_->barrier(word) : std::vector<std::uint64_t>{};
}

}  // namespace plait
