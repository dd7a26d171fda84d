#include "plait/symmetric/descriptor_exchange.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr int kPollMilliseconds = 20;

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

Introduction introduce(const std::string& failure) {
  Introduction own{.failed = !failure.empty()};
  const bool filled = ::getrandom(own.number.data(), own.number.size(), 0) == ssize_t{16};
  require(filled, "there are no random numbers: {}", std::strerror(errno));
  return own;
}

std::string name_of(const Introduction& rank) {
  return fmt::format("plait-{:02x}", fmt::join(rank.number, ""));
}

Descriptor open_socket(int flags) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  require(socket.open(), "a Unix-domain socket cannot be made: {}", std::strerror(errno));
  return socket;
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

void send_descriptor(const Descriptor& socket, int rank, const Descriptor& own) {
  Message message(&rank);
  cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = own.number();
  std::memcpy(CMSG_DATA(part), &number, sizeof number);
  const bool sent = ::sendmsg(socket.number(), &message.header, MSG_NOSIGNAL) > 0;
  require(sent, "shared memory cannot be handed over: {}", std::strerror(errno));
}

// Returns the rank that sent and its descriptor, which is not open if the message is malformed.
std::pair<int, Descriptor> receive_descriptor(const Descriptor& socket) {
  const auto none = [] { return std::pair<int, Descriptor>(-1, Descriptor()); };
  const timeval limit{1, 0};  // it was sent right after the connection
  ::setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  int rank = -1;
  Message message(&rank);
  const auto size = ::recvmsg(socket.number(), &message.header, MSG_CMSG_CLOEXEC);
  const cmsghdr* part = size > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS ||
      part->cmsg_len != CMSG_LEN(sizeof(int)))
    return none();
  int number = -1;
  std::memcpy(&number, CMSG_DATA(part), sizeof number);
  Descriptor received(number);
  if (size != static_cast<ssize_t>(sizeof rank)) return none();
  return {rank, std::move(received)};
}

class Exchange {
 public:
  Exchange(World& world, const Descriptor& own)
      : world_(world), own_(own), descriptors_(static_cast<std::size_t>(world.size())) {}

  std::vector<Descriptor> run(const std::string& failure) {
    const Introduction mine = introduce(failure);
    const Address address = abstract_address(name_of(mine));
    const bool listens = ::bind(listener_.number(), address.get(), address.length) == 0 &&
                         ::listen(listener_.number(), SOMAXCONN) == 0;
    require(listens, "a Unix-domain socket cannot listen: {}", std::strerror(errno));
    // After this every rank listens. Connections and messages wait in their queues until the other
    // side takes them.
    const auto all = gather_values(world_, mine);
    if (std::ranges::any_of(all, &Introduction::failed)) agree_on_failure(world_, failure);
    for (int rank = 0; rank < world_.size(); ++rank)
      if (rank != world_.rank()) send_to(rank, name_of(all[static_cast<std::size_t>(rank)]));
    while (missing_ > 0) accept_one();
    return std::move(descriptors_);
  }

 private:
  // Others may have filled the peer's queue, or this rank's, which is therefore emptied meanwhile.
  void send_to(int rank, const std::string& name) {
    const Address peer = abstract_address(name);
    const Descriptor socket = open_socket(SOCK_NONBLOCK);
    while (::connect(socket.number(), peer.get(), peer.length) != 0) {
      require(errno == EAGAIN || errno == EINTR,
              "rank {} cannot be reached through a Unix-domain socket: {}", world_.number_of(rank),
              std::strerror(errno));
      accept_one();
    }
    require(same_user(socket), "the Unix-domain socket of rank {} is another user's",
            world_.number_of(rank));
    send_descriptor(socket, world_.rank(), own_);
  }

  // Waits a moment for a connection, and checks that no rank is lost.
  void accept_one() {
    world_.check_alive();
    pollfd ready{listener_.number(), POLLIN, 0};
    if (::poll(&ready, 1, kPollMilliseconds) <= 0) return;
    const Descriptor socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.open() || !same_user(socket)) return;
    auto [rank, received] = receive_descriptor(socket);
    if (!received.open() || rank < 0 || rank >= world_.size() || rank == world_.rank()) return;
    Descriptor& place = descriptors_[static_cast<std::size_t>(rank)];
    if (place.open()) return;
    place = std::move(received);
    --missing_;
  }

  World& world_;
  const Descriptor& own_;
  const Descriptor listener_ = open_socket(0);
  std::vector<Descriptor> descriptors_;
  int missing_ = world_.size() - 1;
};

}  // namespace

std::vector<Descriptor> exchange_descriptors(World& world, const Descriptor& own,
                                             const std::string& failure) {
  if (world.size() > 1) return Exchange(world, own).run(failure);
  agree_on_failure(world, failure);
  return std::vector<Descriptor>(1);
}

}  // namespace plait
