#include "plait/base/on_threads.h"

#include <algorithm>

#include "plait/base/parallel.h"

namespace plait {

void on_threads(std::size_t most, const std::function<void(std::size_t)>& body) {
  parallel_for(std::min(static_cast<std::size_t>(thread_count()), most), body);
}

}  // namespace plait
