#include "plait/measure/study/entry.h"

#include <array>

namespace plait {
namespace {

constexpr std::array<std::string_view, 20> kParts{
    "step",      "link",      "sum",        "waiting", "fetching",    "summing", "ordering",
    "partition", "placing",   "first step", "epoch",   "training",    "ahead",   "in turn",
    "sampling",  "gathering", "computing",  "rows",    "1,000 reads", "memory"};

}  // namespace

std::string_view to_string(StudyPart part) { return kParts[static_cast<std::size_t>(part)]; }

}  // namespace plait
