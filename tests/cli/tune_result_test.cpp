// What plait tune tells of a search for settings, which needs GPUs to be made.
#include "cli/commands/tune_result.h"

#include <gtest/gtest.h>

namespace plait::cli {
namespace {

constexpr auto kEdges = PartitionScheme::edges;

// One search at two widths: ps 32 is the fastest at 16, the default settings are at 64.
TuneResult made_result() {
  const GetTuning more{.ps = 32}, less{.ps = 8};
  PartQuality part{.vertices = 1000,
                   .edges = 10000,
                   .remote_edges = 400,
                   .halo_rows = 100,
                   .dense_rows = 100,
                   .summed = {}};
  part.summed.rows = 100, part.summed.kept_edges = 10000;
  TuneResult result{.graph = "made",
                    .ranks = "2 GPUs",
                    .widths = {16, 64},
                    .question = {.route = resolved({.gpu = true}),
                                 .open_strategy = true,
                                 .open_partition = true,
                                 .open_settings = true,
                                 .ranks = 2,
                                 .times = kOften},
                    .measured = {},
                    .predicted_ms = std::vector<std::optional<double>>(6),
                    .counts = {{kEdges, {{part, part}}}}};
  const auto measured = [&](Strategy strategy, const GetTuning& get, double narrow, double wide) {
    for (const auto& [width, ms] : {std::pair{std::uint64_t{16}, narrow}, {64, wide}})
      result.measured.push_back({{.widths = {width}}, kEdges, {strategy, 0, get}, ms});
  };
  measured(Strategy::pipelined, {}, 2, 7);
  measured(Strategy::get, {}, 3, 5);
  measured(Strategy::get, more, 1, 6);
  result.settings = {{kEdges, {{{}, {3, 5}}, {more, {1, 6}}, {less, {}, "no memory"}}}};
  return result;
}

TEST(TuneResult, TellsWhichSettingsWereTried) {
  const json settings = settings_to_json(made_result());
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings[0]["partition"], "edges");
  EXPECT_EQ(settings[0]["fastest"], (json{"--ps 32", ""}));
  const json& tried = settings[0]["tried"];
  ASSERT_EQ(tried.size(), 3u);
  EXPECT_EQ(tried[0], (json{{"options", ""}, {"median_ms", {3.0, 5.0}}, {"left_out", nullptr}}));
  EXPECT_EQ(tried[1]["options"], "--ps 32");
  EXPECT_EQ(tried[2]["left_out"], "no memory");
  EXPECT_TRUE(tried[2]["median_ms"].empty());
}

TEST(TuneResult, ChoosesSettingsByWidth) {
  const TuneResult result = made_result();
  const json chosen = chosen_to_json(result), rows = rows_to_json(result);
  EXPECT_EQ(chosen[0]["strategy"], "get");
  EXPECT_EQ(chosen[0]["options"], "--ps 32");
  EXPECT_EQ(chosen[1]["strategy"], "get");
  EXPECT_EQ(chosen[1]["options"], "");
  EXPECT_EQ(rows[4]["options"], "--ps 32");
  EXPECT_EQ(rows[0]["options"], "");
}

TEST(TuneResult, PrintsTheSearch) {
  testing::internal::CaptureStdout();
  print_times(made_result());
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* line :
       {"\nsettings of get on partition edges: median ms by width\n",
        "\n--ps 8                                   not measured: no memory\n",
        "\nfastest at width 16: --ps 32\n", "\nfastest at width 64: default settings\n",
        "\nedges      get             1.000      6.000, ps 32\n",
        "\nwidth 16: edges with get, ps 32; without measurements "})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace plait::cli
