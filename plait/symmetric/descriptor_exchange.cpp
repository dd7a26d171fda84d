#include "plait/symmetric/descriptor_exchange.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/descriptors.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr int kAttempts = 50;
// The own descriptor, the socket that listens, a socket to and from another rank, and the
// descriptor that has come through it; and one that anything else may take meanwhile.
constexpr int kAtOnce = 6;

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

// An abstract name: a zero byte, then the name without an end mark.
Address abstract_address(const std::string& name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  require(name.size() < sizeof address.socket.sun_path - 1, "the socket name '{}' is too long",
          name);
  std::memcpy(address.socket.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// A rank tells the others where it listens, and whether it has a descriptor to give.
struct Introduction {
  std::array<unsigned char, 16> number{};
  bool failed = false;
};

std::string name_of(const Introduction& rank) {
  return fmt::format("plait-{:02x}", fmt::join(rank.number, ""));
}

Descriptor open_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

// One message: this rank's number, with a descriptor as ancillary data.
struct Message {
  explicit Message(int* rank) : data{rank, sizeof *rank} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  iovec data;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

// Returns an errno, or 0.
int send_descriptor(const Descriptor& socket, int rank, const Descriptor& own) {
  Message message(&rank);
  cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = own.number();
  std::memcpy(CMSG_DATA(part), &number, sizeof number);
  return ::sendmsg(socket.number(), &message.header, MSG_NOSIGNAL) > 0 ? 0 : errno;
}

// A message as it has come: of a rank, or -1 if it is malformed.
struct Received {
  int rank = -1;
  Descriptor descriptor;
  bool cut = false;  // this process had no room for the descriptor
};

// Returns nothing if the message has not come yet.
std::optional<Received> receive_descriptor(const Descriptor& socket) {
  int rank = -1;
  Message message(&rank);
  const auto size = ::recvmsg(socket.number(), &message.header, MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  Received received;
  const cmsghdr* part = size > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
      part->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(part), sizeof number);
    received.descriptor = Descriptor(number);
  }
  received.cut = (message.header.msg_flags & MSG_CTRUNC) != 0;
  if (size == static_cast<ssize_t>(sizeof rank)) received.rank = rank;
  return received;
}

class Exchange {
 public:
  Exchange(World& world, const MakeDescriptor& make, const TakeDescriptor& take)
      : world_(world), make_(make), take_(take), came_(static_cast<std::size_t>(world.size())) {}

  void run() {
    Introduction mine;
    attempt([&] {
      require_descriptors(kAtOnce, "to share memory");
      of_memory([&] { own_ = make_(); });
      if (world_.size() > 1) listen(mine);
    });
    mine.failed = error_.has_value();
    // After this every rank listens. Connections and messages wait in their queues until the other
    // side takes them.
    const auto all = gather_values(world_, mine);
    if (std::ranges::none_of(all, &Introduction::failed)) {
      for (int rank = 0; rank < world_.size(); ++rank)
        if (rank != world_.rank()) send_to(rank, name_of(all[static_cast<std::size_t>(rank)]));
      while (missing_ > 0) accept_one();
    }
    agree_on_error(world_, error_, FailureOf::rank);
    agree_on_error(world_, unreached_, FailureOf::rank);
  }

 private:
  void listen(Introduction& mine) {
    const bool filled =
        ::getrandom(mine.number.data(), mine.number.size(), 0) == ssize_t{sizeof mine.number};
    require(filled, "there are no random numbers: {}", reason(errno));
    const Address address = abstract_address(name_of(mine));
    listener_ = open_socket();
    const bool listens = listener_.open() &&
                         ::bind(listener_.number(), address.get(), address.length) == 0 &&
                         ::listen(listener_.number(), SOMAXCONN) == 0;
    require(listens, "a Unix-domain socket cannot listen: {}", reason(errno));
  }

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

  void send_to(int rank, const std::string& name) {
    const Address peer = abstract_address(name);
    const Descriptor socket = open_patiently();
    int error = patiently(
        [&] { return ::connect(socket.number(), peer.get(), peer.length) == 0 ? 0 : errno; });
    if (error == 0 && !same_user(socket)) error = EACCES;
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
    const Descriptor socket(
        ::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open() && (errno == EMFILE || errno == ENFILE)) fail(reason(errno));
    if (!socket.open() || !same_user(socket)) return;
    auto received = receive_descriptor(socket);
    for (; !received; received = receive_descriptor(socket)) is_ready(socket);
    take(*received);
  }

  bool is_ready(const Descriptor& socket) {
    world_.check_alive();
    pollfd ready{socket.number(), POLLIN, 0};  // poll() only sleeps if the number is -1
    return ::poll(&ready, 1, kPollMilliseconds) > 0;
  }

  void take(const Received& received) {
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
