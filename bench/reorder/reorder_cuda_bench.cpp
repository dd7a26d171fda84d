// Times the order by communities on a GPU, compares it with the CPU's, and prints edges per second.
//
//   reorder_cuda_bench [--runs 9] [--edges 120000000] [--no-cpu]
//
// The graphs are a block model like ogbn-products and an R-MAT graph. A line has the median of the
// runs, which follow one that is not counted, and the fastest and the slowest: of the whole order,
// with copies to and from the GPU, and of the work between these copies. The lines below have the
// median of each phase.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/graph/build.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/generate.h"
#include "plait/reorder/cuda/community_order.h"
#include "plait/reorder/reorder.h"

namespace plait {
namespace {

struct Options {
  std::uint64_t runs = 9, edges = 120000000;
  bool cpu = true;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print_rate(const char* what, const std::vector<double>& ms, EdgeOffset edges) {
  const double middle = median(ms);
  fmt::print("  {:24}{:9.2f} ms ({:.2f} to {:.2f}), {:7.3f} G edges/s\n", what, middle,
             std::ranges::min(ms), std::ranges::max(ms), static_cast<double>(edges) / middle / 1e6);
}

// Returns whether the order is the CPU's.
bool bench(const char* name, const AnyCsr& graph, bool symmetric, const Options& o) {
  const EdgeOffset edges = edge_count(graph);
  fmt::print("{}: {} vertices, {} edges\n", name, vertex_count(graph), edges);
  std::map<std::string, std::vector<double>> phases;
  std::vector<std::string> names;
  std::vector<double> whole, work;
  Reordering there;
  for (std::uint64_t run = 0; run <= o.runs; ++run) {
    start_profile({});
    settle_phases_by(wait_for_gpu);
    there =
        find_order(ReorderMethod::communities,
                   {.graph = graph, .symmetric = symmetric, .on_gpu = gpu_order_by_communities});
    const Profile profile = end_profile();
    if (run == 0) continue;
    double copies = 0;
    for (const PhaseTotal& phase : profile.phases) {
      const double ms = static_cast<double>(phase.ns) / 1e6;
      if (!phases.contains(phase.name)) names.push_back(phase.name);
      phases[phase.name].push_back(ms);
      if (phase.outer < 0) whole.push_back(ms);
      if (phase.name.starts_with("copy ")) copies += ms;
    }
    work.push_back(whole.back() - copies);
  }
  print_rate("with copies", whole, edges);
  print_rate("on the GPU", work, edges);
  for (const std::string& phase : names)
    fmt::print("    {:22}{:9.2f} ms\n", phase, median(phases[phase]));
  if (!there.gpu) fmt::print("  the GPU's memory was too short: these are the CPU's times\n");
  if (!o.cpu) return there.gpu;
  const Stopwatch watch;
  const Reordering here = find_order(ReorderMethod::communities, {graph, symmetric});
  print_rate("by threads of the CPU", {watch.seconds() * 1e3}, edges);
  const bool same =
      std::ranges::equal(here.order, there.order) && here.communities == there.communities;
  fmt::print("  the order is {}\n", same ? "the CPU's" : "NOT THE CPU'S");
  return same && there.gpu;
}

int run(const Options& o) {
  use_gpu(0);
  fmt::print("{}\n", current_gpu_name());
  DcsbmOptions model = dcsbm_preset("products");
  const double scale = static_cast<double>(o.edges) / static_cast<double>(model.edges);
  model.vertices = static_cast<std::uint64_t>(static_cast<double>(model.vertices) * scale);
  model.edges = o.edges / 2 * 2;
  model.communities = std::max(
      std::uint64_t{2}, static_cast<std::uint64_t>(static_cast<double>(model.communities) * scale));
  model.classes = 0, model.width = 0;
  bool right = bench("block model like products", generate_dcsbm(model).graph, true, o);
  RmatOptions rmat;
  rmat.vertices = 1 << 22, rmat.edges = o.edges;
  right &= bench("R-MAT", build_csr(generate_rmat(rmat)), false, o);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace plait

int main(int count, char** words) {
  plait::Options options;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--no-cpu") == 0) options.cpu = false;
    if (i + 1 == count) break;
    if (std::strcmp(words[i], "--runs") == 0) options.runs = std::stoull(words[i + 1]);
    if (std::strcmp(words[i], "--edges") == 0) options.edges = std::stoull(words[i + 1]);
  }
  return plait::run(options);
}
