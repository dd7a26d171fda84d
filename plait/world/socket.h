// TCP sockets of the store.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <utility>

namespace plait {

// A TCP socket, whose descriptor this object owns. Its members throw Error when the connection
// breaks or the deadline passes.
class Socket {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  static constexpr Deadline kNone = Deadline::max();

  // Takes a descriptor; -1: none.
  explicit Socket(int number = -1) : number_(number) {}
  ~Socket();
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  // Returns the port at which it listens.
  int port() const;

  // Send all bytes, or receive as many as `bytes` has room for. Both wait until the deadline.
  void send(std::span<const std::byte> bytes, Deadline deadline = kNone);
  void receive(std::span<std::byte> bytes, Deadline deadline = kNone);

 private:
  void wait(short events, Deadline deadline) const;
  int number_;
};

// Listens at one address of this host: the address of `host`, on a free port if `port` is 0. A
// name, other than localhost, that stands for the loopback interface on this host stands for
// another interface elsewhere (Debian's /etc/hosts has the host's own name so); then all interfaces
// are listened on. Sockets that are accepted from it do not block. Throws Error.
Socket listen_at(const std::string& host, int port);

// Tries each address of the host once. Throws Error if none answers before the deadline.
Socket connect_to(const std::string& host, int port, Socket::Deadline deadline);

}  // namespace plait
