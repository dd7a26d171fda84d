// Every analytics app on odd and random graphs, on CPU ranks: results, refusals, delays, lost
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "plait/base/delay.h"
#include "tests/apps/app_case.h"

namespace plait::test {
namespace {

#ifdef PLAIT_SANITIZED  // every so many of the graphs
constexpr std::size_t kStride = 7;
#else
constexpr std::size_t kStride = 1;
#endif
constexpr std::size_t kRandomGraphs = 240;

// Calls check(drawing, scheme) for graphs that take part.
template <class Check>
void for_graphs(const Check& check) {
  std::vector<Drawing> graphs = all_odd_drawings();
  for (unsigned seed = 0; seed < kRandomGraphs; ++seed)
    graphs.push_back(random_drawing(seed, seed % 10 == 0 ? 1500 : 120));
  for (std::size_t k = 0; k < graphs.size(); k += kStride)
    check(graphs[k], kSchemes[k / kStride % kSchemes.size()]);
}

const RankProgram on_graphs("apps on graphs", [](World& world) {
  AppChecks checks(world, false);
  for_graphs(
      [&](const Drawing& drawing, PartitionScheme scheme) { checks.check(drawing, scheme); });
  for (const PartitionScheme scheme : kSchemes) checks.check(karate_club(), scheme);
  checks.expect_many();
});

class Apps : public testing::TestWithParam<int> {};

TEST_P(Apps, HaveTheSameRightAnswerHoweverAGraphIsPlaced) {
  const Outcome outcome =
      run_job({.program = "apps on graphs", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

INSTANTIATE_TEST_SUITE_P(Ranks, Apps, testing::Values(1, 2, 3, 4));

// Graphs with work for several threads, and rows that are divided among them.
const RankProgram on_large_graphs("apps on large graphs", [](World& world) {
  AppChecks checks(world, false);
  std::vector<Drawing> graphs{
      {.name = "large star outwards", .vertices = 20001, .edges = star_edges(20001)},
      {.name = "large star", .vertices = 20001, .edges = both_ways(star_edges(20001)), .order = 4},
      {.name = "long path", .vertices = 700, .edges = both_ways(path_edges(700))},
      {.name = "large clique", .vertices = 600, .edges = clique_edges(0, 600)},
      {.name = "dense graph", .vertices = 3000, .edges = random_edges(3000, 90000, 1)},
      {.name = "large graph",
       .vertices = 12000,
       .edges = both_ways(random_edges(12000, 30000, 2)),
       .weighted = true,
       .order = 5}};
  for (std::size_t k = 0; k<graphs.size(); k += kStride> 1 ? 3 : 1)
    checks.check(graphs[k], kSchemes[k % kSchemes.size()]);
});

TEST(LargeApps, HaveTheSameRightAnswerHoweverAGraphIsPlaced) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome =
        run_job({.program = "apps on large graphs", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// Ranks of several hosts share no memory.
const RankProgram between_hosts("apps between hosts", [](World& world) {
  AppChecks checks(world, false);
  for (unsigned seed = 500; seed < 504; ++seed)
    checks.check(random_drawing(seed, 60), kSchemes[seed % kSchemes.size()]);
});

TEST(AppsOnRanks, WorkBetweenHosts) { run_on_hosts("apps between hosts", 2); }

const RankProgram late("apps with delays", [](World& world) {
  AppChecks checks(world, false);
  for (unsigned seed = 600; seed < 612; ++seed) {
    switch_delays(10 * seed + static_cast<std::uint64_t>(world.rank()),
                  std::chrono::microseconds(500));
    checks.check(random_drawing(seed, 60), kSchemes[seed % kSchemes.size()]);
  }
});

TEST(AppsOnRanks, NeedNoLuckInTime) {
  const Outcome outcome = run_job({.program = "apps with delays", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const App& app_of(const std::string& name) {
  for (const App& app : apps())
    if (name == app.name) return app;
  throw Error("there is no app " + name);
}

TEST(KarateClub, IsOnePieceOfThreeSteps) {
  const Dataset club = karate_club().dataset();
  ASSERT_TRUE(club.symmetric);
  ASSERT_EQ(club.edges(), 2 * 78u);
  const App& bfs = app_of("bfs");
  const AppResult paths = found_alone(bfs, club, AppSettings(bfs.options));
  std::vector<std::size_t> at_depth(4);
  for (const std::int64_t depth : std::get<std::vector<std::int64_t>>(paths.columns[0].values))
    ++at_depth.at(static_cast<std::size_t>(depth));
  EXPECT_EQ(at_depth, (std::vector<std::size_t>{1, 16, 9, 8}));
  const App& triangles = app_of("triangles");
  const AppResult corners = found_alone(triangles, club, AppSettings(triangles.options));
  EXPECT_EQ(std::get<std::uint64_t>(corners.facts[0].value), 45u);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(corners.columns[0].values)[0], 18);
  const App& components = app_of("components");
  const AppResult pieces = found_alone(components, club, AppSettings(components.options));
  EXPECT_EQ(std::get<std::uint64_t>(pieces.facts[0].value), 1u);
  EXPECT_EQ(std::get<std::uint64_t>(pieces.facts[1].value), 34u);
}

// Directed graphs whose components stand in rows, in orders of vertices that cut parts badly.
const RankProgram on_rows("strong components in rows", [](World& world) {
  AppChecks checks(world, false);
  for (const std::uint64_t size : {2, 3, 7})
    for (const bool inwards : {false, true})
      for (unsigned order = 0; order < 3; ++order) {
        constexpr std::uint64_t kVertices = 420;
        std::vector<Edge> edges;
        for (std::uint64_t v = 0; v < kVertices; ++v)
          edges.push_back({v, v % size == size - 1 ? v + 1 - size : v + 1, 1});
        for (std::uint64_t v = size - 1; v + 1 < kVertices; v += size)
          edges.push_back({v, v + 1, 1});
        checks.check({.name = fmt::format("rings of {}", size),
                      .vertices = kVertices,
                      .edges = inwards ? turned_round(edges) : edges,
                      .order = order},
                     kSchemes[order]);
      }
});

TEST(StrongComponents, AreFoundInLongRows) {
  for (const int ranks : {1, 2, 4}) {
    const Outcome outcome =
        run_job({.program = "strong components in rows", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// A source that does not exist is refused by all ranks, and the next run is right.
const RankProgram refused("refused sources", [](World& world) {
  const Dataset dataset = random_drawing(7, 50).dataset(true);
  const Partition partition = make_partition(PartitionScheme::hash, dataset, world.size());
  SpreadGraph graph(world, dataset, partition, false);
  for (const App& app : apps()) {
    AppSettings settings(app.options);
    if (std::ranges::find(app.options, std::string("source"), &AppOption::name) ==
        app.options.end())
      continue;
    const auto run = app.on_cpu(graph);
    for (const std::uint64_t source : {dataset.vertices(), ~std::uint64_t{0}}) {
      set_option(settings, "source", source);
      const auto expect_refusal = [&](const auto& call) {
        try {
          call();
        } catch (const UsageError&) {
          return;
        }
        expect(false, fmt::format("{} takes source {}", app.name, source));
      };
      expect_refusal([&] { app.check(dataset, settings); });
      expect_refusal([&] { run->run(settings); });
    }
    set_option(settings, "source", dataset.vertices() - 1);
    run->run(settings);
    const AppResult result = answer_of(world, app, partition, *run);
    if (world.rank() == 0) app.verify(dataset, settings, result);
  }
});

TEST(AppsOnRanks, RefuseASourceThatDoesNotExist) {
  const Outcome outcome = run_job({.program = "refused sources", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Every app again and again.
const RankProgram endless("endless apps", [](World& world) {
  const Dataset dataset = random_drawing(21, 120).dataset(true);
  const Partition partition = make_partition(PartitionScheme::hash, dataset, world.size());
  SpreadGraph graph(world, dataset, partition, false);
  std::vector<std::unique_ptr<AppRun>> runs;
  std::vector<AppSettings> settings;
  for (const App& app : apps()) {
    if (!is_taken(app, dataset)) continue;
    runs.push_back(app.on_cpu(graph));
    settings.emplace_back(app.options);
  }
  for (int turn = 0;; ++turn) {
    for (std::size_t k = 0; k < runs.size(); ++k) runs[k]->run(settings[k]);
    if (turn == 20) say_ready(world);
  }
});

class LostInApp : public testing::TestWithParam<int> {};

TEST_P(LostInApp, IsAnErrorOnAllOtherRanks) {
  Job job({"endless apps", 3});
  job.await_ready(3);
  const pid_t lost = job.rank(1);
  ASSERT_EQ(kill(lost, GetParam()), 0);
  const Outcome outcome = job.wait();
  kill(lost, SIGKILL);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, testing::Each(testing::ContainsRegex(
                                  "^plait: rank [02]: rank 1 (was killed|has not answered)")));
}

INSTANTIATE_TEST_SUITE_P(All, LostInApp, testing::Values(SIGKILL, SIGSTOP));

}  // namespace
}  // namespace plait::test
