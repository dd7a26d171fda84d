// Leaving a world by a failure that is no C++ exception, as when Python ends by one of its own.
#pragma once

#include <string>

namespace plait {

// The other ranks learn at once that this one "failed with REASON". Nothing may be called of this
// process's World after it; harmless when there is none.
void fail_world(const std::string& reason);

}  // namespace plait
