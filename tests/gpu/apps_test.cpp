// Every analytics app on GPUs, on odd, random and large graphs: what one rank on the CPU finds.
// Ranks share GPUs where there are fewer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "plait/base/delay.h"
#include "plait/base/gpu.h"
#include "tests/apps/app_case.h"
#include "tests/apps/walk_case.h"

namespace plait::test {
namespace {

void check(AppChecks& checks, const std::vector<Drawing>& drawings) {
  for (std::size_t k = 0; k < drawings.size(); ++k)
    checks.check(drawings[k], kSchemes[k % kSchemes.size()]);
}

const RankProgram on_graphs("gpu apps on graphs", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  AppChecks checks(world, true);
  check(checks, all_odd_drawings());
  std::vector<Drawing> random;
  for (unsigned seed = 0; seed < 40; ++seed)
    random.push_back(random_drawing(seed, seed % 8 == 0 ? 3000 : 150));
  check(checks, random);
  check(checks, {karate_club()});
  checks.expect_many();
});

// Rows that one block of threads does not do alone, paths of thousands of steps, and work for all
// multiprocessors.
const RankProgram on_large_graphs("gpu apps on large graphs", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  AppChecks checks(world, true);
  constexpr std::uint64_t kStar = 100001;
  check(checks,
        {{.name = "star outwards", .vertices = kStar, .edges = star_edges(kStar)},
         {.name = "star inwards", .vertices = kStar, .edges = turned_round(star_edges(kStar))},
         {.name = "star", .vertices = kStar, .edges = both_ways(star_edges(kStar)), .order = 4},
         {.name = "path", .vertices = 3000, .edges = both_ways(path_edges(3000))},
         {.name = "path one way", .vertices = 3000, .edges = path_edges(3000)},
         {.name = "grid", .vertices = 10000, .edges = both_ways(grid_edges(100, 100))},
         {.name = "dense graph", .vertices = 3000, .edges = random_edges(3000, 300000, 1)},
         {.name = "large graph",
          .vertices = 60000,
          .edges = both_ways(random_edges(60000, 200000, 2)),
          .weighted = true,
          .order = 5}});
});

class GpuApps : public testing::TestWithParam<int> {};

TEST_P(GpuApps, HaveTheAnswerOfOneRankOnTheCpu) {
  for (const char* program : {"gpu apps on graphs", "gpu apps on large graphs"}) {
    const Outcome outcome =
        run_job({.program = program, .ranks = GetParam(), .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << program << ": " << outcome.all_errors();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GpuApps, testing::Values(1, 2, 3));

// Lists of more entries than a table has room for, too many triangles for plain loops.
const RankProgram on_a_clique("gpu triangles of a clique", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  constexpr std::uint64_t kClique = 2500;
  const App& app = *std::ranges::find(apps(), std::string("triangles"), &App::name);
  const Dataset dataset =
      Drawing{.name = "clique", .vertices = kClique, .edges = clique_edges(0, kClique)}.dataset();
  const Partition partition = make_partition(PartitionScheme::hash, dataset, world.size());
  SpreadGraph graph(world, dataset, partition, true);
  const auto run = app.on_gpu(graph);
  run->run(AppSettings(app.options));
  const AppResult result = answer_of(world, app, partition, *run);
  expect(
      std::get<std::uint64_t>(result.facts[0].value) == kClique * (kClique - 1) * (kClique - 2) / 6,
      "the number of triangles");
  for (const std::int64_t each : std::get<std::vector<std::int64_t>>(result.columns[0].values))
    expect(each == (kClique - 1) * (kClique - 2) / 2, "the triangles of a vertex");
});

TEST_P(GpuApps, CountTheTrianglesOfALargeClique) {
  const Outcome outcome = run_job(
      {.program = "gpu triangles of a clique", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram late("gpu apps with delays", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  AppChecks checks(world, true);
  for (unsigned seed = 600; seed < 606; ++seed) {
    switch_delays(10 * seed + static_cast<std::uint64_t>(world.rank()),
                  std::chrono::microseconds(500));
    checks.check(random_drawing(seed, 60), kSchemes[seed % kSchemes.size()]);
  }
});

TEST(GpuAppRanks, NeedNoLuckInTime) {
  const Outcome outcome =
      run_job({.program = "gpu apps with delays", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// GPUs with a copy of the graph each, and GPUs that share one.
const RankProgram walks("gpu walks", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const std::vector<Drawing> odd = all_odd_drawings();
  for (unsigned k = 0; k < odd.size(); k += 3)
    for (const bool shared : {false, true})
      check_walks_of(world, odd[k], k, {.gpu = true, .shared = shared});
  for (unsigned seed = 0; seed < 20; ++seed)
    check_walks_of(world, random_drawing(seed, 3000), seed, {.gpu = true});
});

TEST_P(GpuApps, WalkAsOnTheCpu) {
  const Outcome outcome =
      run_job({.program = "gpu walks", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Every app again and again.
const RankProgram endless("endless gpu apps", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Dataset dataset = random_drawing(21, 120).dataset(true);
  const Partition partition = make_partition(PartitionScheme::hash, dataset, world.size());
  SpreadGraph graph(world, dataset, partition, true);
  std::vector<std::unique_ptr<AppRun>> runs;
  std::vector<AppSettings> settings;
  for (const App& app : apps()) {
    if (!is_taken(app, dataset)) continue;
    runs.push_back(app.on_gpu(graph));
    settings.emplace_back(app.options);
  }
  for (int turn = 0;; ++turn) {
    for (std::size_t k = 0; k < runs.size(); ++k) runs[k]->run(settings[k]);
    if (turn == 5) say_ready(world);
  }
});

TEST(GpuAppRanks, NameALostRank) {
  Job job({"endless gpu apps", 2});
  job.await_ready(2);
  ASSERT_EQ(kill(job.rank(1), SIGKILL), 0);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.all_errors(), testing::HasSubstr("rank 1"));
}

}  // namespace
}  // namespace plait::test
