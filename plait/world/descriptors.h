// Files, sockets and pipes that a process of a world opens at the same time. If they ran out,
// connections that ranks need would wait for ever; so room for them is asked for at the start.
#pragma once

namespace plait {

// Opens on /dev/null each of stdin, stdout and stderr that this program was started without, so
// that no file or connection gets its number. They are opened in the wrong direction, so that
// reading or writing them fails as before. Ranks inherit them.
void hold_standard_descriptors();

// Ask for the room of one of `ranks` ranks, also for channels that it opens, and of the launcher,
// which keeps the store. Each raises this process's limit as far as it may, and throws Error if
// that is too low.
void require_descriptors_of_rank(int ranks, bool keeps_store, int channels = 0);
void require_descriptors_of_launcher(int ranks);

}  // namespace plait
