// Collectives over TCP through c10d's Gloo process group. This header needs no header of libtorch.
//
// Once joined, Gloo itself waits for a peer for ever: a rank may compute, or pause, for long. It is
// liveness.h that ends a wait for a rank that is gone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "plait/world/collectives.h"
#include "plait/world/rendezvous.h"

namespace plait {

// The place of this rank in a group.
struct GlooOptions {
  int rank = 0;
  int size = 1;
  RendezvousAddress store;
  std::string interface;  // name or address of the network interface to use
  std::chrono::milliseconds join_timeout{60000};
};

// Returns when all ranks have joined. Throws Error after the join timeout. All members throw Error
// when a peer vanishes.
std::unique_ptr<Collectives> join_gloo(const GlooOptions& options);

}  // namespace plait
