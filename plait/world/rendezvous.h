// The rendezvous store: a small key-value store over TCP that all ranks reach. Ranks meet through
// it, and heartbeats go through it. Plait keeps one of its own, in the launcher or in rank 0, which
// speaks only with processes that know the job's secret (rendezvous_wire.h); under torchrun it is
// torchrun's. This header needs no header of libtorch.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plait/world/secret.h"

namespace plait {

struct WorldConfig;

// The place of a store, and the facts that a client needs to speak with it.
struct RendezvousAddress {
  std::string host;
  int port = 0;
  std::string prefix;        // put before every key, so that others may use the same store
  Secret secret{};           // the secret of Plait's own store; all zero: none
  bool of_torchrun = false;  // torchrun keeps it
};
// Returns the address of a world's store.
RendezvousAddress rendezvous_address(const WorldConfig& config);

// One connection. Its operations exclude each other: a thread that must not wait for another's
// get() needs a connection of its own. Every operation throws Error when the connection breaks.
class Rendezvous {
 public:
  // Keeps the store in this process, on a free port if the address has none. It listens at the
  // address alone (see listen_at()), or at `listen`, an address or name of this host, if that is
  // not empty. Throws Error if it cannot.
  static std::unique_ptr<Rendezvous> serve(const RendezvousAddress& address,
                                           const std::string& listen = "");
  // Connects to the store. Tries until `limit` has passed, then throws Error.
  static std::unique_ptr<Rendezvous> connect(const RendezvousAddress& address,
                                             std::chrono::milliseconds limit);
  virtual ~Rendezvous() = default;

  // Returns the store's port.
  virtual int port() const = 0;
  // Returns, if this process keeps the store, the number of connections that it has refused because
  // they spoke as a rank does, but with another secret.
  virtual int refused() const { return 0; }
  // Breaks the connection: an operation under way, and all later ones, throw Error. Any thread may
  // call it.
  virtual void give_up() {}
  // Later operations throw Error if they are not answered within `limit`.
  virtual void limit_answers(std::chrono::milliseconds) {}
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key up to `limit`; returns nothing if it has not come.
  virtual std::optional<std::string> get(const std::string& key,
                                         std::chrono::milliseconds limit) = 0;
  // Returns the values of keys that all exist, in one exchange.
  virtual std::vector<std::string> get_all(const std::vector<std::string>& keys) = 0;
  // Sets the key if it does not exist. Values are never empty.
  virtual void create(const std::string& key, const std::string& value) = 0;
  // Sets the key if its value is `expected`; returns the value that it then has.
  virtual std::string replace(const std::string& key, const std::string& expected,
                              const std::string& value) = 0;
  // Adds to a counter that starts at 0, and returns its new value.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

}  // namespace plait
