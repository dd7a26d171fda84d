// The rendezvous store on c10d's TCPStore. This file and gloo.cpp are all that includes libtorch.
#include "plait/world/store.h"

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "plait/base/error.h"

namespace plait {
namespace {

using std::chrono::milliseconds;

// c10d logs every broken connection with a stack trace. Plait says such things itself, in one line;
// TORCH_CPP_LOG_LEVEL=INFO brings c10d's account back.
void quieten_torch() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
    c10::initLogging();
  });
}

// Runs an operation on the store and turns c10d's exceptions, which carry stack traces, into ours.
template <class Operation>
auto translate(const std::string& place, Operation&& operation) {
  const auto fail = [&](const std::string& text) -> Error {
    return Error(fmt::format("the store at {}: {}", place, text.substr(0, text.find('\n'))));
  };
  try {
    return operation();
  } catch (const c10::Error& error) {
    throw fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw fail(error.what());
  }
}

// A socket that listens on 127.0.0.1 alone: c10d's own would listen on every interface.
int listen_on_loopback(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (descriptor < 0 ||
      ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor, SOMAXCONN) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    throw Error(fmt::format("the store cannot listen on 127.0.0.1:{}: {}", port, reason));
  }
  return descriptor;
}

int port_of(int descriptor) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string to_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class TcpStore : public Store {
 public:
  TcpStore(const StoreAddress& address, const c10d::TCPStoreOptions& options)
      : place_(fmt::format("{}:{}", address.host, options.port)) {
    translate(place_, [&] {
      tcp_ = c10::make_intrusive<c10d::TCPStore>(address.host, options);
      store_ = c10::make_intrusive<c10d::PrefixStore>(address.prefix, tcp_);
    });
  }

  int port() const override { return tcp_->getPort(); }

  void set(const std::string& key, const std::string& value) override {
    translate(place_, [&] { store_->set(key, to_bytes(value)); });
  }
  std::optional<std::string> get(const std::string& key, milliseconds limit) override {
    return translate(place_, [&]() -> std::optional<std::string> {
      // Zero means "for ever" to c10d.
      if (!store_->check({key})) try {
          store_->wait({key}, std::max(limit, milliseconds(1)));
        } catch (const c10::Error&) {
          // Too late, or a broken connection, in which case this throws in turn.
          if (!store_->check({key})) return std::nullopt;
        }
      return to_text(store_->get(key));
    });
  }
  std::vector<std::string> get_all(const std::vector<std::string>& keys) override {
    return translate(place_, [&] {
      std::vector<std::string> values;
      for (const auto& bytes : store_->multiGet(keys)) values.push_back(to_text(bytes));
      return values;
    });
  }
  void create(const std::string& key, const std::string& value) override {
    translate(place_, [&] { store_->compareSet(key, {}, to_bytes(value)); });
  }
  std::string replace(const std::string& key, const std::string& expected,
                      const std::string& value) override {
    return translate(place_, [&] {
      return to_text(store_->compareSet(key, to_bytes(expected), to_bytes(value)));
    });
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return translate(place_, [&] { return store_->add(key, amount); });
  }

 private:
  std::string place_;
  c10::intrusive_ptr<c10d::TCPStore> tcp_;
  c10::intrusive_ptr<c10d::Store> store_;
};

c10d::TCPStoreOptions store_options(int port) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.waitWorkers = false;
  return options;
}

}  // namespace

std::unique_ptr<Store> Store::serve(const StoreAddress& address, bool loopback_only) {
  quieten_torch();
  auto options = store_options(address.port);
  options.isServer = true;
  if (loopback_only) {
    options.masterListenFd = listen_on_loopback(address.port);
    options.port = static_cast<std::uint16_t>(port_of(*options.masterListenFd));
  }
  return std::make_unique<TcpStore>(address, options);
}

std::unique_ptr<Store> Store::connect(const StoreAddress& address, milliseconds limit) {
  quieten_torch();
  auto options = store_options(address.port);
  options.timeout = limit;
  return std::make_unique<TcpStore>(address, options);
}

}  // namespace plait
