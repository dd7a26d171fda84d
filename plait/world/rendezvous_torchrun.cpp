// This file and gloo.cpp are all of the room that includes libtorch.
#include "plait/world/rendezvous_torchrun.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>

#include <cstdlib>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "plait/base/error.h"

namespace plait {
namespace {

using std::chrono::milliseconds;

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

std::vector<std::uint8_t> to_bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string to_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class TorchStore : public Rendezvous {
 public:
  TorchStore(const RendezvousAddress& address, milliseconds limit)
      : place_(fmt::format("{}:{}", address.host, address.port)), port_(address.port) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(address.port);
    options.waitWorkers = false;
    options.timeout = limit;
    translate(place_, [&] {
      store_ = c10::make_intrusive<c10d::PrefixStore>(
          address.prefix, c10::make_intrusive<c10d::TCPStore>(address.host, options));
    });
  }

  int port() const override { return port_; }

  void set(const std::string& key, const std::string& value) override {
    translate(place_, [&] { store_->set(key, to_bytes(value)); });
  }
  std::optional<std::string> get(const std::string& key, milliseconds limit) override {
    return translate(place_, [&]() -> std::optional<std::string> {
      // Zero means "for ever" to c10d.
      if (!store_->check({key})) try {
          store_->wait({key}, std::max(limit, milliseconds(1)));
        } catch (const c10::Error&) {
          // It is too late, or the connection is broken; then this throws in turn.
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
  const std::string place_;
  const int port_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

void quieten_torch() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
    c10::initLogging();
  });
}

std::unique_ptr<Rendezvous> connect_torch_store(const RendezvousAddress& address,
                                                milliseconds limit) {
  quieten_torch();
  return std::make_unique<TorchStore>(address, limit);
}

}  // namespace plait
