// The clients' side of the store that Plait keeps.
#include "plait/world/rendezvous.h"

#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/system_limits.h"
#include "plait/world/rendezvous_server.h"
#include "plait/world/rendezvous_torchrun.h"
#include "plait/world/world.h"

namespace plait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenTries{50};

struct OtherSecretError : Error {
  OtherSecretError() : Error("it was given another secret than this rank (PLAIT_SECRET)") {}
};

// A connection over which both sides have proved that they know the secret.
Socket open_connection(const RendezvousAddress& address, Socket::Deadline deadline) {
  Socket socket = connect_to(address.host, address.port, deadline);
  Nonces nonces{make_nonce(), {}};
  Proof proof;
  socket.send(kStoreMark);
  socket.send(nonces.client, deadline);
  socket.receive(nonces.server, deadline);
  socket.receive(proof, deadline);
  if (proof != store_proof(address.secret, 's', nonces)) throw OtherSecretError();
  socket.send(store_proof(address.secret, 'c', nonces), deadline);
  return socket;
}

// Tries again until the deadline: the process that keeps the store may not have begun.
Socket reach(const RendezvousAddress& address, Socket::Deadline deadline) {
  for (;;) {
    try {
      return open_connection(address, deadline);
    } catch (const OtherSecretError&) {
      throw;
    } catch (const SystemLimitError&) {
      throw;
    } catch (const Error&) {
      if (steady_clock::now() + kBetweenTries >= deadline) throw;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

class ClientStore : public Rendezvous {
 public:
  // Keeps `server`, if there is one, as long as itself.
  ClientStore(const RendezvousAddress& address, milliseconds limit,
              std::unique_ptr<RendezvousServer> server = nullptr)
      : address_(address),
        place_(fmt::format("{}:{}", address.host, address.port)),
        server_(std::move(server)) {
    translate([&] { socket_ = reach(address, steady_clock::now() + limit); });
  }

  int port() const override { return address_.port; }
  int refused() const override { return server_ ? server_->refused() : 0; }
  void give_up() override { ::shutdown(socket_.number(), SHUT_RDWR); }
  void limit_answers(milliseconds limit) override {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
  }

  void set(const std::string& key, const std::string& value) override {
    ask({"set", full(key), value});
  }
  std::optional<std::string> get(const std::string& key, milliseconds limit) override {
    const Message found = ask({"get", full(key), std::to_string(limit.count())});
    return found.empty() ? std::nullopt : std::optional(found[0]);
  }
  std::vector<std::string> get_all(const std::vector<std::string>& keys) override {
    Message request{"all"};
    for (const std::string& key : keys) request.push_back(full(key));
    Message found = ask(request);
    require(found.size() == keys.size(), "the store at {}: a key is missing", place_);
    return found;
  }
  void create(const std::string& key, const std::string& value) override {
    ask({"replace", full(key), "", value});
  }
  std::string replace(const std::string& key, const std::string& expected,
                      const std::string& value) override {
    return single(ask({"replace", full(key), expected, value}));
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const auto sum = parse_number(single(ask({"add", full(key), std::to_string(amount)})));
    require(sum.has_value(), "the store at {}: a sum is not a number", place_);
    return *sum;
  }

 private:
  std::string full(const std::string& key) const { return address_.prefix + '/' + key; }

  template <class Work>
  void translate(Work&& work) const {
    try {
      work();
    } catch (const SystemLimitError&) {
      throw;
    } catch (const Error& error) {
      throw Error(fmt::format("the store at {}: {}", place_, error.what()));
    }
  }

  std::string single(Message message) const {
    require(message.size() == 1, "the store at {}: {} answers to one question", place_,
            message.size());
    return std::move(message[0]);
  }

  Message ask(const Message& request) {
    std::optional<Message> answer;
    const std::lock_guard lock(mutex_);
    translate([&] {
      const std::string bytes = encode(request);
      require(bytes.size() <= kLongestMessage, "a message of {} bytes is too long", bytes.size());
      const auto deadline = limit_ ? steady_clock::now() + *limit_ : Socket::kNone;
      socket_.send(std::as_bytes(std::span(bytes)), deadline);
      std::array<std::byte, sizeof(std::uint32_t)> head;
      socket_.receive(head, deadline);
      const std::size_t size = decode_length(head);
      require(size <= kLongestMessage, "an answer of {} bytes is too long", size);
      std::string body(size, '\0');
      socket_.receive(std::as_writable_bytes(std::span(body)), deadline);
      answer = decode(body);
      require(answer.has_value(), "an answer is malformed");
    });
    return std::move(*answer);
  }

  const RendezvousAddress address_;
  const std::string place_;
  const std::unique_ptr<RendezvousServer> server_;
  std::mutex mutex_;  // guards the connection
  std::optional<milliseconds> limit_;
  Socket socket_;
};

}  // namespace

RendezvousAddress rendezvous_address(const WorldConfig& config) {
  return {.host = config.master_address,
          .port = config.master_port,
          .prefix = config.store_prefix,
          .secret = config.secret,
          .of_torchrun = config.store_is_torchruns};
}

std::unique_ptr<Rendezvous> Rendezvous::serve(const RendezvousAddress& address,
                                              const std::string& listen) {
  std::unique_ptr<RendezvousServer> server;
  const std::string& host = listen.empty() ? address.host : listen;
  try {
    server = std::make_unique<RendezvousServer>(listen_at(host, address.port), address.secret);
  } catch (const SystemLimitError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("the store at {}:{}: {}", host, address.port, error.what()));
  }
  RendezvousAddress found = address;
  found.port = server->port();
  return std::make_unique<ClientStore>(found, milliseconds(10000), std::move(server));
}

std::unique_ptr<Rendezvous> Rendezvous::connect(const RendezvousAddress& address,
                                                milliseconds limit) {
  if (address.of_torchrun) return connect_torch_store(address, limit);
  return std::make_unique<ClientStore>(address, limit);
}

}  // namespace plait
