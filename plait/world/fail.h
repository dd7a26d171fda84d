// Leaving a world by a failure that is no C++ exception, as when Python ends by one of its own.
#pragma once

#include <string>

namespace plait {

// Tells the other ranks at once that this one "failed with REASON". No function of this process's
// World may be called after it; harmless if there is none. If a rank is lost, this process ends
// after another timeout of the ranks, whatever it does.
void fail_world(const std::string& reason);

}  // namespace plait
