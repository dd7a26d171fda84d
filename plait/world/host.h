// This host, as the ranks see it.
#pragma once

#include <string>

namespace plait {

// Equal on two ranks exactly if they can share memory: the kernel's boot id and the network
// namespace, in which the ranks' sockets have their names. PLAIT_HOST_ID overrides it, so that
// one machine can play several hosts.
std::string host_identity();

// The address of the interface through which this host reaches `host`. Throws Error when the name
// cannot be resolved or no route leads there.
std::string local_address_towards(const std::string& host, int port);

}  // namespace plait
