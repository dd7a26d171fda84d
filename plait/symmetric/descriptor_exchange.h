// Gives every rank of a host the file descriptors of all others.
#pragma once

#include <string>
#include <vector>

#include "plait/symmetric/shared_memory.h"
#include "plait/world/world.h"

namespace plait {

// Collective, on one host. Returns one descriptor per rank; the own one's place stays empty. A rank
// that has none to give says why in `failure`: then all ranks throw this as agree_on_failure()
// does.
//
// Descriptors travel over Unix-domain sockets in the abstract namespace, which are in no file
// system; their names are random and known through the World alone. Both sides ask the kernel who
// the other one is, and deal with processes of this user only. Throws LostRankError, and Error if a
// socket cannot be used.
std::vector<Descriptor> exchange_descriptors(World& world, const Descriptor& own,
                                             const std::string& failure);

}  // namespace plait
