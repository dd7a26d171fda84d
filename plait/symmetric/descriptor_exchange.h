// Gives every rank of a host the file descriptors of all others.
#pragma once

#include <functional>

#include "plait/world/shared_memory.h"
#include "plait/world/world.h"

namespace plait {

// Makes this rank's memory, and returns its descriptor.
using MakeDescriptor = std::function<Descriptor()>;
// Maps the memory of another rank.
using TakeDescriptor = std::function<void(int rank, const Descriptor& descriptor)>;

// Collective, on one host. Gives the descriptor that make() returns to all other ranks, and calls
// take() with the descriptor of each of them, which is closed after that. Few descriptors are open
// at the same time, however many ranks there are.
//
// Descriptors travel over Unix-domain sockets in the abstract namespace, which are in no file
// system; their names are random and known through the World alone. Both sides ask the kernel who
// the other one is, and deal with processes of this user only.
//
// If anything fails on one rank, all ranks throw the same error, with its number: DoesNotFitError
// if make() or take() throws an Error, Error if descriptors run out or a socket cannot be used.
// Throws LostRankError if a rank is lost.
void exchange_descriptors(World& world, const MakeDescriptor& make, const TakeDescriptor& take);

}  // namespace plait
