#include "plait/world/loss.h"

#include <fmt/format.h>

#include <limits>

#include "plait/base/printable.h"
#include "plait/world/rendezvous_wire.h"

namespace plait {
namespace {

constexpr const char* kNobody = "-";

}  // namespace

std::string failure_key(int rank) { return fmt::format("failed/{}", rank); }

void prepare_loss(Rendezvous& store) { store.create(kLostKey, kNobody); }

// "RANK\nREASON", and "\nPHASE" where it is known.
std::optional<Loss> parse_loss(const std::string& value) {
  const auto first = value.find('\n');
  if (first == std::string::npos) return std::nullopt;
  const auto second = value.find('\n', first + 1);
  const auto rank = parse_number(std::string_view(value).substr(0, first));
  if (!rank || *rank < kNoRank || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  Loss loss{static_cast<int>(*rank), printable(value.substr(first + 1, second - first - 1)), {}};
  if (second != std::string::npos) loss.phase = printable(value.substr(second + 1));
  return loss;
}

Loss announce_loss(Rendezvous& store, const Loss& loss) {
  std::string value = std::to_string(loss.rank) + '\n' + loss.reason;
  if (loss.phase) value += '\n' + *loss.phase;
  return parse_loss(store.replace(kLostKey, kNobody, value)).value_or(loss);
}

}  // namespace plait
