#include "plait/symmetric/descriptor_exchange.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/descriptor_socket.h"
#include "plait/world/descriptors.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr int kAttempts = 50;
// The own descriptor, the socket that listens, a socket to and from another rank, and the
// descriptor that has come through it; and one that anything else may take meanwhile.
constexpr int kAtOnce = 6;

// A rank tells the others where it listens, and whether it has a descriptor to give.
struct Introduction {
  SocketName name{};
  bool failed = false;
};

class Exchange {
 public:
  Exchange(World& world, const MakeDescriptor& make, const TakeDescriptor& take)
      : world_(world), make_(make), take_(take), came_(static_cast<std::size_t>(world.size())) {}

  void run() {
    Introduction mine;
    attempt([&] {
      require_descriptors(kAtOnce, "to share memory");
      of_memory([&] { own_ = make_(); });
      if (world_.size() == 1) return;
      mine.name = random_socket_name();
      listener_ = listen_at(mine.name);
    });
    mine.failed = error_.has_value();
    // After this every rank listens. Connections and messages wait in their queues until the other
    // side takes them.
    const auto all = gather_values(world_, mine);
    if (std::ranges::none_of(all, &Introduction::failed)) {
      for (int rank = 0; rank < world_.size(); ++rank)
        if (rank != world_.rank()) send_to(rank, all[static_cast<std::size_t>(rank)].name);
      while (missing_ > 0) accept_one();
    }
    agree_on_error(world_, error_, FailureOf::rank);
    agree_on_error(world_, unreached_, FailureOf::rank);
  }

 private:
  // Calls `work`. After its error this rank takes nothing more, because all ranks will refuse; what
  // it has to send goes on, so that no rank waits for it before all agree.
  template <class Work>
  void attempt(Work work) {
    try {
      work();
    } catch (const Error& error) {
      if (!error_) error_ = error;
      missing_ = 0;
      listener_.reset();
    }
  }
  void fail(const std::string& text) {
    attempt([&] { throw Error(text); });
  }

  // Memory that cannot be had or mapped does not fit.
  template <class Work>
  static void of_memory(Work work) {
    const std::string failure = failure_of(work);
    require<DoesNotFitError>(failure.empty(), "{}", failure);
  }

  void send_to(int rank, const SocketName& name) {
    const Descriptor socket = open_patiently();
    int error = patiently([&] { return connect_to(socket, name); });
    if (error == 0) error = patiently([&] { return send_descriptor(socket, world_.rank(), own_); });
    if (error == 0) return;
    const std::string text =
        fmt::format("rank {} cannot be reached through a Unix-domain socket: {}",
                    world_.number_of(rank), reason(error));
    if (error != ECONNREFUSED && error != ECONNRESET && error != EPIPE) return fail(text);
    // A rank that has failed takes no connections any more: its own error is the one to tell.
    if (!unreached_) unreached_.emplace(text);
    missing_ = 0;
  }

  // Repeats a step, which returns an errno, until it need not wait. Others may have filled the
  // peer's queue, or this rank's, which is therefore emptied meanwhile; and all ranks together may
  // have sent as many descriptors as the user's processes may have under way.
  template <class Step>
  int patiently(Step step) {
    for (;;) {
      const int error = step();
      if (error != EAGAIN && error != EINTR && error != ETOOMANYREFS) return error;
      accept_one();
    }
  }

  // Other threads of this process may have taken the descriptors that were left; they may give them
  // back. If they do not, this rank leaves the others by its error. They wait for its message,
  // which can never come, so they are told that it has failed (together()).
  Descriptor open_patiently() {
    Descriptor socket = open_socket();
    for (int attempt = 0; attempt < kAttempts && !socket.open(); ++attempt) {
      accept_one();
      socket = open_socket();
    }
    require<SystemLimitError>(socket.open(), "a Unix-domain socket cannot be made: {}",
                              reason(errno));
    return socket;
  }

  // Waits a moment for a connection, and checks that no rank is lost.
  void accept_one() {
    if (!is_ready(listener_)) return;
    const Descriptor socket = accept_from(listener_);
    if (!socket.open() && (errno == EMFILE || errno == ENFILE)) fail(reason(errno));
    if (!socket.open()) return;
    auto received = receive_descriptor(socket);
    for (; !received; received = receive_descriptor(socket)) is_ready(socket);
    take(*received);
  }

  bool is_ready(const Descriptor& socket) {
    world_.check_alive();
    return is_readable(socket);
  }

  void take(const ReceivedDescriptor& received) {
    const bool malformed = !received.descriptor.open() && !received.cut;
    if (malformed || received.rank < 0 || received.rank >= world_.size() ||
        received.rank == world_.rank())
      return;
    std::uint8_t& came = came_[static_cast<std::size_t>(received.rank)];
    if (came != 0) return;
    came = 1;
    --missing_;
    attempt([&] {
      require<SystemLimitError>(received.descriptor.open(),
                                "the memory of rank {} cannot be taken over: {}",
                                world_.number_of(received.rank), reason(EMFILE));
      of_memory([&] { take_(received.rank, received.descriptor); });
    });
  }

  World& world_;
  const MakeDescriptor& make_;
  const TakeDescriptor& take_;
  Descriptor own_, listener_;
  std::vector<std::uint8_t> came_;  // by rank
  int missing_ = world_.size() - 1;
  std::optional<Error> error_, unreached_;  // the first of this rank; a peer that has gone
};

}  // namespace

void exchange_descriptors(World& world, const MakeDescriptor& make, const TakeDescriptor& take) {
  together(world, "while ranks shared memory", [&] { Exchange(world, make, take).run(); });
}

}  // namespace plait
