#include "plait/apps/rows.h"

namespace plait {

std::span<const App> apps() {
  static const std::vector<App> all = {kBfs, kComponents};
  return all;
}

}  // namespace plait
