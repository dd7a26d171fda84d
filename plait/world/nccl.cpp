#include "plait/world/nccl.h"

#include <array>
#include <cstring>
#include <string>

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/library.h"
#include "plait/base/setting.h"
#include "plait/world/gather.h"
#include "plait/world/together.h"

namespace plait {
namespace {

// NCCL's interface, as far as it is used (version 2; nccl.h).
struct UniqueId {
  char bytes[128];
};
using Communicator = struct NcclCommunicator*;
using Status = int;
constexpr int kBytes = 0;  // ncclInt8

struct Library {
  Status (*get_unique_id)(UniqueId*);
  Status (*init_rank)(Communicator*, int, UniqueId, int);
  Status (*destroy)(Communicator);
  Status (*group_start)();
  Status (*group_end)();
  Status (*send)(const void*, std::size_t, int, int, Communicator, void*);
  Status (*receive)(void*, std::size_t, int, int, Communicator, void*);
  const char* (*error)(Status);
};

const Library& library() {
  static const Library loaded = [] {
    const LibraryFunctions functions(
        kNccl, fmt::format("install the package nvidia-nccl-cu13, or use {} without {}",
                           setting("strategy", "pipelined"), setting("cooperative")));
    Library l{};
    functions.find(l.get_unique_id, "ncclGetUniqueId");
    functions.find(l.init_rank, "ncclCommInitRank");
    functions.find(l.destroy, "ncclCommDestroy");
    functions.find(l.group_start, "ncclGroupStart");
    functions.find(l.group_end, "ncclGroupEnd");
    functions.find(l.send, "ncclSend");
    functions.find(l.receive, "ncclRecv");
    functions.find(l.error, "ncclGetErrorString");
    return l;
  }();
  return loaded;
}

void check(Status status) { require(status == 0, "NCCL: {}", library().error(status)); }

class Joined : public Nccl {
 public:
  Joined(World& world, const UniqueId& id) : rank_(world.rank()), size_(world.size()) {
    check(library().init_rank(&communicator_, size_, id, rank_));
  }
  ~Joined() override { library().destroy(communicator_); }

  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received, void* stream) override {
    const Library& l = library();
    check(l.group_start());
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + size_ - step) % size_, from = (rank_ + step) % size_;
      const auto out = send[static_cast<std::size_t>(to)];
      const auto in = received[static_cast<std::size_t>(from)];
      if (!out.empty()) check(l.send(out.data(), out.size(), kBytes, to, communicator_, stream));
      if (!in.empty()) check(l.receive(in.data(), in.size(), kBytes, from, communicator_, stream));
    }
    check(l.group_end());
  }

 private:
  int rank_, size_;
  Communicator communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<Nccl> Nccl::join(World& world) {
  // NCCL waits without a limit for ranks that never come: that each can is found out before.
  struct Prepared {
    UniqueId id{};
    std::array<char, 256> failure{};  // ends with a zero
  } mine;
  try {
    fault_point();
    library();
    if (world.rank() == 0) check(library().get_unique_id(&mine.id));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    text.copy(mine.failure.data(), mine.failure.size() - 1);
  }
  const std::vector<Prepared> all = gather_values(world, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    require_on_all(all[rank].failure[0] == 0, "rank {}: {}",
                   world.number_of(static_cast<int>(rank)), all[rank].failure.data());
  return together(world, "while joining by NCCL",
                  [&] { return std::make_unique<Joined>(world, all[0].id); });
}

}  // namespace plait
