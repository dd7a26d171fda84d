// Leaving a world where no World is destroyed: by a failure that is no C++ exception, as when
// Python ends by one of its own, and before a process ends by _exit().
#pragma once

#include <string>

namespace plait {

// Tells the other ranks at once that this one "failed with REASON". No function of this process's
// World may be called after it; harmless if there is none. If a rank is lost, this process ends
// after another timeout of the ranks, whatever it does.
void fail_world(const std::string& reason);
// Waits for the other ranks and leaves, as at the end of the process; likewise harmless.
void leave_world();

}  // namespace plait
