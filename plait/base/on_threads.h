// Threads for code that is compiled without OpenMP, as that of CUDA is.
#pragma once

#include <cstddef>
#include <functional>

namespace plait {

// Calls body(0), body(1), ... at the same time, once for each thread that there is, but at most
// `most` times. Throws as parallel_for().
void on_threads(std::size_t most, const std::function<void(std::size_t)>& body);

}  // namespace plait
