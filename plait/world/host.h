// The identity and address of this host, as the ranks see it.
#pragma once

#include <string>

namespace plait {

// Returns a text that is equal on two ranks exactly if they can share memory: the kernel's boot id
// and the network namespace, in which the ranks' sockets have their names. PLAIT_HOST_ID overrides
// it, so that one machine can play several hosts.
std::string host_identity();

// Returns the address of the interface through which this host reaches `host`. Throws Error if the
// name cannot be resolved or no route leads there.
std::string local_address_towards(const std::string& host, int port);

// Tells whether `interface` is the name of an interface of this host, or an address, in figures, at
// which it may listen.
bool is_of_this_host(const std::string& interface);

}  // namespace plait
