#include "plait/graph/crawl.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/graph/build.h"
#include "plait/graph/validate.h"

namespace plait {
namespace {

constexpr std::uint64_t kSite = 64;  // pages, as in random_graphs.cpp

constexpr CrawlGraph preset(std::string_view name, std::string_view table, CrawlOptions links,
                            std::int32_t classes, std::uint64_t width) {
  CrawlGraph crawl{.name = name, .links = links, .table = table};
  crawl.data.classes = classes, crawl.data.width = width;
  return crawl;
}

// WholeGraph gives uk-domain no classes.
constexpr std::array kPresets{preset("it-2004", "MGG (OSDI 2023), table 1",
                                     {.vertices = 41291594, .edges = 1150725437}, 64, 256),
                              preset("uk-domain", "WholeGraph (SC 2022), table II",
                                     {.vertices = 105200000, .edges = 3300000000}, 64, 128)};

// The graph and its data are counted together; generate_crawl() asks for the graph and the list of
// its edges.
void check_room(const CrawlGraph& crawl) {
  const auto classes = static_cast<double>(crawl.data.classes);
  if (classes == 0) return;
  const auto pages = static_cast<double>(crawl.links.vertices);
  const auto width = static_cast<double>(crawl.data.width);
  const double of_edge = crawl.links.vertices <= kMaxVertices32 ? 4 : 8;
  const double graph =
      of_edge * static_cast<double>(crawl.links.edges) + sizeof(EdgeOffset) * (pages + 1);
  require_memory(whole_bytes(graph + pages * (4 * width + 5) + 4 * classes * width),
                 fmt::format("a graph of {} vertices with {} features", crawl.links.vertices,
                             crawl.data.width));
}

}  // namespace

Dataset generate_crawl_graph(const CrawlGraph& crawl) {
  require<UsageError>(crawl.data.classes >= 0, "{} classes are less than none", crawl.data.classes);
  check_room(crawl);
  Dataset dataset{.name = std::string(crawl.name), .graph = build_csr(generate_crawl(crawl.links))};
  dataset.symmetric = is_symmetric(dataset.graph);
  if (crawl.data.classes == 0) return dataset;
  ClassData data = crawl.data;
  data.seed = crawl.links.seed;
  Buffer<std::int32_t> classes(crawl.links.vertices);
  for (std::uint64_t page = 0; page < classes.size(); ++page)
    classes[page] =
        static_cast<std::int32_t>(page / kSite % static_cast<std::uint64_t>(data.classes));
  if (data.width > 0) dataset.features = class_features(data, classes.span());
  dataset.splits = class_splits(data, classes.span());
  dataset.split_count = 1;
  dataset.labels = std::move(classes);
  dataset.classes = data.classes;
  return dataset;
}

std::span<const CrawlGraph> crawl_presets() { return kPresets; }

CrawlGraph crawl_like(std::string_view name, double scale) {
  require<UsageError>(scale > 0 && scale <= 1, "scale {} is outside 0..1", scale);
  std::string names;
  for (CrawlGraph crawl : kPresets) {
    const auto times = [&](std::uint64_t count) {
      return static_cast<std::uint64_t>(static_cast<double>(count) * scale + 0.5);
    };
    if (crawl.name == name) {
      crawl.links.vertices = std::max(times(crawl.links.vertices), std::uint64_t{2});
      crawl.links.edges = times(crawl.links.edges);
      return crawl;
    }
    names += (names.empty() ? "" : ", ") + std::string(crawl.name);
  }
  throw UsageError(fmt::format("'{}' is not one of {}", name, names));
}

}  // namespace plait
