// The record of a lost rank in the store. The key `lost` is there from the start; the first loss
// replaces its value, and later ones do not.
#pragma once

#include <optional>
#include <string>

#include "plait/world/rendezvous.h"

namespace plait {

inline constexpr const char* kLostKey = "lost";
inline constexpr int kNoRank = -1;

// The loss of one rank.
struct Loss {
  int rank = kNoRank;
  std::string reason;  // "was killed by signal 9 (Killed)"; for its own failure "failed ..."
  // The rank's work at that time, if the process that tells of the loss knows it.
  std::optional<std::string> phase;

  // Tells whether the rank ended by an error of its own.
  bool own_failure() const { return reason.starts_with("failed"); }
};

// Returns the key under which a rank that has failed by itself puts the text that it prints.
std::string failure_key(int rank);

// Makes the key `lost`; harmless if it exists. This and announce_loss() throw Error if the store
// does not answer.
void prepare_loss(Rendezvous& store);
// Returns the loss that a value of the key describes, in printable texts; nothing if it is
// malformed or there is none.
std::optional<Loss> parse_loss(const std::string& value);
// Puts `loss` into the store unless another was first; returns the first one.
Loss announce_loss(Rendezvous& store, const Loss& loss);

}  // namespace plait
