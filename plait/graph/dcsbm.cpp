#include "plait/graph/dcsbm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/names.h"
#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"
#include "plait/graph/build.h"
#include "plait/graph/class_data.h"
#include "plait/graph/dcsbm_edges.h"
#include "plait/graph/generate.h"

namespace plait {

using namespace dcsbm;

namespace {

constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 48;

// Ids and classes ------------------------------------------------------------------------------

// Returns the ids of vertices, which drawing numbers by community: shuffled.
Buffer<std::uint32_t> shuffled_ids(const DcsbmOptions& options) {
  const Permutation shuffled(options.vertices, options.seed, kIdStream);
  Buffer<std::uint32_t> ids(options.vertices);
  parallel_blocks(options.vertices, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) ids[v] = static_cast<std::uint32_t>(shuffled(v));
  });
  return ids;
}

// The places of communities that are the graphs of a set, whose vertices stand together.
struct GraphOrder {
  Buffer<std::uint32_t> number;  // of the graph that each community is
  Buffer<std::uint32_t> ids;     // of vertices
};

GraphOrder shuffled_graphs(const DcsbmOptions& options, std::span<const std::uint64_t> starts) {
  const std::uint64_t graphs = options.communities;
  const Permutation shuffled(graphs, options.seed, kIdStream);
  GraphOrder order{Buffer<std::uint32_t>(graphs), Buffer<std::uint32_t>(options.vertices)};
  std::vector<std::uint64_t> community(graphs);
  for (std::uint64_t c = 0; c < graphs; ++c) {
    order.number[c] = static_cast<std::uint32_t>(shuffled(c));
    community[order.number[c]] = c;
  }
  std::uint32_t id = 0;
  for (const std::uint64_t c : community)
    for (std::uint64_t v = starts[c]; v < starts[c + 1]; ++v) order.ids[v] = id++;
  return order;
}

// Returns a value of each vertex' community.
template <class T, class Of>
Buffer<T> by_community(std::span<const std::uint64_t> starts, std::span<const std::uint32_t> ids,
                       Of of) {
  Buffer<T> values(ids.size());
  for (std::size_t c = 0; c + 1 < starts.size(); ++c)
    for (std::uint64_t v = starts[c]; v < starts[c + 1]; ++v) values[ids[v]] = of(c);
  return values;
}

// Returns the bytes of features, labels and split, and of the tables of classes that they are made
// from.
std::uint64_t data_bytes(const DcsbmOptions& o) {
  const std::uint64_t n = o.vertices, classes = static_cast<std::uint64_t>(o.classes);
  const std::uint64_t graph_ids = o.labels == DcsbmLabels::graphs ? sizeof(std::uint32_t) * n : 0;
  if (classes == 0) return graph_ids;
  const std::uint64_t label_sets = o.labels == DcsbmLabels::sets ? (n + classes) * classes : 0;
  return graph_ids + (sizeof(std::int32_t) + sizeof(Split)) * n +
         sizeof(float) * (n + classes) * o.width + label_sets;
}

// Returns the bytes that generation takes at the most: while pairs are drawn, with the weights of
// vertices and the tables that pairs are drawn from; while the list of pairs, each once, becomes a
// graph, each twice; or with the features, labels and split. Ids are there all the time.
std::uint64_t generation_bytes(const DcsbmOptions& o) {
  const std::uint64_t pairs = o.edges / 2, n = o.vertices;
  const std::uint64_t list = 2 * sizeof(std::uint32_t) * pairs,
                      graph = 2 * sizeof(std::uint32_t) * pairs + sizeof(EdgeOffset) * n;
  return sizeof(std::uint32_t) * n +
         std::max({drawing_bytes(pairs, n), list + graph + sizeof(EdgeOffset) * n,
                   graph + data_bytes(o)});
}

void check_room(const DcsbmOptions& o, std::span<const std::uint64_t> starts) {
  const Pairs wanted = wanted_pairs(o), possible = possible_pairs(starts);
  require<UsageError>(wanted.inner <= possible.inner && wanted.leaving <= possible.leaving,
                      "{} pairs inside communities of {} possible, and {} between them of {}, do "
                      "not fit; ask for fewer edges or communities",
                      wanted.inner, possible.inner, wanted.leaving, possible.leaving);
  require_memory(generation_bytes(o),
                 fmt::format("a graph of {} vertices and {} edges", o.vertices, o.edges));
}

// Options --------------------------------------------------------------------------------------

void check_options(const DcsbmOptions& o) {
  const auto in = [](auto value, auto low, auto high, const char* what) {
    require<UsageError>(value >= low && value <= high, "{} {} is outside {}..{}", what, value, low,
                        high);
  };
  in(o.vertices, std::uint64_t{1}, kMaxVertices32, "the number of vertices");
  in(o.edges, std::uint64_t{0}, kMaxCount, "the number of edges");
  require<UsageError>(o.edges % 2 == 0,
                      "{} edges: the number is odd, but each edge is in both "
                      "directions; give an even number",
                      o.edges);
  in(o.communities, std::uint64_t{1}, o.vertices, "the number of communities");
  in(o.leaving, 0.0, 1.0, "the share of edges that leave their community,");
  in(o.exponent, 1.5, 10.0, "the exponent of the degrees");
  in(o.cap, 0.0, static_cast<double>(kMaxCount), "the largest expected degree");
  in(o.classes, 0, 1 << 30, "the number of classes");
  in(o.width, std::uint64_t{0}, std::uint64_t{1} << 20, "the width of the features");
  in(o.noise, 0.0, 1e6, "the noise");
  require<UsageError>(o.labels != DcsbmLabels::graphs || o.leaving == 0,
                      "no edge leads from one graph of a set to another: the share of edges that "
                      "leave their community is {}, where 0 belongs",
                      o.leaving);
}

constexpr Names<DcsbmLabels, 3> kLabels{"kind of labels", {"vertices", "sets", "graphs"}};

}  // namespace

std::string_view to_string(DcsbmLabels labels) { return kLabels.of(labels); }
DcsbmLabels parse_dcsbm_labels(std::string_view word) { return kLabels.parse(word); }

Dataset generate_dcsbm(const DcsbmOptions& options) {
  check_options(options);
  const auto starts = community_starts(options.vertices, options.communities);
  check_room(options, starts);
  const bool of_graphs = options.labels == DcsbmLabels::graphs;
  GraphOrder order =
      of_graphs ? shuffled_graphs(options, starts) : GraphOrder{{}, shuffled_ids(options)};
  const std::span<const std::uint32_t> ids = order.ids.span();

  Dataset dataset;
  dataset.name = options.name;
  dataset.symmetric = true;
  dataset.graph = build_csr(draw_edges(options, starts, ids), {.undirected = true});
  if (of_graphs) {
    dataset.graphs = static_cast<std::uint32_t>(options.communities);
    dataset.graph_ids =
        by_community<std::uint32_t>(starts, ids, [&](std::size_t c) { return order.number[c]; });
  }
  if (options.classes == 0) return dataset;

  const auto class_of = [&](std::size_t c) {
    return static_cast<std::int32_t>(c % static_cast<std::uint64_t>(options.classes));
  };
  const ClassData data{.classes = options.classes,
                       .width = options.width,
                       .noise = options.noise,
                       .train_per_class = options.train_per_class,
                       .validation_per_class = options.validation_per_class,
                       .seed = options.seed};
  Buffer<std::int32_t> classes = by_community<std::int32_t>(starts, ids, class_of);
  if (options.width > 0) dataset.features = class_features(data, classes.span());
  if (of_graphs) {  // one class for each graph instead
    classes = Buffer<std::int32_t>(options.communities);
    for (std::size_t c = 0; c < options.communities; ++c) classes[order.number[c]] = class_of(c);
  }
  dataset.splits = class_splits(data, classes.span());
  dataset.split_count = 1;
  dataset.classes = options.classes;
  if (options.labels == DcsbmLabels::sets)
    dataset.label_sets = class_label_sets(data, classes.span());
  else
    dataset.labels = std::move(classes);
  return dataset;
}

DcsbmOptions scaled(DcsbmOptions options, double scale) {
  require<UsageError>(scale > 0 && scale <= 1, "scale {} is outside 0..1", scale);
  if (scale == 1) return options;
  const auto times = [&](std::uint64_t count, std::uint64_t least) {
    return std::max(least, static_cast<std::uint64_t>(static_cast<double>(count) * scale + 0.5));
  };
  options.vertices = times(options.vertices, 4);
  options.communities = times(options.communities, 2);
  const Pairs possible = possible_pairs(community_starts(options.vertices, options.communities));
  // Division by 0 gives infinity: then the other kind alone decides.
  const double most = std::min(static_cast<double>(possible.inner) / (1 - options.leaving),
                               static_cast<double>(possible.leaving) / options.leaving);
  options.edges = 2 * std::min(times(options.edges / 2, 1), static_cast<std::uint64_t>(most / 2));
  return options;
}

}  // namespace plait
