// The steps by which file descriptors go from process to process of a host: over Unix-domain
// sockets in the abstract namespace, which are in no file system, under random names. Any user may
// connect, so both sides ask the kernel whose process the other one is.
//
// No step waits: a caller repeats one that returns EAGAIN, and looks meanwhile whether ranks live.
#pragma once

#include <array>
#include <optional>

#include "plait/world/shared_memory.h"

namespace plait {

// The name of a socket.
using SocketName = std::array<unsigned char, 16>;

// Returns a random name. Throws Error.
SocketName random_socket_name();
// Returns a socket that listens there. Throws SystemLimitError, or Error.
Descriptor listen_at(const SocketName& name);
// Returns a socket for connect_to(); it is not open if there are no descriptors (errno).
Descriptor open_socket();
// Connects to a process of this user. Returns an errno, or 0: EACCES for another user's.
int connect_to(const Descriptor& socket, const SocketName& name);
// Returns a connection of a process of this user, or none (errno; 0 if it was another user's).
Descriptor accept_from(const Descriptor& listener);

// Sends `own` and the number of this rank. Returns an errno, or 0.
int send_descriptor(const Descriptor& socket, int rank, const Descriptor& own);

// A message as it has come: from a rank, or -1 if it is malformed.
struct ReceivedDescriptor {
  int rank = -1;
  Descriptor descriptor;
  bool cut = false;  // this process had no room for the descriptor
};
// Returns nothing if it has not come yet.
std::optional<ReceivedDescriptor> receive_descriptor(const Descriptor& socket);

// Waits for at most 20 ms until a socket can be read. It only sleeps if there is none.
bool is_readable(const Descriptor& socket);

}  // namespace plait
