// Files, sockets and pipes that a process of a world opens at the same time. If they ran out,
// connections that ranks need would wait for ever; so they are asked for before ranks wait for each
// other.
#pragma once

#include <string>

namespace plait {

// Opens on /dev/null each of stdin, stdout and stderr that this program was started without, so
// that no file or connection gets its number. They are opened in the wrong direction, so that
// reading or writing them fails as before. Ranks inherit them.
void hold_standard_descriptors();

// Returns if this process can open `count` descriptors now, besides those that are open. Raises its
// limit as far as it may, and throws SystemLimitError if that is too low. `use` is for the message:
// "to share memory".
void require_descriptors(int count, const std::string& use);
// Ask for the descriptors of one of `ranks` ranks that joins them, of a rank that joins another
// group of so many over the network (0: of one host), and of the launcher, which keeps the store.
void require_descriptors_of_rank(int ranks, bool keeps_store);
void require_descriptors_of_group(int ranks);
void require_descriptors_of_launcher(int ranks);

}  // namespace plait
