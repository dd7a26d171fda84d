// How the loss of a rank is told in the store. The key `lost` is there from the start; the first
// loss replaces its value, and later ones do not.
#pragma once

#include <optional>
#include <string>

#include "plait/world/store.h"

namespace plait {

inline constexpr const char* kLostKey = "lost";
inline constexpr int kNoRank = -1;

struct Loss {
  int rank = kNoRank;
  std::string reason;  // "was killed by signal 9 (Killed)"; of its own failure, "failed ..."
  std::optional<std::string> phase;  // what it was doing, where the one who tells knows it

  bool own_failure() const { return reason.starts_with("failed"); }
};

// Where a rank that has failed by itself puts the text that it prints.
std::string failure_key(int rank);

// Makes the key; harmless when it exists.
void prepare_loss(Store& store);
// The loss that a value of the key tells of, in printable texts; nothing if it is malformed.
std::optional<Loss> parse_loss(const std::string& value);
// Puts `loss` into the store unless another was first; returns the one that counts.
Loss announce_loss(Store& store, const Loss& loss);

}  // namespace plait
