// The symmetric heap on one host: one piece of shared memory per rank, mapped by all.
#include "plait/symmetric/heap.h"

#include <unistd.h>

#include <new>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/symmetric/descriptor_exchange.h"
#include "plait/world/futex_barrier.h"
#include "plait/world/shared_memory.h"

namespace plait {
namespace {

constexpr const char* kWhat = "while ranks shared memory";

// A rank's memory is its part, up to a whole page, and one more page, its LastPage.
std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::size_t mapped_bytes(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (bytes + page - 1) / page * page + page;
}

struct LastPage {
  BarrierState barrier;  // of all ranks: rank 0's is used
  // The words that the rank has brought to its last two barriers, in turn: while a peer may still
  // read one, the next goes to the other place. Each place is used again when all have been at the
  // next barrier.
  std::uint64_t words[2];
};

class HostHeap : public SymmetricHeap {
 public:
  HostHeap(World& world, std::size_t bytes, std::vector<SharedMemory> parts)
      : world_(world),
        bytes_(bytes),
        parts_(std::move(parts)),
        place_(world.new_place()),
        barrier_(last_page(0).barrier, world.size()) {}

  std::size_t bytes() const override { return bytes_; }
  std::span<std::byte> part(int rank) override {
    return parts_.at(static_cast<std::size_t>(rank)).bytes().first(bytes_);
  }
  void barrier() override {
    world_.begin_operation(place_);
    barrier_.wait([this] { world_.check_alive(); });
  }
  std::vector<std::uint64_t> barrier(std::uint64_t word) override {
    turn_ = 1 - turn_;
    last_page(world_.rank()).words[turn_] = word;
    barrier();
    std::vector<std::uint64_t> words;
    for (int rank = 0; rank < world_.size(); ++rank) words.push_back(last_page(rank).words[turn_]);
    return words;
  }

 private:
  // Fresh shared memory is zero, which is its initial value, and other ranks may be in the barrier
  // already: so nothing is constructed here.
  LastPage& last_page(int rank) const {
    const std::span memory = parts_[static_cast<std::size_t>(rank)].bytes();
    return *std::launder(reinterpret_cast<LastPage*>(memory.last(page_bytes()).data()));
  }

  World& world_;
  const std::size_t bytes_;
  const std::vector<SharedMemory> parts_;
  const std::uint64_t place_;
  FutexBarrier barrier_;
  std::size_t turn_ = 0;  // of LastPage::words
};

// Collective. Returns the bytes that each rank gets. `held`: bytes that every rank will have freed.
std::size_t agree_on_room(World& world, std::size_t bytes, std::size_t held, SizeRule rule) {
  require_on_all<UsageError>(
      world.one_host(),
      "the symmetric heap needs all ranks on one host, but they are on several; "
      "take a strategy that sends rows as messages, or one host");
  const auto ranks = static_cast<std::uint64_t>(world.size());
  const auto ask = [&] { return MemoryRequest{bytes, available_memory() + held * ranks, ranks}; };
  return agree_on_size(world, ask, "this host", rule);
}

}  // namespace

void SymmetricHeap::replace(World& world, std::unique_ptr<SymmetricHeap>& heap, std::size_t wanted,
                            SizeRule rule) {
  together(world, kWhat, [&] {
    const std::size_t bytes = heap ? agree_on_room(world, wanted, heap->bytes(), rule) : wanted;
    replace_memory(world, heap, bytes, [&](std::size_t size) { return create(world, size, rule); });
  });
}

// A heap costs two exchanges of messages, for the size and for the descriptors' sockets. All that
// ranks must agree on goes with these.
std::unique_ptr<SymmetricHeap> SymmetricHeap::create(World& world, std::size_t wanted,
                                                     SizeRule rule) {
  return together(world, kWhat, [&] {
    const std::size_t bytes = agree_on_room(world, wanted, 0, rule);
    const std::size_t mapped = mapped_bytes(bytes);
    std::vector<SharedMemory> parts(static_cast<std::size_t>(world.size()));
    const auto part_of = [&](int rank) -> SharedMemory& {
      return parts[static_cast<std::size_t>(rank)];
    };
    exchange_descriptors(
        world,
        [&] {
          auto [memory, descriptor] = SharedMemory::create(mapped);
          part_of(world.rank()) = std::move(memory);
          return std::move(descriptor);
        },
        [&](int rank, const Descriptor& descriptor) {
          part_of(rank) = SharedMemory::map(descriptor, mapped);
        });
    return std::make_unique<HostHeap>(world, bytes, std::move(parts));
  });
}

}  // namespace plait
