// Finds out whether all ranks were given the same settings, files and data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/world/together.h"
#include "plait/world/world.h"

namespace plait {

// Pairs of a name and a value; neither holds a zero byte.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Collective; one small exchange. Throws UsageError, the same line on every rank, unless all give
// the same text, which names the call that they are about to make: "plait.sum of float32". Only its
// first 111 bytes count. Returns what each rank gives with it. World's all_gather() begins so, too.
struct Given {
  std::uint64_t count = 0;
  double sum = 0;
};
std::vector<Given> agree(World& world, std::string_view call, const Given& mine = {});

// Collective. Returns the first fact that differs between ranks, the same text on each: "KEY is 3
// on rank 0, but 4 on ranks 2-5, 7"; empty if there is none.
std::string first_difference(World& world, const Facts& mine);

// Collective. Throws E on every rank unless all give the same facts. `what` begins the line: "ranks
// read different graphs".
template <class E = Error>
void require_equal(World& world, const std::string& what, const Facts& mine) {
  const std::string found = first_difference(world, mine);
  require_on_all<E>(found.empty(), "{}: {}; give every rank the same", what, found);
}

}  // namespace plait
