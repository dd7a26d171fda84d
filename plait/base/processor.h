// The processor of this host.
#pragma once

#include <cstdint>
#include <string>

namespace plait {

// Returns the name of the processor's model, or "unknown processor".
std::string processor_name();

// Returns the bytes of the last cache, which cores share, or of the largest cache that the system
// tells of; 0 if it tells of none.
std::uint64_t processor_cache();

}  // namespace plait
