#include "plait/world/descriptor_socket.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"

namespace plait {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

// An abstract name: a zero byte, then the name without an end mark.
struct Address {
  explicit Address(const SocketName& bytes) {
    const std::string name = fmt::format("plait-{:02x}", fmt::join(bytes, ""));
    static_assert(sizeof socket.sun_path > sizeof "plait-" + 2 * sizeof bytes);
    socket.sun_family = AF_UNIX;
    std::memcpy(socket.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{};
  socklen_t length = 0;
};

bool is_of_same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

// One message: a rank's number, with a descriptor as ancillary data.
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

}  // namespace

SocketName random_socket_name() {
  SocketName name{};
  const bool filled = ::getrandom(name.data(), name.size(), 0) == ssize_t{sizeof name};
  require(filled, "there are no random numbers: {}", reason(errno));
  return name;
}

Descriptor listen_at(const SocketName& name) {
  const Address address(name);
  Descriptor listener = open_socket();
  require<SystemLimitError>(listener.open(), "a Unix-domain socket cannot be made: {}",
                            reason(errno));
  const bool listens = ::bind(listener.number(), address.get(), address.length) == 0 &&
                       ::listen(listener.number(), SOMAXCONN) == 0;
  require(listens, "a Unix-domain socket cannot listen: {}", reason(errno));
  return listener;
}

Descriptor open_socket() { return Descriptor(::socket(AF_UNIX, SOCK_STREAM | kFlags, 0)); }

int connect_to(const Descriptor& socket, const SocketName& name) {
  const Address peer(name);
  if (::connect(socket.number(), peer.get(), peer.length) != 0) return errno;
  return is_of_same_user(socket) ? 0 : EACCES;
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.number(), nullptr, nullptr, kFlags));
  if (socket.open() && !is_of_same_user(socket)) {
    socket.reset();
    errno = 0;
  }
  return socket;
}

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

std::optional<ReceivedDescriptor> receive_descriptor(const Descriptor& socket) {
  int rank = -1;
  Message message(&rank);
  const auto size = ::recvmsg(socket.number(), &message.header, MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  ReceivedDescriptor received;
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

bool is_readable(const Descriptor& socket) {
  pollfd ready{socket.number(), POLLIN, 0};  // poll() only sleeps if the number is -1
  return ::poll(&ready, 1, kPollMilliseconds) > 0;
}

}  // namespace plait
