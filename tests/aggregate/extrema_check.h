// Checks extrema of neighbours against three loops: the same bits, as nothing is added up.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/aggregate/operations.h"
#include "plait/partition/partition.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {

// The aggregator has the case's graph, cut by the partition. `name` begins the text of a failure.
inline void check_extrema(World& world, const Case& c, const Partition& partition,
                          Aggregator& aggregator, std::string_view name) {
  const std::vector<float> x = own_part(c.x, partition, world.rank(), c.width);
  for (const Extremum which : {Extremum::greatest, Extremum::least}) {
    std::vector<float> y(x.size(), -7);
    aggregator.over_edges(
        x.data(), ExtremumForward{.edges = {}, .width = c.width, .y = y.data(), .which = which});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto row = c.graph.row(partition.vertex(world.rank(), i / c.width));
      float extreme = row.empty() ? 0 : c.x[row[0] * c.width + i % c.width];
      for (const std::uint64_t j : row) {
        const float value = c.x[j * c.width + i % c.width];
        extreme = which == Extremum::least ? std::min(extreme, value) : std::max(extreme, value);
      }
      expect(y[i] == extreme,
             fmt::format("{}: extremum at {} is {}, not {}", name, i, y[i], extreme));
    }
  }
}

}  // namespace plait::test
