// Checks of aggregation on GPUs, with one process per rank, against three loops in double
// precision. Ranks share GPUs where there are fewer.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/row_stride.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {

inline const std::vector<Strategy> kPartialAndPaged{Strategy::partial, Strategy::paged};

// A case on this rank's GPU: its arrays and an aggregator.
class Placed {
 public:
  Placed(World& world, const Case& c, const Partition& partition, const ExchangeOptions& options)
      : rank_(world.rank()),
        partition_(partition),
        case_(c),
        x_(std::span<const float>(own_part(c.x, partition, rank_, c.width))),
        scale_(std::span<const float>(own_part(c.scale, partition, rank_, 1))),
        y_(x_.size()),
        aggregator_(make_gpu_aggregator(world, c.graph, false, partition, options)) {}
  // Another case of the same graph, with the same aggregator.
  Placed(const Placed& other, const Case& c)
      : rank_(other.rank_),
        partition_(other.partition_),
        case_(c),
        x_(std::span<const float>(own_part(c.x, partition_, rank_, c.width))),
        scale_(std::span<const float>(own_part(c.scale, partition_, rank_, 1))),
        y_(x_.size()),
        aggregator_(other.aggregator_) {}

  void reserve(std::uint64_t width) { aggregator_->reserve(width); }

  std::vector<float> run(const Way& way) {
    const Scaling scaling{way.pre ? scale_.data() : nullptr, way.post ? scale_.data() : nullptr,
                          way.weighted};
    if (y_.size() > 0) check_cuda(cudaMemset(y_.data(), 0xff, y_.size() * sizeof(float)), "y");
    const auto direction = way.transposed ? &Aggregator::backward : &Aggregator::forward;
    ((*aggregator_).*direction)(scaling, x_.data(), y_.data(), case_.width);
    aggregator_->cost();  // throws if a wait has failed
    return y_.to_host();
  }

  // Returns the bytes that a run brings to this rank.
  std::uint64_t bytes_fetched(const Way& way) {
    const std::uint64_t before = aggregator_->cost().bytes_fetched;
    run(way);
    return aggregator_->cost().bytes_fetched - before;
  }
  EdgeOffset edges() const { return aggregator_->edges(); }

  void expect_right(const Way& way, double tolerance, const std::string& name) {
    const Expected expected(case_, way);
    const std::vector<float> y = run(way), again = run(way);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::uint64_t at =
          partition_.vertex(rank_, i / case_.width) * case_.width + i % case_.width;
      expect(std::abs(y[i] - expected.y[at]) <= tolerance * expected.bound[at],
             name + fmt::format(": row {} column {} is {}, not {}", i / case_.width,
                                i % case_.width, y[i], expected.y[at]));
    }
    expect(y.empty() || std::memcmp(y.data(), again.data(), y.size() * sizeof(float)) == 0,
           name + ": not the same bits again");
  }

 private:
  int rank_;
  const Partition& partition_;
  const Case& case_;
  DeviceArray<float> x_, scale_, y_;
  std::shared_ptr<Aggregator> aggregator_;
};

// Checks every partition, strategy, wire and way.
inline void check_case(World& world, const Case& c, const std::vector<Strategy>& strategies,
                       DeviceTransport transport = DeviceTransport::vmm) {
  for (const PartitionScheme scheme : partition_schemes()) {
    const Partition partition = make_partition(scheme, c.graph, world.size());
    for (const Strategy strategy : strategies)
      for (const DType wire : {DType::f32, DType::bf16}) {
        const bool fp32 = strategy == Strategy::get || strategy == Strategy::paged;
        if (fp32 && wire != DType::f32) continue;
        // NCCL takes a second or two to join.
        const bool nccl = strategy == Strategy::bulk || strategy == Strategy::replicate;
        if (nccl && world.size() > 1 && (scheme != PartitionScheme::hash || c.seed > 1)) continue;
        Placed placed(world, c, partition,
                      {.route = {.strategy = strategy, .transport = transport, .wire = wire},
                       .max_width = c.width});
        for (int bits = 0; bits < 16; ++bits) {
          const Way way{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
          placed.expect_right(way, wire == DType::f32 ? 2e-6 : 5e-3,
                              fmt::format("{} {} wire {} width {} way {}", to_string(scheme),
                                          to_string(strategy), to_string(wire), c.width, bits));
        }
      }
  }
}

// Passes end at cuts that meet blocks anywhere, which graphs of this size would not have by
// themselves.
inline void check_passes(World& world, const Case& c, Strategy strategy,
                         DeviceTransport transport = DeviceTransport::vmm) {
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash})
    for (const DType wire : {DType::f32, DType::bf16}) {
      const Partition partition = make_partition(scheme, c.graph, world.size());
      Placed placed(world, c, partition,
                    {.route = {.strategy = strategy, .transport = transport, .wire = wire},
                     .max_width = c.width,
                     .tuning = {.pass_shares = {0.1, 0.4, 0.5, 0.95}}});
      placed.expect_right({.pre = true, .post = true}, wire == DType::f32 ? 2e-6 : 5e-3,
                          fmt::format("{} {} wire {} in passes, width {}", to_string(scheme),
                                      to_string(strategy), to_string(wire), c.width));
    }
}

// Checks sums of arrays over ranks, of several sizes.
inline void check_reduce(World& world, const ExchangeOptions& options = {.max_width = 1}) {
  const Case c(1);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  const auto aggregator = make_gpu_aggregator(world, c.graph, false, partition, options);
  for (const std::size_t size : {1, 1000, 300000}) {
    std::vector<float> mine(size), sums(size);
    for (int rank = 0; rank < world.size(); ++rank)
      for (std::size_t i = 0; i < size; ++i) {
        const float value = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101);
        sums[i] += value;
        if (rank == world.rank()) mine[i] = value;
      }
    for (int repeat = 0; repeat < 3; ++repeat) {
      DeviceArray<float> values{std::span<const float>(mine)};
      aggregator->all_reduce_sum(values.data(), size);
      aggregator->cost();
      expect(values.to_host() == sums, fmt::format("the sum of {} numbers", size));
    }
  }
}

inline void expect_on_ranks(const char* program) {
  for (const int ranks : {2, 3, 4}) {
    const Outcome outcome = run_job({.program = program, .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << program << ", " << ranks << " ranks: " << outcome.all_errors();
  }
}

}  // namespace plait::test
