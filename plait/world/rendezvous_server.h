// The server of the store: a thread that answers clients (rendezvous_wire.h).
//
// It trusts no client that has not proved to know the secret. For such a peer it holds a few bytes,
// for a few seconds, and if there are too many of them it closes the oldest. Nothing that a client
// sends can end the process or keep others waiting: sockets do not block, and a malformed message
// closes the connection.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "plait/world/rendezvous_wire.h"
#include "plait/world/socket.h"

namespace plait {

// The store and its thread, which ends with this object.
class RendezvousServer {
 public:
  // Starts the thread. `listener` is from listen_at().
  RendezvousServer(Socket listener, const Secret& secret);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  int port() const { return listener_.port(); }
  // Returns the number of connections that spoke as a rank does, but did not prove to know the
  // secret.
  int refused() const { return refused_; }

 private:
  using Time = Socket::Deadline;
  enum class Stage { hello, proof, open };
  struct Peer {
    Socket socket;
    Stage stage = Stage::hello;
    Time until{};         // the end of its time to prove itself, or of its `get`
    std::string awaited;  // the key of its `get`, while it waits
    std::string in, out;  // bytes that are not worked on, and not sent yet
    Nonces nonces{};
    bool closed = false;
  };

  void run();
  Time next_end() const;
  void accept_all();
  void read(Peer& peer);
  void work(Peer& peer);
  bool greet(Peer& peer);
  bool check_proof(Peer& peer);
  bool take_message(Peer& peer);
  void answer(Peer& peer, const Message& request);
  void reply(Peer& peer, const Message& message);
  void change(const std::string& key, std::string value);
  void end_waits();
  static void write(Peer& peer);

  const Socket listener_;
  const Secret secret_;
  std::atomic<int> refused_{0};
  int stop_[2] = {-1, -1};  // a pipe whose end wakes the thread
  std::list<Peer> peers_;   // in the order in which they have come
  std::map<std::string, std::string, std::less<>> values_;
  std::thread thread_;
};

}  // namespace plait
