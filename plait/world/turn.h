// The turn of a process among the programs of one job.
//
// torchrun keeps one store for a whole job, in which several programs may run one after the other:
// torchrun ... sh -c "plait train a && plait train b". Each rank counts its processes that join, in
// the store: the processes with the same number meet, under a prefix with this number, so that no
// key of an earlier world is read by a later one, however that one ended. A process whose turn has
// come tells the ranks that still wait in the world before, unless that one ended well: its
// predecessor will not come there any more.
//
// Ranks that join a different number of times do not meet: they end with an error.
#pragma once

#include <cstdint>
#include <string>

#include "plait/world/rendezvous.h"
#include "plait/world/world.h"

namespace plait {

// Takes the next turn of this rank in torchrun's store, and returns the prefix of its keys. Throws
// Error if the store does not answer within the join timeout.
std::string take_turn(const WorldConfig& config);
// Notes in the store of a world that all of its ranks have left it.
void end_turn(Rendezvous& store);
// Returns the prefix that this process's last turn has; the environment's if it has taken none.
std::string prefix_of_turn(const WorldConfig& config);

}  // namespace plait
