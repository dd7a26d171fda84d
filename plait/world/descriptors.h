// Files, sockets and pipes that a process of a world opens at the same time. Where they run out,
// connections that ranks need would wait for ever; so their number is asked for at the start.
#pragma once

namespace plait {

// Of one of `ranks` ranks, and of the launcher, which keeps the store. Each raises this process's
// limit as far as it may, and throws Error if that is too low.
void require_descriptors_of_rank(int ranks, bool keeps_store);
void require_descriptors_of_launcher(int ranks);

}  // namespace plait
