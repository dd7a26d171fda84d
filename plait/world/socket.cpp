#include "plait/world/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"

namespace plait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool loopback() const {
    if (family() == AF_INET6)
      return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
    const auto* const four = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  }
};

// IPv4 addresses come first: hosts that know the same name by both reach each other so more often.
std::vector<Address> addresses_of(const std::string& host, int port, int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  require(status == 0, "its address cannot be resolved: {}", ::gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  std::vector<Address> all;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    Address address;
    address.length = one->ai_addrlen;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    all.push_back(address);
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Address& a) { return a.family() == AF_INET; });
  return all;
}

bool is_number(const std::string& host) {
  try {
    return !addresses_of(host, 0, AI_NUMERICHOST).empty();
  } catch (const Error&) {
    return false;
  }
}

Address any_address(int port) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  Address address;
  address.length = sizeof any;
  std::memcpy(&address.storage, &any, sizeof any);
  return address;
}

Address own_address(const Socket& socket) {
  Address address;
  address.length = sizeof address.storage;
  ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

// Where nobody listens, a connection may be given the port that it asks for, and meet itself.
bool meets_itself(const Socket& socket, const Address& peer) {
  const Address own = own_address(socket);
  return own.length == peer.length && std::memcmp(&own.storage, &peer.storage, own.length) == 0;
}

// Returns the system's error number, or 0.
int connect_within(const Socket& socket, const Address& address, Socket::Deadline deadline) {
  if (::connect(socket.number(), address.get(), address.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{socket.number(), POLLOUT, 0};
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(1, left.count())));
  int reason = ETIMEDOUT;
  socklen_t size = sizeof reason;
  if (ready.revents != 0) ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &reason, &size);
  return reason;
}

Socket new_socket(const Address& address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  require<SystemLimitError>(socket.open() || (errno != EMFILE && errno != ENFILE),
                            "a connection cannot be opened: {}", reason(errno));
  require(socket.open(), "a socket cannot be made: {}", reason(errno));
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

int Socket::port() const {
  const Address address = own_address(*this);
  return ntohs(address.family() == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

void Socket::wait(short events, Deadline deadline) const {
  for (;;) {
    int limit = -1;
    if (deadline != kNone) {
      const auto left = deadline - steady_clock::now();
      limit = static_cast<int>(
          std::max<std::int64_t>(0, std::chrono::duration_cast<milliseconds>(left).count() + 1));
    }
    pollfd ready{number_, events, 0};
    const int count = ::poll(&ready, 1, limit);
    if (count > 0) return;
    require(count < 0 || deadline == kNone || steady_clock::now() < deadline,
            "it has not answered in time");
    require(count == 0 || errno == EINTR, "{}", std::strerror(errno));
  }
}

void Socket::send(std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(number_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    require(errno == EAGAIN || errno == EINTR, "the connection is broken: {}",
            std::strerror(errno));
    if (errno == EAGAIN) wait(POLLOUT, deadline);
  }
}

void Socket::receive(std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(number_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    require(got != 0, "the connection was closed");
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      continue;
    }
    require(errno == EAGAIN || errno == EINTR, "the connection is broken: {}",
            std::strerror(errno));
    if (errno == EAGAIN) wait(POLLIN, deadline);
  }
}

Socket listen_at(const std::string& host, int port) {
  Address address = addresses_of(host, port).at(0);
  if (address.loopback() && host != "localhost" && !is_number(host)) address = any_address(port);
  Socket socket = new_socket(address);
  const int on = 1;  // connections of an earlier store may linger on the port
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = ::bind(socket.number(), address.get(), address.length) == 0 &&
                       ::listen(socket.number(), SOMAXCONN) == 0;
  require(listens, "nothing can listen there: {}", std::strerror(errno));
  return socket;
}

Socket connect_to(const std::string& host, int port, Socket::Deadline deadline) {
  int reason = 0;
  for (const Address& address : addresses_of(host, port)) {
    Socket socket = new_socket(address);
    reason = connect_within(socket, address, deadline);
    if (reason == 0 && meets_itself(socket, address)) reason = ECONNREFUSED;
    if (reason == 0) return socket;
  }
  throw Error(fmt::format("no connection: {}", std::strerror(reason)));
}

}  // namespace plait
