// Copies of large memory.
#pragma once

#include <cstddef>

namespace plait {

// Copies bytes that do not overlap, by all threads.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace plait
