#include "plait/world/host.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "plait/base/error.h"

namespace plait {

std::string host_identity() {
  if (const char* chosen = std::getenv("PLAIT_HOST_ID")) return chosen;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  return fmt::format("{} {}", boot, network.st_ino);
}

std::string local_address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  require(status == 0, "the address '{}' of the first rank cannot be resolved: {}", host,
          ::gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);

  // Connecting a datagram socket sends nothing; it only looks up the route.
  int reason = 0;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const int descriptor = ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    auto* address = reinterpret_cast<sockaddr*>(&local);
    const bool found = ::connect(descriptor, one->ai_addr, one->ai_addrlen) == 0 &&
                       ::getsockname(descriptor, address, &length) == 0;
    if (!found) reason = errno;
    ::close(descriptor);
    char text[NI_MAXHOST];
    if (found && ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      return text;
  }
  throw Error(fmt::format("no route leads to '{}', the address of the first rank: {}", host,
                          std::strerror(reason)));
}

bool is_of_this_host(const std::string& interface) {
  if (::if_nametoindex(interface.c_str()) != 0) return true;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(interface.c_str(), nullptr, &hints, &list) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  const int descriptor = ::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = descriptor >= 0 && ::bind(descriptor, list->ai_addr, list->ai_addrlen) == 0;
  if (descriptor >= 0) ::close(descriptor);
  return bound;
}

}  // namespace plait
