// Aggregation on GPUs, with one process per rank, against three loops in double precision. Ranks
// share GPUs where there are fewer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/library.h"
#include "plait/base/row_stride.h"
#include "plait/world/gather.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

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

// A width that no GPU has the memory for is refused on all ranks, and the room stays as it was.
const RankProgram kRefused("gpu aggregate after a refusal", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(4);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged}) {
    Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
    for (const std::uint64_t width : {std::uint64_t{1} << 40, std::uint64_t{1} << 62}) {
      bool refused = false;
      try {
        placed.reserve(width);
      } catch (const DoesNotFitError&) {
        refused = true;
      }
      expect(refused, fmt::format("{}: width {} is refused", to_string(strategy), width));
      placed.expect_right({.weighted = true}, 2e-6, std::string(to_string(strategy)));
    }
    placed.reserve(2 * c.width);
    placed.expect_right({.weighted = true}, 2e-6, std::string(to_string(strategy)));
  }
});

void check_case(World& world, const Case& c, const std::vector<Strategy>& strategies,
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
void check_passes(World& world, const Case& c, Strategy strategy,
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

// Graphs of which some ranks need few sums of many rows.
std::vector<Case> cases_for_sums() {
  std::mt19937 random(1);
  std::vector<Edge> star, hubs = random_edges(300, 60, 2), bipartite;
  for (std::uint64_t v = 1; v < 200; ++v) star.push_back({v, 0, 2}), star.push_back({0, v, 3});
  for (std::uint64_t v = 0; v < 300; ++v)
    for (const std::uint64_t hub : {17, 150, 290})
      hubs.push_back({v, hub, static_cast<float>(1 + random() % 4)});
  // Edges lead from 150 vertices to 10, twice from some to the latter.
  for (std::uint64_t target = 0; target < 10; ++target)
    for (int k = 0; k < 90; ++k) bipartite.push_back({10 + random() % 150, target, 0.5f});
  const auto csr = [](std::uint64_t vertices, const std::vector<Edge>& edges, bool weighted) {
    return build_csr(edge_list<std::uint32_t>(vertices, edges, weighted));
  };
  std::vector<Case> cases;
  cases.emplace_back(csr(200, star, true), 3, 1);
  cases.emplace_back(csr(300, hubs, true), 32, 2);
  cases.emplace_back(csr(160, bipartite, false), 64, 3);
  return cases;
}

// Returns the rows or sums that a rank is to get. Of each other rank, it gets all rows that an edge
// reads, or all rows if at least four fifths are read; with `sums`, one sum per row that reads
// some, if these are at most half as many.
std::uint64_t rows_to_get(const Case& c, const Partition& partition, int rank, bool transposed,
                          bool sums) {
  const auto ranks = static_cast<std::size_t>(partition.parts());
  std::vector<std::set<std::uint64_t>> read(ranks), readers(ranks);
  for (std::uint64_t i = 0; i < c.graph.vertices(); ++i)
    for (const std::uint64_t j : c.graph.row(i)) {
      const std::uint64_t to = transposed ? j : i, from = transposed ? i : j;
      if (partition.owner(to) != rank) continue;
      const auto owner = static_cast<std::size_t>(partition.owner(from));
      read[owner].insert(from), readers[owner].insert(to);
    }
  std::uint64_t rows = 0;
  for (int owner = 0; owner < partition.parts(); ++owner) {
    if (owner == rank) continue;
    const auto p = static_cast<std::size_t>(owner);
    const std::uint64_t size = partition.size(owner), some = read[p].size();
    const std::uint64_t sent = some + size / 5 >= size ? size : some;
    rows += sums && 2 * readers[p].size() <= sent ? readers[p].size() : sent;
  }
  return rows;
}

// Checks results and the bytes that cross: by the rule, and fewer than with rows alone.
void check_sums(World& world, const Case& c) {
  for (const PartitionScheme scheme : partition_schemes())
    for (const DType wire : {DType::f32, DType::bf16}) {
      const Partition partition = make_partition(scheme, c.graph, world.size());
      std::uint64_t bytes[2] = {};
      for (const bool sums : {false, true}) {
        Placed placed(
            world, c, partition,
            {.route = {.strategy = sums ? Strategy::partial : Strategy::pipelined, .wire = wire},
             .max_width = c.width});
        for (int bits = 0; bits < 16; ++bits) {
          const Way way{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
          const std::string name = fmt::format("graph {} {} {} wire {} way {}", c.seed,
                                               to_string(scheme), sums, to_string(wire), bits);
          placed.expect_right(way, wire == DType::f32 ? 2e-6 : 5e-3, name);
          const std::uint64_t found = placed.bytes_fetched(way);
          const std::uint64_t expected =
              rows_to_get(c, partition, world.rank(), way.transposed, sums) *
              row_bytes(c.width, wire);
          expect(found == expected, name + fmt::format(": {} bytes, not {}", found, expected));
          if (!way.transposed) bytes[sums] = found;
        }
        EdgeOffset edges = 0;
        for (const EdgeOffset of_rank : gather_values(world, placed.edges())) edges += of_rank;
        expect(edges == c.graph.edges(), "edges of own rows");
      }
      std::uint64_t all[2] = {};
      for (const int sums : {0, 1})
        for (const std::uint64_t of_rank : gather_values(world, bytes[sums])) all[sums] += of_rank;
      expect(all[1] < all[0] || scheme == PartitionScheme::metis,
             fmt::format("graph {} {}: sums save nothing", c.seed, to_string(scheme)));
    }
}

// Checks unscaled and scaled, back and forth, at each width, by one aggregator that has room for
// the greatest; and the bytes that cross.
void check_widths(World& world, Strategy strategy, DType wire) {
  const Csr32 graph = random_csr<std::uint32_t>(90, 1500, 7, true);
  const Case widest(graph, 130, 1);
  const Partition partition = make_partition(PartitionScheme::hash, graph, world.size());
  const Placed all(world, widest, partition,
                   {.route = {.strategy = strategy, .wire = wire}, .max_width = widest.width});
  const bool sums = strategy == Strategy::partial;
  for (std::uint64_t width = 1; width <= widest.width; ++width) {
    const Case c(graph, width, static_cast<unsigned>(width));
    Placed placed(all, c);
    const std::string name =
        fmt::format("{} wire {} width {}", to_string(strategy), to_string(wire), width);
    const double tolerance = wire == DType::f32 ? 2e-6 : 5e-3;
    const bool weighted = width % 2 == 0;
    placed.expect_right({.weighted = weighted}, tolerance, name);
    placed.expect_right({.weighted = weighted, .transposed = true}, tolerance, name + " back");
    placed.expect_right({.weighted = weighted, .pre = true, .post = true}, tolerance,
                        name + " scaled");
    if (strategy == Strategy::get) continue;
    const std::uint64_t rows = rows_to_get(c, partition, world.rank(), false, sums);
    expect(placed.bytes_fetched({}) == rows * row_bytes(width, wire), name + ": bytes");
  }
}

std::vector<Strategy> strategies_for(int ranks) {
  // NCCL wants one GPU per rank.
  if (ranks > gpu_count()) return {Strategy::pipelined, Strategy::get};
  return {Strategy::pipelined, Strategy::get, Strategy::bulk, Strategy::replicate};
}
const std::vector<Strategy> kPartialAndPaged{Strategy::partial, Strategy::paged};

const RankProgram kAggregate("gpu aggregate", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (unsigned seed = 0; seed < 3; ++seed)
    check_case(world, Case(seed), strategies_for(world.size()));
  for (unsigned seed = 0; seed < 6; ++seed) check_passes(world, Case(seed), Strategy::pipelined);
});

const RankProgram kPartial("gpu partial and paged", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (unsigned seed = 0; seed < 3; ++seed) check_case(world, Case(seed), kPartialAndPaged);
  for (unsigned seed = 0; seed < 6; ++seed) check_passes(world, Case(seed), Strategy::partial);
});

const RankProgram kSums("gpu sums", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (const Case& c : cases_for_sums()) check_sums(world, c);
  for (const Case& c : cases_for_sums()) check_passes(world, c, Strategy::partial);
});

const RankProgram kWidths("gpu widths", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const bool nccl = world.size() <= gpu_count();
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged, Strategy::bulk})
    for (const DType wire : {DType::f32, DType::bf16}) {
      const bool fp32 = strategy == Strategy::get || strategy == Strategy::paged;
      if ((wire == DType::f32 || !fp32) && (nccl || strategy != Strategy::bulk))
        check_widths(world, strategy, wire);
    }
});

// Tests a little of all strategies whose kernels are ours.
const RankProgram kFew("gpu few", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged}) {
    Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
    for (const bool transposed : {false, true})
      placed.expect_right({true, true, true, transposed}, 2e-6,
                          fmt::format("few, {}", to_string(strategy)));
  }
  check_passes(world, c, Strategy::pipelined);
});

// Halos have many pages, and rows are cut into several groups.
const RankProgram kLarger("gpu larger", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  std::vector<Edge> edges = random_edges(6000, 40000, 5);
  for (std::uint64_t v = 0; v < 6000; ++v)
    edges.push_back({v, 1234, 1}), edges.push_back({v, 4321, 2});
  const Case c(build_csr(edge_list<std::uint32_t>(6000, edges, true)), 64, 5);
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash}) {
    const Partition partition = make_partition(scheme, c.graph, world.size());
    for (const Strategy strategy : kPartialAndPaged) {
      Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
      for (const bool transposed : {false, true})
        placed.expect_right({true, true, true, transposed}, 4e-6,
                            fmt::format("larger, {} {}", to_string(scheme), to_string(strategy)));
    }
  }
});

void check_reduce(World& world, const ExchangeOptions& options = {.max_width = 1}) {
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

const RankProgram kReduce("gpu all-reduce", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  check_reduce(world);
  check_reduce(world, {.route = {.strategy = Strategy::paged},
                       .max_width = 1});  // through the host's memory
});

// Slots grow between steps, to some GiB: the heap's memory is freed and taken again.
void check_growth(World& world, const Case& c, DeviceTransport transport) {
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition, {.route = {.transport = transport}, .max_width = 1});
  for (const std::uint64_t width : {c.width, std::uint64_t{1} << 16, std::uint64_t{1} << 22}) {
    placed.reserve(width);
    placed.expect_right({.pre = true}, 2e-6, fmt::format("with room for width {}", width));
  }
}

const RankProgram kNvshmemAggregate("gpu aggregate by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  constexpr auto kTransport = DeviceTransport::nvshmem;
  for (unsigned seed = 0; seed < 2; ++seed) {
    check_case(world, Case(seed), {Strategy::pipelined, Strategy::get}, kTransport);
    check_passes(world, Case(seed), Strategy::pipelined, kTransport);
    check_growth(world, Case(seed), kTransport);
  }
  check_case(world, Case(1), {Strategy::bulk}, kTransport);
  check_reduce(world, {.route = {.transport = kTransport}, .max_width = 1});
});

TEST(GpuAggregate, SumsArraysOverRanks) {
  for (const int ranks : {2, 4}) {
    const Outcome outcome =
        run_job({.program = "gpu all-reduce", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

void expect_on_ranks(const char* program) {
  for (const int ranks : {2, 3, 4}) {
    const Outcome outcome = run_job({.program = program, .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << program << ", " << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, OneToFourRanksEqualThreeLoops) {
  const auto world = World::alone();
  for (unsigned seed = 0; seed < 6; ++seed) {
    check_case(*world, Case(seed), strategies_for(1));
    check_case(*world, Case(seed), kPartialAndPaged);
  }
  expect_on_ranks("gpu aggregate");
  expect_on_ranks("gpu partial and paged");
}

TEST(GpuAggregate, AllWidths) {
  const auto world = World::alone();
  for (const Strategy strategy : {Strategy::pipelined, Strategy::get, Strategy::paged})
    check_widths(*world, strategy, DType::f32);
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run_job({.program = "gpu widths", .ranks = ranks, .timeout_ms = 20000});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, ARefusedWidthLeavesTheRoomThatThereWas) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu aggregate after a refusal", .ranks = ranks, .timeout_ms = 20000});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, SumsCrossInsteadOfMoreRows) {
  expect_on_ranks("gpu sums");
  expect_on_ranks("gpu larger");
}

// This is for compute-sanitizer, under which ranks wait for each other for long.
TEST(GpuAggregate, FewOnTwoRanks) {
  const Outcome outcome = run_job({.program = "gpu few", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(GpuAggregate, NvshmemEqualsThreeLoops) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  for (const int ranks : {1, 2, 3, 4}) {
    if (ranks > gpu_count()) continue;  // refused, see below
    const Outcome outcome =
        run_job({.program = "gpu aggregate by nvshmem", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, NvshmemRefusesRanksThatShareAGpu) {
  const Outcome outcome = run_job(
      {.program = "gpu aggregate by nvshmem", .ranks = gpu_count() + 1, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 2) << outcome.all_errors();
  EXPECT_NE(outcome.all_errors().find("2 ranks share the GPU of rank 0"), std::string::npos)
      << outcome.all_errors();
}

// The rank that the others wait for on their GPUs is killed.
void lose_rank_1(World& world, DeviceTransport transport) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition, {.route = {.transport = transport}, .max_width = c.width});
  placed.run({});
  say_ready(world);
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  for (;;) placed.run({});
}
const RankProgram kLost("gpu lost", [](World& world) { lose_rank_1(world, DeviceTransport::vmm); });
const RankProgram kNvshmemLost("gpu lost by nvshmem",
                               [](World& world) { lose_rank_1(world, DeviceTransport::nvshmem); });

void expect_loss_ends_others(const std::string& program) {
  Job job({.program = program, .ranks = 3, .timeout_ms = 2000});
  job.await_ready(3);
  const auto begin = std::chrono::steady_clock::now();
  kill(job.rank(1), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_NE(outcome.all_errors().find("rank 1"), std::string::npos) << outcome.all_errors();
}

TEST(GpuAggregate, ALostRankEndsTheOthers) { expect_loss_ends_others("gpu lost"); }

TEST(GpuAggregate, ALostRankEndsTheOthersByNvshmem) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  if (gpu_count() < 3) GTEST_SKIP() << "NVSHMEM needs a GPU for each of 3 ranks";
  expect_loss_ends_others("gpu lost by nvshmem");
}

// One rank fails on its own: it must not wait for the others in the heap's end.
const RankProgram kFailing("gpu failing by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition,
                {.route = {.transport = DeviceTransport::nvshmem}, .max_width = c.width});
  placed.run({});
  expect(world.rank() != 1, "enough of it");
  for (;;) placed.run({});
});

TEST(GpuAggregate, ARankThatFailsEndsTheOthersByNvshmem) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  if (gpu_count() < 2) GTEST_SKIP() << "NVSHMEM needs a GPU for each of 2 ranks";
  const Outcome outcome =
      run_job({.program = "gpu failing by nvshmem", .ranks = 2, .timeout_ms = 2000});
  EXPECT_EQ(outcome.code, 1) << outcome.all_errors();
  EXPECT_NE(outcome.all_errors().find("enough of it"), std::string::npos) << outcome.all_errors();
}

const RankProgram kTooMuch("gpu too much by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  try {
    make_gpu_aggregator(
        world, c.graph, false, partition,
        {.route = {.transport = DeviceTransport::nvshmem}, .max_width = std::uint64_t{1} << 40});
  } catch (const DoesNotFitError&) {
    // After it, work that fits still runs.
    check_case(world, c, {Strategy::pipelined}, DeviceTransport::nvshmem);
    return;
  }
  throw Error("it does not fit");
});

TEST(GpuAggregate, NvshmemRefusesWhatDoesNotFit) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  const Outcome outcome = run_job({.program = "gpu too much by nvshmem",
                                   .ranks = std::min(gpu_count(), 2),
                                   .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(GpuAggregate, RefusesWhatDoesNotFit) {
  const auto world = World::alone();
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  for (const Strategy strategy : {Strategy::pipelined, Strategy::paged})
    EXPECT_THROW(
        make_gpu_aggregator(*world, c.graph, false, partition,
                            {.route = {.strategy = strategy}, .max_width = std::uint64_t{1} << 40}),
        DoesNotFitError)
        << to_string(strategy);
}

TEST(GpuAggregate, PagedRowsCrossAsTheyAre) {
  const auto world = World::alone();
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  EXPECT_THROW(make_gpu_aggregator(*world, c.graph, false, partition,
                                   {.route = {.strategy = Strategy::paged, .wire = DType::bf16}}),
               UsageError);
}

}  // namespace
}  // namespace plait::test
