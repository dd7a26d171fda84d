#include "plait/world/rendezvous_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"

namespace plait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Time for a peer to prove that it knows the secret.
constexpr std::chrono::seconds kProvingTime{10};
constexpr milliseconds kPause{10};
constexpr std::size_t kMostStrangers = 256;
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;

}  // namespace

RendezvousServer::RendezvousServer(Socket listener, const Secret& secret)
    : listener_(std::move(listener)), secret_(secret) {
  const bool made = ::pipe2(stop_, O_CLOEXEC) == 0;
  require(made, "a pipe cannot be made: {}", reason(errno));
  try {
    thread_ = start_thread([this] { run(); });
  } catch (const Error&) {
    for (const int end : stop_) ::close(end);
    throw;
  }
}

RendezvousServer::~RendezvousServer() {
  ::close(stop_[1]);
  thread_.join();
  ::close(stop_[0]);
}

void RendezvousServer::run() {
  std::vector<pollfd> ready;
  for (;;) {
    ready.assign({{stop_[0], POLLIN, 0}, {listener_.number(), POLLIN, 0}});
    for (const Peer& peer : peers_)
      ready.push_back({peer.socket.number(),
                       static_cast<short>(peer.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    int limit = -1;
    if (const Time end = next_end(); end != Socket::kNone)
      limit = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count() + 1, 0,
          3600000));
    ::poll(ready.data(), ready.size(), limit);
    if (ready[0].revents != 0) return;
    auto state = ready.begin() + 2;
    for (Peer& peer : peers_) {
      const short events = (state++)->revents;
      if ((events & POLLOUT) != 0) write(peer);
      if ((events & ~POLLOUT) != 0) read(peer);
    }
    end_waits();
    std::erase_if(peers_, [](const Peer& peer) { return peer.closed; });
    if (ready[1].revents != 0) accept_all();
  }
}

RendezvousServer::Time RendezvousServer::next_end() const {
  Time end = Socket::kNone;
  for (const Peer& peer : peers_)
    if (peer.stage != Stage::open || !peer.awaited.empty()) end = std::min(end, peer.until);
  return end;
}

void RendezvousServer::accept_all() {
  for (;;) {
    const int number =
        ::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0) {
      // Where descriptors have run out, the connection waits for one, and comes up at once again.
      if (errno != EAGAIN) std::this_thread::sleep_for(kPause);
      break;
    }
    peers_.push_back({.socket = Socket(number), .until = steady_clock::now() + kProvingTime});
  }
  const auto stranger = [](const Peer& peer) { return peer.stage != Stage::open; };
  while (static_cast<std::size_t>(std::ranges::count_if(peers_, stranger)) > kMostStrangers)
    peers_.erase(std::ranges::find_if(peers_, stranger));
}

void RendezvousServer::read(Peer& peer) {
  char bytes[kReadAtOnce];
  const ssize_t size = ::recv(peer.socket.number(), bytes, sizeof bytes, 0);
  if (size > 0) {
    peer.in.append(bytes, static_cast<std::size_t>(size));
    work(peer);
  } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
    if (peer.stage == Stage::proof) refused_++;  // it was given a proof of another secret, and left
    peer.closed = true;
  }
}

// Works on all whole messages among the bytes that have come.
void RendezvousServer::work(Peer& peer) {
  for (bool more = true; more && !peer.closed;) {
    if (peer.stage == Stage::hello)
      more = greet(peer);
    else if (peer.stage == Stage::proof)
      more = check_proof(peer);
    else
      more = take_message(peer);
  }
}

bool RendezvousServer::greet(Peer& peer) {
  constexpr std::size_t kSize = sizeof kStoreMark + sizeof(Nonce);
  if (peer.in.size() < kSize) return false;
  peer.closed = std::memcmp(peer.in.data(), kStoreMark.data(), kStoreMark.size()) != 0;
  if (peer.closed) return false;
  peer.nonces.server = make_nonce();
  std::memcpy(peer.nonces.client.data(), peer.in.data() + sizeof kStoreMark, sizeof(Nonce));
  peer.in.erase(0, kSize);
  const Proof proof = store_proof(secret_, 's', peer.nonces);
  peer.out.append(reinterpret_cast<const char*>(peer.nonces.server.data()), sizeof(Nonce));
  peer.out.append(reinterpret_cast<const char*>(proof.data()), sizeof proof);
  peer.stage = Stage::proof;
  write(peer);
  return true;
}

bool RendezvousServer::check_proof(Peer& peer) {
  const Proof right = store_proof(secret_, 'c', peer.nonces);
  if (peer.in.size() < right.size()) return false;
  std::byte wrong{0};
  for (std::size_t i = 0; i < right.size(); ++i)
    wrong |= right[i] ^ static_cast<std::byte>(peer.in[i]);
  peer.closed = wrong != std::byte{0};
  if (peer.closed) refused_++;
  peer.in.erase(0, right.size());
  peer.stage = Stage::open;
  return true;
}

bool RendezvousServer::take_message(Peer& peer) {
  constexpr std::size_t kHead = sizeof(std::uint32_t);
  if (peer.in.size() < kHead) return false;
  const std::size_t size =
      decode_length(std::as_bytes(std::span(peer.in)).first<sizeof(std::uint32_t)>());
  if (size > kLongestMessage || !peer.awaited.empty()) peer.closed = true;
  if (peer.closed || peer.in.size() < kHead + size) return false;
  const auto message = decode(std::string_view(peer.in).substr(kHead, size));
  peer.in.erase(0, kHead + size);
  if (message && !message->empty())
    answer(peer, *message);
  else
    peer.closed = true;
  return true;
}

void RendezvousServer::answer(Peer& peer, const Message& request) {
  const std::string& name = request[0];
  const auto find = [&](std::size_t i) { return values_.find(request[i]); };
  const auto number = parse_number(request.back());
  if (name == "set" && request.size() == 3) {
    change(request[1], request[2]);
    reply(peer, {});
  } else if (name == "get" && request.size() == 3 && number && !request[1].empty()) {
    if (find(1) != values_.end()) return reply(peer, {find(1)->second});
    peer.awaited = request[1];
    peer.until = steady_clock::now() + milliseconds(std::clamp<std::int64_t>(*number, 0, 1u << 31));
  } else if (name == "all") {
    Message found;
    for (std::size_t i = 1; i < request.size() && find(i) != values_.end(); ++i)
      found.push_back(find(i)->second);
    reply(peer, found.size() + 1 == request.size() ? found : Message{});
  } else if (name == "replace" && request.size() == 4) {
    const auto there = find(1);
    if (there == values_.end() ? request[2].empty() : there->second == request[2])
      change(request[1], request[3]);
    reply(peer, {find(1) == values_.end() ? "" : find(1)->second});
  } else if (name == "add" && request.size() == 3 && number) {
    const auto there = find(1);
    const std::int64_t before =
        there == values_.end() ? 0 : parse_number(there->second).value_or(0);
    const std::string sum = std::to_string(static_cast<std::int64_t>(
        static_cast<std::uint64_t>(before) + static_cast<std::uint64_t>(*number)));
    change(request[1], sum);
    reply(peer, {sum});
  } else {
    peer.closed = true;
  }
}

void RendezvousServer::reply(Peer& peer, const Message& message) {
  peer.out += encode(message);
  write(peer);
}

void RendezvousServer::change(const std::string& key, std::string value) {
  values_.insert_or_assign(key, std::move(value));
  for (Peer& peer : peers_)
    if (!key.empty() && peer.awaited == key) {
      peer.awaited.clear();
      reply(peer, {values_.find(key)->second});
    }
}

// Ends waits whose time is over: `get` is answered with nothing, and strangers have to go.
void RendezvousServer::end_waits() {
  const auto now = steady_clock::now();
  for (Peer& peer : peers_) {
    if (peer.until > now) continue;
    if (peer.stage != Stage::open) peer.closed = true;
    if (peer.awaited.empty()) continue;
    peer.awaited.clear();
    reply(peer, {});
  }
}

void RendezvousServer::write(Peer& peer) {
  const ssize_t sent = ::send(peer.socket.number(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
  if (sent > 0) peer.out.erase(0, static_cast<std::size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) peer.closed = true;
}

}  // namespace plait
