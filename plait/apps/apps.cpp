#include "plait/apps/rows.h"

namespace plait {

std::span<const App> apps() {
  static const std::vector<App> all = {kBfs, kComponents, kKcore, kPagerank, kSssp};
  return all;
}

}  // namespace plait
