// The graphs of the papers' tables. Edges are directed ones here.
#include <array>
#include <string>

#include "plait/base/error.h"
#include "plait/graph/dcsbm.h"

namespace plait {
namespace {

constexpr std::string_view kMgg = "MGG (OSDI 2023), table 1";
constexpr std::string_view kWholeGraph = "WholeGraph (SC 2022), table II";
constexpr std::string_view kTypeI = "GNNAdvisor (OSDI 2021), table 1, type I";
constexpr std::string_view kTypeII = "GNNAdvisor (OSDI 2021), table 1, type II";
constexpr std::string_view kTypeIII = "GNNAdvisor (OSDI 2021), table 1, type III";

// The counts of a graph in a table, and the number of its communities.
struct Counts {
  std::uint64_t vertices, edges, communities;
};
// The distribution of its edges: DcsbmOptions says what the numbers are.
struct Shape {
  double leaving, exponent;
};
struct Data {
  std::int32_t classes;
  std::uint64_t width;
  DcsbmLabels labels = DcsbmLabels::vertices;
};

// How often a table's edge is counted here.
constexpr std::uint64_t kBothWays = 2, kOnce = 1;

constexpr DcsbmOptions preset(std::string_view name, std::string_view table, Counts counts,
                              std::uint64_t times, Shape shape, Data data) {
  DcsbmOptions o;
  o.name = name;
  o.table = table;
  o.vertices = counts.vertices;
  o.edges = counts.edges * times / 2 * 2;  // an odd number of edges is one less
  o.communities = counts.communities;
  o.leaving = shape.leaving, o.exponent = shape.exponent;
  o.classes = data.classes, o.width = data.width, o.labels = data.labels;
  return o;
}

constexpr DcsbmOptions mgg(std::string_view name, Counts counts, std::uint64_t times, Shape shape,
                           Data data) {
  return preset(name, kMgg, counts, times, shape, data);
}
// Sets of graphs side by side. There are as many communities as graphs in the set, but fewer in
// TWITTER-Partial, whose graphs are almost complete.
constexpr DcsbmOptions set_of_graphs(std::string_view name, Counts counts, std::uint64_t width) {
  return preset(name, kTypeII, counts, kOnce, {0, 5.0}, {2, width, DcsbmLabels::graphs});
}
constexpr DcsbmOptions type_iii(std::string_view name, Counts counts, Shape shape, Data data) {
  return preset(name, kTypeIII, counts, kOnce, shape, data);
}

// WholeGraph gives friendster no classes.
constexpr std::array kDcsbmPresets{
    mgg("reddit", {232965, 114615892, 50}, kOnce, {0.25, 2.0}, {41, 602}),
    mgg("products", {2449029, 61859140, 5000}, kBothWays, {0.20, 2.2}, {47, 100}),
    mgg("proteins", {132534, 39561252, 200}, kBothWays, {0.30, 3.0}, {112, 8, DcsbmLabels::sets}),
    mgg("enwiki", {4203323, 202623226, 5000}, kOnce, {0.30, 2.2}, {12, 300}),
    mgg("orkut", {3072441, 117185083, 8000}, kBothWays, {0.40, 2.2}, {32, 128}),
    mgg("papers100M", {111059956, 1615685872, 100000}, kOnce, {0.30, 2.2}, {64, 128}),
    preset("friendster", kWholeGraph, {68300000, 2600000000, 100000}, kOnce, {0.40, 2.2},
           {64, 128}),
    preset("citeseer", kTypeI, {3327, 9464, 30}, kOnce, {0.20, 3.0}, {6, 3703}),
    preset("cora", kTypeI, {2708, 10858, 28}, kOnce, {0.20, 3.0}, {7, 1433}),
    preset("pubmed", kTypeI, {19717, 88676, 60}, kOnce, {0.20, 2.5}, {3, 500}),
    preset("ppi", kTypeI, {56944, 818716, 484}, kOnce, {0.20, 2.5}, {121, 50, DcsbmLabels::sets}),
    set_of_graphs("PROTEINS_full", {43471, 162088, 1113}, 29),
    set_of_graphs("OVCAR-8H", {1890931, 3946402, 40516}, 66),
    set_of_graphs("Yeast", {1714644, 3636546, 79601}, 74),
    set_of_graphs("DD", {334925, 1686092, 1178}, 89),
    set_of_graphs("TWITTER-Partial", {580768, 1435116, 48000}, 1323),
    set_of_graphs("SW-620H", {1889971, 3944206, 40532}, 66),
    type_iii("amazon0505", {410236, 4878875, 4000}, {0.20, 2.8}, {22, 96}),
    type_iii("artist", {50515, 1638396, 200}, {0.40, 2.2}, {12, 100}),
    type_iii("com-amazon", {334863, 1851744, 4000}, {0.20, 2.8}, {22, 96}),
    type_iii("soc-BlogCatalog", {88784, 2093195, 200}, {0.40, 2.0}, {39, 128}),
    type_iii("amazon0601", {403394, 3387388, 4000}, {0.20, 2.8}, {22, 96}),
};

}  // namespace

std::span<const DcsbmOptions> dcsbm_presets() { return kDcsbmPresets; }

const DcsbmOptions& dcsbm_preset(std::string_view name) {
  std::string names;
  for (const DcsbmOptions& preset : kDcsbmPresets) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw UsageError(fmt::format("'{}' is not one of {}", name, names));
}

}  // namespace plait
