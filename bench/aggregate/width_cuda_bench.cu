// The cost of widths that are not multiples of four: times each operation at a width, and at the
// next multiple of four, on a graph over one or several GPUs.
//
//   width_cuda_bench [--gpus=N] [--strategy=S] [--wire=bf16] [--repetitions=N] [--json=FILE] GRAPH
//                    [WIDTH...]
//
// Operations are those of an Aggregator: sum (y = A x), scaled (its gradient with both scales, as
// in GCN), attention of one head and the maximum, with their gradients. Attention and the maximum
// need a strategy that brings rows. Each operation has a line with the median ms of either width,
// and the ratio of the two. The last line has the largest ratio. FILE (build/bench/width-N.json)
// receives the times as JSON. Results are checked by `plait bench aggregate` and the tests.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/io/io.h"
#include "plait/measure/cuda/bench.h"
#include "plait/world/launch.h"

namespace plait {
namespace {

struct Options {
  int gpus = 1;
  Strategy strategy = Strategy::pipelined;
  DType wire = DType::f32;
  BenchEffort effort;
  std::string graph, json;
  std::vector<std::uint64_t> widths;
};

__global__ void fill(float* x, std::uint64_t size) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{256} + threadIdx.x;
  if (i < size) x[i] = static_cast<float>(1 + i * 0x9E3779B97F4A7C15u % 255) / 256;
}

DeviceArray<float> filled(std::uint64_t size) {
  DeviceArray<float> x(size);
  if (size > 0) fill<<<static_cast<unsigned>((size + 255) / 256), 256>>>(x.data(), size);
  check_cuda(cudaGetLastError(), "x");
  return x;
}

// The operations at one width, with all arrays that they read and write.
class Width {
 public:
  Width(GpuAggregator& aggregator, std::uint64_t width)
      : aggregator_(aggregator), width_(width), shape_{1, width, 0.2f} {
    const std::uint64_t own = aggregator.own();
    rows_ = filled(own * std::max(shape_.backward_width(), 2 * row_stride(width)));
    for (DeviceArray<float>* wide : {&y_, &u_, &h_}) *wide = filled(own * width);
    for (DeviceArray<float>* narrow : {&scale_, &b_, &norm_}) *narrow = filled(own);
    aggregator.reserve(std::max(shape_.backward_width(), 2 * row_stride(width)));
  }

  void sum() { aggregator_.forward({}, rows_.data(), y_.data(), width_); }
  void scaled() {
    aggregator_.backward({scale_.data(), scale_.data(), true}, rows_.data(), y_.data(), width_);
  }
  void attention() {
    AttentionForward forward;
    forward.shape = shape_;
    forward.t = scale_.data();
    forward.y = y_.data(), forward.u = u_.data();
    forward.b = b_.data(), forward.norm = norm_.data();
    aggregator_.over_edges(rows_.data(), forward);
  }
  void attention_backward() {
    aggregator_.over_edges(rows_.data(), AttentionBackward{.edges = {},
                                                           .shape = shape_,
                                                           .dropout = {},
                                                           .h = h_.data(),
                                                           .s = scale_.data(),
                                                           .h_stride = width_,
                                                           .s_stride = 1,
                                                           .dh = y_.data(),
                                                           .ds = b_.data()});
  }
  void max() {
    aggregator_.over_edges(
        rows_.data(),
        ExtremumForward{.edges = {}, .width = width_, .y = y_.data(), .ties = u_.data()});
  }
  void max_backward() {
    aggregator_.over_edges(
        rows_.data(),
        ExtremumBackward{.edges = {}, .width = width_, .x = h_.data(), .dx = y_.data()});
  }

 private:
  GpuAggregator& aggregator_;
  std::uint64_t width_;
  AttentionShape shape_;
  DeviceArray<float> rows_, y_, u_, h_, scale_, b_, norm_;
};

struct Operation {
  const char* name;
  void (Width::*run)();
  bool needs_rows;  // not sums alone
};
constexpr Operation kOperations[] = {{"sum", &Width::sum, false},
                                     {"scaled", &Width::scaled, false},
                                     {"attention", &Width::attention, true},
                                     {"attention back", &Width::attention_backward, true},
                                     {"max", &Width::max, true},
                                     {"max back", &Width::max_backward, true}};

ResultFields case_of(const Options& o, const std::string& graph, const char* operation,
                     std::uint64_t width) {
  return {{"graph", graph},
          {"gpus", o.gpus},
          {"strategy", to_string(o.strategy)},
          {"wire", o.wire == DType::bf16 ? "bf16" : "fp32"},
          {"operation", operation},
          {"width", width}};
}

void compare(World& world, const Options& o) {
  const Dataset data = read_dataset(o.graph);
  const Partition partition = make_partition(PartitionScheme::edges, data.graph, world.size());
  const auto aggregator =
      make_gpu_aggregator(world, data.graph, data.symmetric, partition,
                          {.route = {.strategy = o.strategy, .wire = o.wire}, .max_width = 1});
  const bool brings_rows = o.strategy == Strategy::pipelined && o.wire == DType::f32;
  const bool tells = world.rank() == 0;
  std::optional<Results> results;
  if (tells) results.emplace(o.json);
  if (tells)
    std::printf("%s, %s on %d GPUs\n%-15s %5s %9s %5s %9s %6s\n", o.graph.c_str(),
                std::string(to_string(o.strategy)).c_str(), world.size(), "operation", "width",
                "ms", "width", "ms", "ratio");
  double largest = 0;
  for (const std::uint64_t width : o.widths) {
    const std::uint64_t next = (width + 3) / 4 * 4;
    Width odd(*aggregator, width), even(*aggregator, next);
    for (const Operation& operation : kOperations) {
      if (operation.needs_rows && !brings_rows) continue;
      const auto ms = [&](Width& one) {
        return time_on_gpus(world, *aggregator, o.effort, [&] { (one.*operation.run)(); });
      };
      const Times of_odd = ms(odd), of_even = ms(even);
      const double ratio = of_odd.median() / of_even.median();
      largest = std::max(largest, ratio);
      if (!tells) continue;
      std::printf("%-15s %5llu %9.3f %5llu %9.3f %6.3f\n", operation.name,
                  static_cast<unsigned long long>(width), of_odd.median(),
                  static_cast<unsigned long long>(next), of_even.median(), ratio);
      ResultFields fields = spread_fields(of_odd.ms);
      fields["over_next"] = ratio;
      results->add("width", case_of(o, data.name, operation.name, width), fields);
    }
  }
  if (tells) std::printf("largest ratio %.3f\n", largest);
}

Options parse(const std::vector<std::string>& arguments) {
  Options o;
  for (const std::string& a : arguments) {
    const auto value = [&](std::string_view name) { return a.substr(name.size()); };
    if (a.starts_with("--gpus="))
      o.gpus = std::stoi(value("--gpus="));
    else if (a.starts_with("--strategy="))
      o.strategy = parse_strategy(value("--strategy="));
    else if (a == "--wire=bf16")
      o.wire = DType::bf16;
    else if (a.starts_with("--repetitions="))
      o.effort.repetitions = std::stoi(value("--repetitions="));
    else if (a.starts_with("--json="))
      o.json = value("--json=");
    else if (o.graph.empty())
      o.graph = a;
    else
      o.widths.push_back(std::stoull(a));
  }
  require<UsageError>(!o.graph.empty(), "a graph is needed: width_cuda_bench [--gpus=N] GRAPH");
  if (o.json.empty()) o.json = "build/bench/width-" + std::to_string(o.gpus) + ".json";
  if (o.widths.empty()) o.widths = {5, 7, 17, 30, 41, 47, 101, 130};
  return o;
}

int run(const std::vector<std::string>& arguments) {
  const Options o = parse(arguments);
  if (o.gpus > 1 && !world_from_environment())
    if (const auto code = launch({.ranks = o.gpus})) return *code;
  if (const auto config = world_from_environment()) {
    use_gpu(local_rank(*config));
    compare(*World::join(*config), o);
  } else {
    use_gpu(0);
    compare(*World::alone(), o);
  }
  return 0;
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  try {
    return plait::run({argv + 1, argv + argc});
  } catch (const plait::Error& error) {
    std::fprintf(stderr, "width_cuda_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
