// Sums of rows that cross between CPU ranks as bf16: against loops in double precision that round
// each remote row, after it is scaled, and no other number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "plait/aggregate/aggregate.h"
#include "plait/base/bf16.h"
#include "plait/base/error.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using Limits = std::numeric_limits<float>;

constexpr std::array<std::uint64_t, 4> kWidths{1, 3, 8, 17};
// Numbers that round to even, to infinity and to nothing, and numbers that have no neighbours.
constexpr std::array kSpecial{
    1.00390625f, 1.01171875f, -0x1.ffp127f,         0x1.fefffep127f,    Limits::max(),      1e-40f,
    4e-41f,      -0.0f,       Limits::denorm_min(), Limits::infinity(), Limits::quiet_NaN()};

// Row k of the result in double precision: the sum of scaled rows, those of other ranks rounded.
double sum_of(const Case& c, const Partition& partition, std::uint64_t row, std::uint64_t k,
              bool transposed, double& bound) {
  double sum = 0;
  for (std::uint64_t i = 0; i < c.graph.vertices(); ++i)
    for (EdgeOffset e = c.graph.offsets[i]; e < c.graph.offsets[i + 1]; ++e) {
      const std::uint64_t j = c.graph.neighbours[e];
      const auto [to, from] = transposed ? std::pair(j, i) : std::pair(i, j);
      if (to != row) continue;
      const float value = c.scale[from] * c.x[from * c.width + k];
      const bool crosses = partition.owner(from) != partition.owner(to);
      const double term = double{c.graph.weight(e)} * (crosses ? to_float(to_bf16(value)) : value);
      sum += term, bound += std::abs(term);
    }
  return sum;
}

void check_sums(World& world, unsigned seed, PartitionScheme scheme, Strategy strategy) {
  const std::uint64_t vertices = 5 + 17 * seed;
  const Case c(random_csr<std::uint32_t>(vertices, 6 * vertices, seed, true),
               kWidths[seed % kWidths.size()], seed);
  const Partition partition = make_partition(scheme, c.graph, world.size());
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  const auto scale = own_part(c.scale, partition, world.rank(), 1);
  const auto aggregator =
      make_aggregator(world, c.graph, false, partition,
                      {.route = {.strategy = strategy, .wire = DType::bf16}, .max_width = c.width});
  std::vector<float> y(x.size(), NAN);
  for (const bool transposed : {false, true}) {
    if (transposed)
      aggregator->backward({nullptr, scale.data(), true}, x.data(), y.data(), c.width);
    else
      aggregator->forward({scale.data(), nullptr, true}, x.data(), y.data(), c.width);
    for (std::uint64_t r = 0; r < partition.size(world.rank()); ++r)
      for (std::uint64_t k = 0; k < c.width; ++k) {
        double bound = 0;
        const double wanted =
            sum_of(c, partition, partition.vertex(world.rank(), r), k, transposed, bound);
        expect(std::abs(y[r * c.width + k] - wanted) <= 2e-6 * bound,
               fmt::format("seed {} {} {} transposed {}: row {} column {} is {}, not {}", seed,
                           to_string(scheme), to_string(strategy), transposed, r, k,
                           y[r * c.width + k], wanted));
      }
  }
}

// Vertex v reads vertex v + 1 alone, so that y has the bits of what crossed.
void check_special(World& world, Strategy strategy) {
  const std::uint64_t vertices = 3 * kSpecial.size() + 1, width = 3;
  std::vector<EdgeOffset> offsets{0};
  std::vector<std::uint32_t> neighbours;
  for (std::uint32_t v = 0; v < vertices; ++v) {
    neighbours.push_back((v + 1) % static_cast<std::uint32_t>(vertices));
    offsets.push_back(v + 1);
  }
  const Case c({std::move(offsets), std::move(neighbours), {}}, width, 1);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  const auto value = [](std::uint64_t v, std::uint64_t k) {
    return kSpecial[(v + k) % kSpecial.size()];
  };
  std::vector<float> x;
  for (std::uint64_t r = 0; r < partition.size(world.rank()); ++r)
    for (std::uint64_t k = 0; k < width; ++k)
      x.push_back(value(partition.vertex(world.rank(), r), k));
  std::vector<float> y(x.size());
  const auto aggregator =
      make_aggregator(world, c.graph, false, partition,
                      {.route = {.strategy = strategy, .wire = DType::bf16}, .max_width = width});
  aggregator->forward({}, x.data(), y.data(), width);
  for (std::uint64_t r = 0; r < partition.size(world.rank()); ++r)
    for (std::uint64_t k = 0; k < width; ++k) {
      const std::uint64_t v = partition.vertex(world.rank(), r), from = (v + 1) % vertices;
      const float sent = value(from, k), found = y[r * width + k];
      const float wanted = partition.owner(from) == world.rank() ? sent : to_float(to_bf16(sent));
      expect(found == wanted || (std::isnan(found) && std::isnan(wanted)),
             fmt::format("{}: {} became {}, not {}", to_string(strategy), sent, found, wanted));
    }
}

// Bytes of rows that a rank is brought, and how many rows these are.
void check_bytes(World& world) {
  const Case c(random_csr<std::uint32_t>(60, 400, 3, false), 16, 3);
  const Partition partition = make_partition(PartitionScheme::vertices, c.graph, world.size());
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  std::vector<float> y(x.size());
  std::vector<std::uint64_t> bytes;
  for (const DType wire : {DType::f32, DType::bf16}) {
    const auto aggregator =
        make_aggregator(world, c.graph, false, partition,
                        {.route = {.strategy = Strategy::bulk, .wire = wire}, .max_width = 16});
    aggregator->forward({}, x.data(), y.data(), c.width);
    bytes.push_back(aggregator->cost().bytes_fetched);
  }
  expect(bytes[0] == (world.one_host() ? 1 : 2) * bytes[1], "messages have half the bytes");
}

void check_refused(World& world) {
  const Case c(2);
  const Partition partition = make_partition(PartitionScheme::edges, c.graph, world.size());
  const auto refused = [&](const auto& body) {
    try {
      body();
    } catch (const UsageError&) {
      return true;
    }
    return false;
  };
  const auto aggregator = make_aggregator(
      world, c.graph, false, partition,
      {.route = {.strategy = Strategy::bulk, .wire = DType::bf16}, .max_width = c.width});
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  std::vector<float> y(x.size());
  expect(refused([&] {
           aggregator->over_edges(x.data(),
                                  ExtremumForward{.edges = {}, .width = c.width, .y = y.data()});
         }),
         "maxima need rows as they are");
  expect(refused([&] {
           make_aggregator(world, c.graph, false, partition,
                           {.route = {.strategy = Strategy::get, .wire = DType::bf16}});
         }),
         "strategy get moves rows as they are");
}

const RankProgram kWire("aggregate bf16 rows", [](World& world) {
  for (const Strategy strategy : {Strategy::bulk, Strategy::replicate}) {
    for (unsigned seed = 0; seed < 5; ++seed)
      for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash})
        check_sums(world, seed, scheme, strategy);
    check_special(world, strategy);
  }
  check_refused(world);
  if (world.size() > 1) check_bytes(world);
});

TEST(WireTypes, RemoteRowsAreRoundedAndNoOthers) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome = run_job({"aggregate bf16 rows", ranks});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(WireTypes, MessagesBetweenHostsAreRoundedAlike) { run_on_hosts("aggregate bf16 rows", 3); }

}  // namespace
}  // namespace plait::test
