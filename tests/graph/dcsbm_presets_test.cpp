// The presets of generated graphs, compared with the papers' tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/crawl.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/validate.h"
#include "tests/support/simple_graph.h"

namespace plait {
namespace {

// The papers' tables of datasets, as they are printed: name, vertices, edges, width of features and
// classes, which are -1 where a table has none.
struct Table {
  const char* name;
  const char* rows;
};
constexpr std::array kTables{Table{"MGG (OSDI 2023), table 1", R"(
reddit 232965 114615892 602 41
enwiki 4203323 202623226 300 12
it-2004 41291594 1150725437 256 64
papers100M 111059956 1615685872 128 64
products 2449029 61859140 100 47
proteins 132534 39561252 8 112
orkut 3072441 117185083 128 32
)"},
                             Table{"WholeGraph (SC 2022), table II", R"(
friendster 68300000 2600000000 128 -1
uk-domain 105200000 3300000000 128 -1
)"},
                             Table{"GNNAdvisor (OSDI 2021), table 1", R"(
citeseer 3327 9464 3703 6
cora 2708 10858 1433 7
pubmed 19717 88676 500 3
ppi 56944 818716 50 121
PROTEINS_full 43471 162088 29 2
OVCAR-8H 1890931 3946402 66 2
Yeast 1714644 3636546 74 2
DD 334925 1686092 89 2
TWITTER-Partial 580768 1435116 1323 2
SW-620H 1889971 3944206 66 2
amazon0505 410236 4878875 96 22
artist 50515 1638396 100 12
com-amazon 334863 1851744 96 22
soc-BlogCatalog 88784 2093195 128 39
amazon0601 403394 3387388 96 22
)"}};

// Returns a preset by its name; of a crawl, what it has in common with the others.
DcsbmOptions preset_of(const std::string& name) {
  for (const CrawlGraph& crawl : crawl_presets())
    if (crawl.name == name)
      return {.vertices = crawl.links.vertices,
              .edges = crawl.links.edges,
              .classes = crawl.data.classes,
              .width = crawl.data.width,
              .table = crawl.table};
  return dcsbm_preset(name);
}

TEST(DcsbmPresets, HaveTheCountsOfThePapers) {
  const std::set<std::string> both_ways{"products", "proteins", "orkut"};
  const std::set<std::string> directed{"it-2004",
                                       "uk-domain"};  // the edges of others come in pairs
  std::size_t rows = 0;
  for (const Table& table : kTables) {
    std::istringstream text(table.rows);
    std::string name;
    std::uint64_t vertices = 0, edges = 0, width = 0;
    for (std::int32_t classes = 0; text >> name >> vertices >> edges >> width >> classes; ++rows) {
      const DcsbmOptions found = preset_of(name);
      EXPECT_EQ(found.vertices, vertices) << name;
      const std::uint64_t whole = directed.contains(name) ? edges : edges - edges % 2;
      EXPECT_EQ(found.edges, both_ways.contains(name) ? 2 * edges : whole) << name;
      EXPECT_EQ(found.width, width) << name;
      EXPECT_EQ(found.classes, classes < 0 ? 64 : classes) << name;
      EXPECT_TRUE(found.table.starts_with(table.name)) << name;
      EXPECT_EQ(found.labels == DcsbmLabels::graphs, found.table.ends_with("type II")) << name;
    }
  }
  EXPECT_EQ(rows, dcsbm_presets().size() + crawl_presets().size());
  EXPECT_EQ(dcsbm_preset("ppi").labels, DcsbmLabels::sets);
  EXPECT_EQ(scaled(dcsbm_preset("orkut"), 1).edges, 234370166u);
  EXPECT_THROW(dcsbm_preset("karate"), UsageError);
  EXPECT_THROW(scaled(dcsbm_preset("orkut"), 0), UsageError);
}

TEST(DcsbmPresets, AreGeneratedAtASmallScale) {
#ifdef PLAIT_SANITIZED  // ten times slower
  constexpr std::uint64_t kOver = 5000;
#else
  constexpr std::uint64_t kOver = 1000;
#endif
  for (const DcsbmOptions& preset : dcsbm_presets()) {
    const DcsbmOptions options = scaled(preset, 1.0 / kOver);
    const double vertices = static_cast<double>(preset.vertices) / kOver;
    EXPECT_NEAR(static_cast<double>(options.vertices), std::max(vertices, 4.0), 1);
    EXPECT_LE(options.edges, preset.edges / kOver + 2);
    const Dataset dataset = generate_dcsbm(options);
    EXPECT_EQ(dataset.edges(), options.edges) << options.name;
    EXPECT_EQ(dataset.name, options.name);
    EXPECT_EQ(dataset.features.width, preset.width);
    test::expect_simple_and_symmetric(std::get<Csr32>(dataset.graph));
  }
  // Where the graph is sparse enough, edges shrink as vertices do.
  EXPECT_EQ(scaled(dcsbm_preset("products"), 0.001).edges, 123718u);
  EXPECT_EQ(scaled(dcsbm_preset("reddit"), 0.1).edges, 11461590u);
}

TEST(DcsbmPresets, OfSmallGraphsAreGeneratedWhole) {
  for (const char* name : {"citeseer", "cora", "ppi", "PROTEINS_full"}) {
    DcsbmOptions options = dcsbm_preset(name);
    options.width = 0;
    const Dataset dataset = generate_dcsbm(options);
    EXPECT_EQ(dataset.vertices(), options.vertices) << name;
    EXPECT_EQ(dataset.edges(), options.edges) << name;
    EXPECT_EQ(dataset.classes, options.classes) << name;
    EXPECT_NO_THROW(validate(dataset, name));
    if (options.labels == DcsbmLabels::sets) continue;
    const std::set met(dataset.labels.begin(), dataset.labels.end());
    EXPECT_EQ(met.size(), static_cast<std::size_t>(options.classes)) << name;
  }
}

// A set of graphs has no edges between them: no component is larger than a community can be.
TEST(DcsbmPresets, OfSetsOfGraphsFallApart) {
  for (const char* name : {"PROTEINS_full", "TWITTER-Partial"}) {
    DcsbmOptions options = scaled(dcsbm_preset(name), 0.1);
    options.width = 0;
    const Dataset dataset = generate_dcsbm(options);
    const Csr32& graph = std::get<Csr32>(dataset.graph);
    const auto largest = 12 * options.vertices / options.communities;
    for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
      std::set<std::uint64_t> reached{v};
      std::vector<std::uint64_t> next{v};
      while (!next.empty() && reached.size() <= largest) {
        const std::uint64_t u = next.back();
        next.pop_back();
        for (const std::uint64_t w : graph.row(u))
          if (reached.insert(w).second) next.push_back(w);
      }
      ASSERT_LE(reached.size(), largest) << name << " from vertex " << v;
    }
  }
}

}  // namespace
}  // namespace plait
