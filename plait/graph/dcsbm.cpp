#include "plait/graph/dcsbm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/graph/build.h"
#include "plait/graph/dcsbm_edges.h"
#include "plait/graph/generate.h"

namespace plait {

using namespace dcsbm;

namespace {

constexpr std::size_t kVertexGrain = std::size_t{1} << 12;
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 48;

// Features, labels, splits ---------------------------------------------------------------------

// Returns a nearly normal number of deviation 1: the sum of eight uniform numbers of 16 bits. The
// sum is exact up to one rounding.
float normal(const Philox::Block& random) {
  static const auto scale = static_cast<float>(1 / std::sqrt(8 * (0x1p32 - 1) / 12));
  std::int32_t sum = 0;
  for (const std::uint32_t bits : random)
    sum += static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16));
  return static_cast<float>(sum - 4 * 0xffff) * scale;
}

Buffer<float> class_means(const DcsbmOptions& options) {
  const Philox philox(options.seed);
  const auto classes = static_cast<std::uint64_t>(options.classes);
  Buffer<float> means(classes * options.width);
  for (std::uint64_t c = 0; c < classes; ++c) {
    float* const mean = means.data() + c * options.width;
    double norm = 0;
    for (std::uint64_t j = 0; j < options.width; ++j) {
      mean[j] = normal(philox(c << 32 | j, kMeanStream));
      norm += double{mean[j]} * mean[j];
    }
    for (std::uint64_t j = 0; j < options.width; ++j)
      mean[j] = static_cast<float>(mean[j] / std::sqrt(norm));
  }
  return means;
}

Features make_features(const DcsbmOptions& options, std::span<const std::int32_t> labels) {
  const Buffer<float> means = class_means(options);
  const Philox philox(options.seed);
  const auto noise = static_cast<float>(options.noise);
  const std::uint64_t width = options.width;
  Buffer<float> values(options.vertices * width);
  parallel_blocks(options.vertices, kVertexGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) {
      const float* const mean = means.data() + static_cast<std::uint64_t>(labels[v]) * width;
      for (std::uint64_t j = 0; j < width; ++j)
        values[v * width + j] = mean[j] + noise * normal(philox(v, kNoiseStream | j));
    }
  });
  Features features;
  features.rows = options.vertices;
  features.width = width;
  features.f32 = std::move(values);
  return features;
}

Buffer<std::int32_t> make_labels(const DcsbmOptions& options, std::span<const std::uint64_t> starts,
                                 std::span<const std::uint32_t> ids) {
  Buffer<std::int32_t> labels(options.vertices);
  for (std::size_t c = 0; c + 1 < starts.size(); ++c)
    for (std::uint64_t v = starts[c]; v < starts[c + 1]; ++v)
      labels[ids[v]] = static_cast<std::int32_t>(c % static_cast<std::uint64_t>(options.classes));
  return labels;
}

Buffer<Split> make_splits(const DcsbmOptions& options, std::span<const std::int32_t> labels) {
  Buffer<Split> splits(options.vertices, Split::test);
  std::vector<std::uint64_t> seen(static_cast<std::size_t>(options.classes), 0);
  const Permutation order(options.vertices, options.seed, kSplitStream);
  for (std::uint64_t i = 0; i < options.vertices; ++i) {
    const std::uint64_t v = order(i);
    const std::uint64_t rank = seen[static_cast<std::size_t>(labels[v])]++;
    if (rank < options.train_per_class)
      splits[v] = Split::train;
    else if (rank - options.train_per_class < options.validation_per_class)
      splits[v] = Split::validation;
  }
  return splits;
}

void check_room(const DcsbmOptions& o, std::span<const std::uint64_t> starts) {
  const Pairs wanted = wanted_pairs(o), possible = possible_pairs(starts);
  require<UsageError>(wanted.inner <= possible.inner && wanted.leaving <= possible.leaving,
                      "{} pairs inside communities of {} possible, and {} between them of {}, do "
                      "not fit; ask for fewer edges or communities",
                      wanted.inner, possible.inner, wanted.leaving, possible.leaving);
  const std::uint64_t pairs = o.edges / 2;
  require_memory(
      drawing_bytes(pairs) + 24 * o.vertices + (o.classes > 0 ? 4 * o.vertices * o.width : 0),
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
}

}  // namespace

Dataset generate_dcsbm(const DcsbmOptions& options) {
  check_options(options);
  const auto starts = community_starts(options.vertices, options.communities);
  check_room(options, starts);

  const Permutation shuffled(options.vertices, options.seed, kIdStream);
  Buffer<std::uint32_t> ids(options.vertices);
  parallel_blocks(options.vertices, kVertexGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) ids[v] = static_cast<std::uint32_t>(shuffled(v));
  });

  Dataset dataset;
  dataset.name = options.name;
  dataset.symmetric = true;
  dataset.graph = build_csr(draw_edges(options, starts, ids.span()), {.undirected = true});
  if (options.classes == 0) return dataset;
  Buffer<std::int32_t> labels = make_labels(options, starts, ids.span());
  if (options.width > 0) dataset.features = make_features(options, labels.span());
  dataset.splits = make_splits(options, labels.span());
  dataset.split_count = 1;
  dataset.labels = std::move(labels);
  dataset.classes = options.classes;
  return dataset;
}

std::span<const DcsbmOptions> dcsbm_presets() {
  const auto preset = [](std::string_view name, std::array<std::uint64_t, 3> counts, double leaving,
                         double exponent, std::int32_t classes, std::uint64_t width) {
    DcsbmOptions o;
    o.name = name;
    o.vertices = counts[0], o.edges = counts[1], o.communities = counts[2];
    o.leaving = leaving, o.exponent = exponent;
    o.classes = classes, o.width = width;
    return o;
  };
  // Counts, classes and widths:
  //   reddit .. papers100M  MGG (Wang et al., OSDI 2023), with both directions of products,
  //   proteins
  //                         and orkut counted, and widths and classes of these graphs elsewhere
  //   friendster            WholeGraph (Yang et al., SC 2022), table II, which has no classes
  //   citeseer .. ppi       GNNAdvisor (Wang et al., OSDI 2021), table 1, type I
  //   PROTEINS_full ..      type II there: sets of graphs side by side, so no edge leaves its
  //     SW-620H             community. There are as many communities as graphs in the set, but
  //                         fewer in TWITTER-Partial, whose graphs are almost complete
  //   amazon0505 ..         type III there; an odd number of edges is one less here
  static const std::array presets{
      preset("reddit", {232965, 114615892, 50}, 0.25, 2.0, 41, 602),
      preset("products", {2449029, 123718280, 5000}, 0.20, 2.2, 47, 100),
      preset("proteins", {132534, 79122504, 200}, 0.30, 3.0, 2, 8),
      preset("enwiki", {4203323, 202623226, 5000}, 0.30, 2.2, 12, 96),
      preset("orkut", {3072441, 234370166, 8000}, 0.40, 2.2, 32, 96),
      preset("papers100M", {111059956, 1615685872, 100000}, 0.30, 2.2, 172, 128),
      preset("friendster", {68300000, 2600000000, 100000}, 0.40, 2.2, 64, 128),
      preset("citeseer", {3327, 9464, 30}, 0.20, 3.0, 6, 3703),
      preset("cora", {2708, 10858, 28}, 0.20, 3.0, 7, 1433),
      preset("pubmed", {19717, 88676, 60}, 0.20, 2.5, 3, 500),
      preset("ppi", {56944, 818716, 484}, 0.20, 2.5, 121, 50),
      preset("PROTEINS_full", {43471, 162088, 1113}, 0, 5.0, 2, 29),
      preset("OVCAR-8H", {1890931, 3946402, 40516}, 0, 5.0, 2, 66),
      preset("Yeast", {1714644, 3636546, 79601}, 0, 5.0, 2, 74),
      preset("DD", {334925, 1686092, 1178}, 0, 5.0, 2, 89),
      preset("TWITTER-Partial", {580768, 1435116, 48000}, 0, 5.0, 2, 1323),
      preset("SW-620H", {1889971, 3944206, 40532}, 0, 5.0, 2, 66),
      preset("amazon0505", {410236, 4878874, 4000}, 0.20, 2.8, 22, 96),
      preset("artist", {50515, 1638396, 200}, 0.40, 2.2, 12, 100),
      preset("com-amazon", {334863, 1851744, 4000}, 0.20, 2.8, 22, 96),
      preset("soc-BlogCatalog", {88784, 2093194, 200}, 0.40, 2.0, 39, 128),
      preset("amazon0601", {403394, 3387388, 4000}, 0.20, 2.8, 22, 96),
  };
  return presets;
}

const DcsbmOptions& dcsbm_preset(std::string_view name) {
  std::string names;
  for (const DcsbmOptions& preset : dcsbm_presets()) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw UsageError(fmt::format("'{}' is not one of {}", name, names));
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
