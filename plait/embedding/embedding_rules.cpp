#include "plait/embedding/embedding_rules.h"

#include "plait/base/names.h"

namespace plait {
namespace {

constexpr Names<BagMode, 3> kModes{"mode", {"sum", "mean", "max"}};

}  // namespace

BagMode parse_bag_mode(std::string_view name) { return kModes.parse(name); }
std::string_view to_string(BagMode mode) { return kModes.of(mode); }

}  // namespace plait
