// Reads of strategy `get` by NVSHMEM's device functions: on one GPU, whose rank reads the rows of
// all ranks from itself (get_case.h); and between GPUs, against three loops in double precision and
// the bits of reads at addresses.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "plait/base/gpu.h"
#include "plait/base/library.h"
#include "plait/graph/generate.h"
#include "plait/graph/shapes.h"
#include "plait/symmetric/nvshmem.h"
#include "tests/gpu/aggregate_checks.h"
#include "tests/gpu/get_case.h"

namespace plait::test {
namespace {

// Says why there is nothing to test; empty: there is.
std::string nothing_to_test() {
  if (nvshmem_of_build().empty()) return "built without NVSHMEM's device functions";
  return open_library(kNvshmem) == nullptr ? fmt::format("{} is not there", kNvshmem.name) : "";
}

// Checks the case by all functions.
void check_reads(const Csr32& graph, get::Case c, const get::SymmetricRows& rows) {
  const get::Part part = get::part_of(graph, c);
  const get::Values values = get::make_values(graph, c, 1);
  const std::vector<float> wanted = get::expected(c, part, values);
  for (const ReadBy read_by : get::kReaders)
    for (const bool asynchronous : {false, true}) {
      c.read_by = read_by;
      c.asynchronous = asynchronous;
      std::ostringstream name;
      name << c;
      expect(get::on_gpu(c, part, values, &rows) == wanted, name.str());
    }
}

// Values are not exact: NVSHMEM's functions give the bits of plain reads.
void check_bits(const Csr32& graph, get::Case c, const get::SymmetricRows& rows) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const get::Part part = get::part_of(graph, c);
  get::Values values = get::make_values(graph, c, 1);
  for (auto& one : values.x)
    for (float& value : one) value = uniform(random);
  for (const ReadBy read_by : get::kReaders) {
    c.read_by = read_by;
    std::ostringstream name;
    name << "bits of " << c;
    expect(get::on_gpu(c, part, values, &rows) == get::on_gpu(c, part, values), name.str());
  }
}

const RankProgram kReads("gpu get by nvshmem", [](World& world) {
  use_gpu(0);
  Nvshmem& nvshmem = Nvshmem::join(world);
  const GetModule& module = GetModule::load();
  nvshmem.prepare(module.handle(), nvshmem_of_build());
  constexpr std::size_t kFloats = std::size_t{1} << 22;
  auto* const memory = reinterpret_cast<float*>(nvshmem.allocate(kFloats * sizeof(float)));
  expect(memory != nullptr, "NVSHMEM gives no memory");
  const get::SymmetricRows rows{memory, kFloats, module};

  const Csr32 graph = random_csr<std::uint32_t>(200, 4000, 3, true);
  const Csr32 hubs = std::get<Csr32>(build_csr(generate_star(1500)));
  const Csr32 dense = random_csr<std::uint32_t>(150, 40000, 7, true);  // 267 per row
  const Csr32 sparse = random_csr<std::uint32_t>(300, 900, 8, true);   // rows without edges
  const Csr32 none = random_csr<std::uint32_t>(50, 0, 1);
  unsigned number = 0;
  for (const Csr32* one : {&graph, &hubs, &dense, &sparse, &none})
    for (const std::uint64_t width : {1, 2, 3, 7, 16, 33, 64, 100, 128, 300})
      for (const std::uint32_t ps : {1u, 16u, 33u, 512u, GetTuning::kWholeRow}) {
        const unsigned n = number++;
        const std::uint64_t padding = (width + 3) / 4 * 4 - width;
        check_reads(*one,
                    {.width = width,
                     .ps = ps,
                     .dist = 1 + n % 5,
                     .wpb = n % 7 == 0 ? 16 : 1 + n / 3 % 7,
                     .deterministic = n % 2 == 0,
                     .remote_ps = n % 4 == 0 ? 3u : 0u,
                     .interleave = n % 3 != 0,
                     .dw = n % 5 == 0 ? 4u << n / 5 % 4 : 0u,
                     .weighted = n % 3 == 0,
                     .scaled = n % 5 == 1,
                     .accumulate = n % 7 == 1,
                     .padding = n % 6 == 0 ? 0 : padding,
                     .offset = n % 11 == 0 ? 1u : 0u,  // not at multiples of 16 bytes
                     .rank = static_cast<int>(n % 2 * 3),
                     .keep = n % 13 == 0   ? get::Keep::remote
                             : n % 13 == 1 ? get::Keep::local
                                           : get::Keep::all},
                    rows);
      }
  for (const std::uint64_t width : {1, 2, 7, 48, 130})
    for (const std::uint32_t ps : {1u, 16u, 512u})
      for (const bool weighted : {false, true})
        check_bits(dense,
                   {.width = width,
                    .ps = ps,
                    .weighted = weighted,
                    .padding = width > 2 ? (width + 3) / 4 * 4 - width : 0},
                   rows);
  check_reads(graph, {.width = 20, .ranks = 64, .rank = 5}, rows);
});

TEST(GetNvshmem, EqualsTheReferenceOnOneGpu) {
  if (const std::string why = nothing_to_test(); !why.empty()) GTEST_SKIP() << why;
  const Outcome outcome =
      run_job({.program = "gpu get by nvshmem", .ranks = 1, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Each rank runs the case by NVSHMEM's functions, and at addresses.
void check_between_gpus(World& world, const Case& c, const GetTuning& tuning) {
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  const auto placed = [&](ReadWith with) {
    GetTuning reads = tuning;
    reads.read_with = with;
    return Placed(
        world, c, partition,
        {.route = {.strategy = Strategy::get, .transport = DeviceTransport::nvshmem, .get = reads},
         .max_width = c.width});
  };
  Placed by_nvshmem = placed(ReadWith::nvshmem), by_address = placed(ReadWith::addresses);
  for (int bits = 0; bits < 16; bits += 3) {
    const Way way{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    const std::string name =
        fmt::format("get by nvshmem, width {} ps {} read by {} async {} way {}", c.width, tuning.ps,
                    static_cast<int>(tuning.read_by), tuning.asynchronous, bits);
    by_nvshmem.expect_right(way, 2e-6, name);
    expect(by_nvshmem.run(way) == by_address.run(way), name + ": other bits than at addresses");
  }
}

const RankProgram kBetween("gpu get by nvshmem between gpus", [](World& world) {
  use_gpu(world.rank());
  for (const std::uint64_t width : {1, 7, 16, 64, 100, 300}) {
    const Case c(random_csr<std::uint32_t>(301, 6000, static_cast<unsigned>(width), true), width,
                 1);
    for (const std::uint32_t ps : {1u, 16u, 512u})
      for (const ReadBy read_by : get::kReaders)
        check_between_gpus(world, c,
                           {.ps = ps, .asynchronous = ps == 16 && width > 16, .read_by = read_by});
  }
  check_between_gpus(world, Case(random_csr<std::uint32_t>(200, 50000, 2, true), 20, 1),
                     {.ps = 100, .wpb = 16, .interleave = false, .read_by = ReadBy::block});
});

TEST(GetNvshmem, EqualsReadsAtAddressesBetweenGpus) {
  if (const std::string why = nothing_to_test(); !why.empty()) GTEST_SKIP() << why;
  if (gpu_count() < 2) GTEST_SKIP() << "NVSHMEM needs a GPU for each of 2 ranks";
  for (const int ranks : {2, 3, 4}) {
    if (ranks > gpu_count()) continue;
    const Outcome outcome = run_job(
        {.program = "gpu get by nvshmem between gpus", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

}  // namespace
}  // namespace plait::test
