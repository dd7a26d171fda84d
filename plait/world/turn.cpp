#include "plait/world/turn.h"

#include <fmt/format.h>

#include "plait/world/loss.h"

namespace plait {
namespace {

constexpr const char* kTurnEnded = "ended";

std::string& last_prefix() {
  static std::string prefix;
  return prefix;
}

std::string prefix_of(const WorldConfig& config, std::int64_t turn) {
  return fmt::format("{}/turn{}", config.store_prefix, turn);
}

// Ranks that still wait in the world of that prefix do so in vain.
void leave_behind(RendezvousAddress address, const WorldConfig& config, std::string prefix) {
  address.prefix = std::move(prefix);
  const auto store = Rendezvous::connect(address, config.join_timeout);
  if (store->get(kTurnEnded, std::chrono::milliseconds(1))) return;
  prepare_loss(*store);
  announce_loss(*store, {config.rank, "has left this program and begun its next one", ""});
}

}  // namespace

std::string take_turn(const WorldConfig& config) {
  const RendezvousAddress address = rendezvous_address(config);
  const auto store = Rendezvous::connect(address, config.join_timeout);
  const std::int64_t turn = store->add(fmt::format("turn/{}", config.rank), 1);
  if (turn > 1) leave_behind(address, config, prefix_of(config, turn - 1));
  return last_prefix() = prefix_of(config, turn);
}

void end_turn(Rendezvous& store) { store.set(kTurnEnded, "1"); }

std::string prefix_of_turn(const WorldConfig& config) {
  return last_prefix().empty() ? config.store_prefix : last_prefix();
}

}  // namespace plait
