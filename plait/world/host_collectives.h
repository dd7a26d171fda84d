// Collectives of the ranks of one host, through memory that they share: a word takes microseconds,
// where a message over TCP takes several switches between processes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plait/world/collectives.h"
#include "plait/world/rendezvous.h"

namespace plait {

// The place of this rank in a group of one host.
struct HostGroup {
  int rank = 0;
  std::vector<int> numbers;  // of the group's ranks in messages
  std::string key;           // in the store, under which no group has met before
};

// Collective. Returns when all ranks have joined. The first one makes the memory, and hands it to
// the others over a socket (descriptor_socket.h), whose name it puts into the store. `check_join`
// is called again and again while this rank waits for others to join; `check`, unless it is empty,
// about every 20 ms while it waits in an operation, by the thread that has called that. What they
// throw ends the wait. Throws DoesNotFitError, SystemLimitError if there are no descriptors left,
// and Error, also after `limit`. The operations of the group throw Error on every rank that waits
// for a rank which has failed in one, or has destroyed its group; a process that is killed tells
// nobody, and only `check` can know.
std::unique_ptr<Collectives> join_host_group(const HostGroup& group, Rendezvous& store,
                                             std::chrono::milliseconds limit,
                                             const std::function<void()>& check_join,
                                             std::function<void()> check);

}  // namespace plait
