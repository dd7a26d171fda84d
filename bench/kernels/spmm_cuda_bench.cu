// spmm on one GPU against cuSPARSE, on generated graphs of the papers' counts, ids shuffled.
//
//   spmm_cuda_bench [--scale=S] [--repetitions=N] [--json=FILE] [--slice=BYTES] [GRAPH...]
//   [WIDTH...]
//
// A GRAPH is one of the papers' graphs, one of the zoo (graph/zoo.h), `zoo` for all of these, or a
// file. Without any, the papers' four that fit are measured.
//
// All contestants multiply the same matrix by the same x, whose rows are padded as in slots
// (row_stride.h); rows of y have no gaps. Each result is compared first with sums in double
// precision, on every 97th row: the exit code is 3 if they differ. Repetitions of all contestants
// take turns; each is a row of runs that takes at least half a millisecond. Each graph and width
// has one line: cuSPARSE's best time, and Plait's times with the ratio of cuSPARSE's to each; FILE
// (build/bench/spmm-cuda.json) receives the times as JSON:
//   sum        fp32, edges without weights, groups in order of size alone
//   clustered  the same, groups in the order of reorder/work_order.h, as Plait runs them
//   weighted   fp32, one weight per edge, clustered
//   bf16       bf16 storage of x and y, groups in order of size alone
//   bf16c      the same, clustered
//   groups     as clustered, by groups where tiles are possible (kernels/even_cut.h)
//   tiles      as clustered, by tiles
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/row_stride.h"
#include "plait/base/timer.h"
#include "plait/graph/build.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/zoo.h"
#include "plait/io/io.h"
#include "plait/kernels/cuda/cusparse.cuh"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/kernels/row_cut.h"
#include "plait/reorder/cuda/work_order.cuh"

namespace plait {
namespace {

struct Options {
  double scale = 1;
  int repetitions = 11;
  std::uint32_t slice_bytes = 0;
  std::string json = "build/bench/spmm-cuda.json";
  std::vector<std::string> graphs;
  std::vector<std::uint64_t> widths;
};

// Returns a positive number, so that sums do not cancel; it is exact in bf16.
template <class T>
__global__ void fill(T* x, std::uint64_t size, std::uint64_t stride) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{256} + threadIdx.x;
  if (i >= size) return;
  const std::uint64_t at = i / stride << 20 | i % stride;  // the same in all types
  const auto hash = static_cast<std::uint32_t>(at * 0x9E3779B97F4A7C15u >> 40);
  x[i] = T(static_cast<float>(1 + hash % 255) / 256);
}

constexpr unsigned kCheckEdges = 16;  // that a block adds at once

// One block of 32 x kCheckEdges threads per row, of which 32 share an edge.
template <class T>
__global__ void largest_error(const EdgeOffset* offsets, const Slot* columns, const float* weights,
                              DeviceRows<const void> x, const T* y, std::uint64_t width,
                              std::uint64_t step, double* error) {
  __shared__ double sums[kCheckEdges][33];
  const std::uint64_t row = blockIdx.x * step;
  for (std::uint64_t begin = 0; begin < width; begin += 32) {
    const std::uint64_t k = begin + threadIdx.x;
    double sum = 0;
    for (EdgeOffset e = offsets[row] + threadIdx.y; e < offsets[row + 1]; e += kCheckEdges)
      if (k < width)
        sum += (weights ? weights[e] : 1.0) *
               static_cast<const float*>(x.data)[columns[e] * x.stride + k];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && k < width) {
      for (unsigned i = 1; i < kCheckEdges; ++i) sum += sums[i][threadIdx.x];
      const auto found = static_cast<double>(static_cast<float>(y[row * width + k]));
      double off = sum == 0 ? (found == 0 ? 0 : 1e30) : fabs(found - sum) / sum;
      if (!(off < 1e30)) off = 1e30;  // NaN: never written
      atomicMax(reinterpret_cast<unsigned long long*>(error),
                static_cast<unsigned long long>(__double_as_longlong(off)));
    }
    __syncthreads();
  }
}

// A graph on the GPU, with Plait's plans for it.
struct Matrix {
  explicit Matrix(const Csr32& graph)
      : rows(graph.vertices()),
        edges(graph.edges()),
        offsets(graph.offsets.span()),
        columns(graph.neighbours.span()) {
    std::vector<std::int32_t> narrow(graph.offsets.begin(), graph.offsets.end());
    offsets32 = DeviceArray<std::int32_t>(std::span<const std::int32_t>(narrow));
    std::vector<float> values(edges, 1.0f);
    ones = DeviceArray<float>(std::span<const float>(values));
    for (std::uint64_t e = 0; e < edges; ++e) values[e] = static_cast<float>(1 + e % 7) / 8;
    weights = DeviceArray<float>(std::span<const float>(values));
    const Stopwatch watch;
    const std::uint32_t most = group_size(edges, rows);
    by_size = std::make_unique<RowGroups>(begin(), end(), rows,
                                          RowGroupOptions{.most = most, .whole = true}, nullptr);
    group_ms = watch.seconds() * 1e3;
    const Stopwatch cluster_watch;
    const auto labels = order_of_work(begin(), end(), columns.data(), rows, nullptr);
    cluster_ms = cluster_watch.seconds() * 1e3;
    by_cluster = std::make_unique<RowGroups>(
        begin(), end(), rows,
        RowGroupOptions{.most = most, .clusters = labels.data(), .whole = true}, nullptr);
  }
  const EdgeOffset* begin() const { return offsets.data(); }
  const EdgeOffset* end() const { return offsets.data() + 1; }

  std::uint64_t rows, edges;
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<std::int32_t> offsets32;
  DeviceArray<Slot> columns;
  DeviceArray<float> ones, weights;
  std::unique_ptr<RowGroups> by_size, by_cluster;
  double group_ms = 0, cluster_ms = 0;
};

struct Contestant {
  std::string name;
  std::function<void()> run;
  const float* weights;  // of the right result, or null
  bool bf16;
  std::vector<float> ms = {};
  int runs = 1;  // per repetition

  float median() {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
  }
};

class Width {
 public:
  Width(const Matrix& m, std::uint64_t width, std::uint32_t slice_bytes)
      : matrix_(m),
        width_(width),
        slice_bytes_(slice_bytes),
        x_(m.rows * row_stride(width)),
        y_(m.rows * width),
        x16_(m.rows * row_stride(width, DType::bf16)),
        y16_(m.rows * width),
        partial_(std::max(spmm_scratch(*m.by_size, width), spmm_scratch(*m.by_cluster, width))),
        cusparse_({.rows = static_cast<std::int64_t>(m.rows),
                   .columns = static_cast<std::int64_t>(m.rows),
                   .edges = static_cast<std::int64_t>(m.edges),
                   .offsets = m.offsets32.data(),
                   .slots = m.columns.data(),
                   .weights = m.ones.data(),
                   .x = x_.data(),
                   .x_stride = static_cast<std::int64_t>(row_stride(width)),
                   .y = y_.data(),
                   .width = static_cast<std::int64_t>(width)}) {
    fill_all(x_, row_stride(width));
    fill_all(x16_, row_stride(width, DType::bf16));
    for (std::size_t k = 0; k < CusparseSpmm::kAlgorithms.size(); ++k)
      contestants_.push_back(
          {"cusparse" + std::to_string(k + 1), [=, this] { cusparse_.run(k); }, nullptr, false});
    add("sum", *m.by_size, nullptr, false);
    add("clustered", *m.by_cluster, nullptr, false);
    add("weighted", *m.by_cluster, m.weights.data(), false);
    add("bf16", *m.by_size, nullptr, true);
    add("bf16c", *m.by_cluster, nullptr, true);
    if (width > kEvenWidth || m.by_cluster->even().size() == 0) return;
    add("groups", *m.by_cluster, nullptr, false, NarrowCut::groups);
    add("tiles", *m.by_cluster, nullptr, false, NarrowCut::tiles);
  }

  std::vector<Contestant>& measure(int repetitions) {
    for (Contestant& c : contestants_) check(c);
    for (Contestant& c : contestants_) {
      const float once = time(c, 3);
      c.runs = std::clamp(static_cast<int>(0.5f / once) + 1, 1, 200);
    }
    for (int r = 0; r < repetitions; ++r)
      for (Contestant& c : contestants_) c.ms.push_back(time(c, c.runs));
    return contestants_;
  }

 private:
  // Returns the milliseconds of one run out of a row of `runs`.
  float time(Contestant& c, int runs) {
    c.run();  // the caches are as this contestant leaves them
    start_.record(nullptr);
    for (int k = 0; k < runs; ++k) c.run();
    stop_.record(nullptr);
    return stop_.since(start_) / static_cast<float>(runs);
  }
  template <class T>
  static void fill_all(DeviceArray<T>& x, std::uint64_t stride) {
    fill<<<static_cast<unsigned>((x.size() + 255) / 256), 256>>>(x.data(), x.size(), stride);
    check_cuda(cudaGetLastError(), "x");
  }
  DeviceRows<const void> x() const { return {x_.data(), DType::f32, row_stride(width_)}; }

  void add(const char* name, const RowGroups& groups, const float* weights, bool bf16,
           NarrowCut narrow = NarrowCut::automatic) {
    DeviceSpmmArgs args{.groups = &groups,
                        .columns = matrix_.columns.data(),
                        .weights = weights,
                        .x = x(),
                        .x_rows = matrix_.rows,
                        .width = width_,
                        .y = {y_.data(), DType::f32, width_},
                        .partial_sums = partial_.data(),
                        .slice_bytes = slice_bytes_,
                        .narrow = narrow};
    if (bf16) {
      args.x = {x16_.data(), DType::bf16, row_stride(width_, DType::bf16)};
      args.y = {y16_.data(), DType::bf16, width_};
    }
    contestants_.push_back({name, [args] { spmm(args, nullptr); }, weights, bf16});
  }

  void check(Contestant& c) {
    check_cuda(cudaMemset(y_.data(), 0xff, y_.size() * sizeof(float)), "y");
    check_cuda(cudaMemset(y16_.data(), 0xff, y16_.size() * sizeof(__nv_bfloat16)), "y");
    c.run();
    DeviceArray<double> error{std::vector<double>{0}};
    constexpr std::uint64_t kStep = 97;
    const auto blocks = static_cast<unsigned>((matrix_.rows + kStep - 1) / kStep);
    const auto compare = [&](const auto* y) {
      largest_error<<<blocks, dim3(32, kCheckEdges)>>>(matrix_.offsets.data(),
                                                       matrix_.columns.data(), c.weights, x(), y,
                                                       width_, kStep, error.data());
    };
    c.bf16 ? compare(y16_.data()) : compare(y_.data());
    check_cuda(cudaGetLastError(), c.name);
    const double off = error.to_host()[0];
    require<MismatchError>(off < (c.bf16 ? 4e-3 : 1e-5), "{} at width {} is wrong by {} relative",
                           c.name, width_, off);
  }

  const Matrix& matrix_;
  std::uint64_t width_;
  std::uint32_t slice_bytes_;
  DeviceArray<float> x_, y_;
  DeviceArray<__nv_bfloat16> x16_, y16_;
  DeviceArray<float> partial_;
  CusparseSpmm cusparse_;
  std::vector<Contestant> contestants_;
  DeviceEvent start_, stop_;
};

class Table {
 public:
  explicit Table(const Options& o) : scale_(o.scale), results_(o.json) {}

  void add(const std::string& graph, std::uint64_t width, std::vector<Contestant>& contestants) {
    const auto write = [&](const char* kernel, const std::vector<float>& sorted) {
      results_.add("spmm-cuda",
                   {{"graph", graph}, {"scale", scale_}, {"width", width}, {"kernel", kernel}},
                   spread_fields(sorted));
    };
    Contestant* cusparse = nullptr;  // the best
    for (Contestant& c : contestants)
      if (c.name.starts_with("cusparse") && (!cusparse || c.median() < cusparse->median()))
        cusparse = &c;
    const float best = cusparse->median();
    write("cusparse", cusparse->ms);
    std::printf("%-13s %5llu %9.3f", graph.c_str(), static_cast<unsigned long long>(width), best);
    for (Contestant& c : contestants) {
      if (c.name.starts_with("cusparse")) continue;
      const double ratio = best / c.median();
      write(c.name.c_str(), c.ms);
      logs_[c.name].push_back(std::log(ratio));
      std::printf("  %s %.3f (%.2f)", c.name.c_str(), c.median(), ratio);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  void finish() {
    std::printf("geometric mean and least of cuSPARSE / Plait:");
    for (auto& [name, logs] : logs_) {
      double sum = 0;
      for (const double value : logs) sum += value;
      std::printf("  %s %.2f, %.2f", name.c_str(), std::exp(sum / static_cast<double>(logs.size())),
                  std::exp(*std::ranges::min_element(logs)));
    }
    std::printf("\n");
  }

 private:
  double scale_;
  Results results_;
  std::map<std::string, std::vector<double>> logs_;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("--scale="))
      o.scale = std::stod(a.substr(8));
    else if (a.starts_with("--repetitions="))
      o.repetitions = std::stoi(a.substr(14));
    else if (a.starts_with("--slice="))
      o.slice_bytes = static_cast<std::uint32_t>(std::stoul(a.substr(8)));
    else if (a.starts_with("--json="))
      o.json = a.substr(7);
    else if (!a.empty() && std::isdigit(a[0]))
      o.widths.push_back(std::stoull(a));
    else if (a == "zoo")
      for (const ZooGraph& graph : zoo()) o.graphs.emplace_back(graph.name);
    else
      o.graphs.push_back(a);
  }
  if (o.graphs.empty()) o.graphs = {"reddit", "products", "orkut", "proteins"};
  if (o.widths.empty()) o.widths = {16, 32, 64, 128, 256};
  return o;
}

Csr32 graph_of(const std::string& name, double scale) {
  if (name.find('.') != std::string::npos) return std::get<Csr32>(read_dataset(name).graph);
  const auto presets = dcsbm_presets();
  if (std::ranges::find(presets, name, &DcsbmOptions::name) == presets.end())
    return std::get<Csr32>(build_csr(make(zoo_graph(name), scale)));
  DcsbmOptions options = scaled(dcsbm_preset(name), scale);
  options.classes = 0, options.width = 0;
  return std::get<Csr32>(generate_dcsbm(options).graph);
}

void run(const Options& o) {
  require(gpu_count() > 0, "no GPU is there");
  Table table(o);
  std::printf("ms, median; in brackets cuSPARSE / Plait\n");
  for (const std::string& name : o.graphs) {
    const Matrix matrix(graph_of(name, o.scale));
    std::printf("%s: %llu rows, %llu edges, clusters in %.1f ms, groups in %.1f ms\n", name.c_str(),
                static_cast<unsigned long long>(matrix.rows),
                static_cast<unsigned long long>(matrix.edges), matrix.cluster_ms, matrix.group_ms);
    for (const std::uint64_t width : o.widths) {
      Width contest(matrix, width, o.slice_bytes);
      table.add(name, width, contest.measure(o.repetitions));
    }
  }
  table.finish();
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  try {
    plait::run(plait::parse(argc, argv));
  } catch (const plait::Error& error) {
    std::fprintf(stderr, "spmm_cuda_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
