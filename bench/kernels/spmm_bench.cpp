// spmm against torch.sparse on generated graphs of the shape of reddit and products.
//
//   spmm_bench [--scale=S] [--json=FILE] [Google Benchmark's options]
//
// Both multiply the same weighted matrix by the same x, in the same memory (huge pages), with the
// same number of threads (OMP_NUM_THREADS). Results are compared first: the exit code is 3 if they
// differ. Repetitions of all rivals are run in random order, so that a slow moment of the machine
// hits all alike. The output ends with a table with the ratio of the medians; FILE
// (build/bench/spmm.json) receives the times as JSON. --scale=S shrinks or grows the graphs by a
// factor; --benchmark_out=FILE keeps every repetition.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bench/kernels/torch_spmm.h"
#include "bench/results.h"
#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/graph/dcsbm.h"
#include "plait/kernels/spmm.h"

namespace plait {
namespace {

constexpr std::uint64_t kWidths[] = {16, 64, 128};
constexpr struct {
  const char* preset;
  double scale;
} kGraphs[] = {{"reddit", 0.1}, {"products", 0.2}};
constexpr const char* kRivals[] = {"plait", "torch", "plait-unweighted"};

// Returns numbers that are uniform in [0, 1), a function of seed and index.
Buffer<float> random_floats(std::size_t size, std::uint64_t seed) {
  const Philox random(seed);
  Buffer<float> values(size);
  parallel_blocks(size, 1 << 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) values[i] = uniform_float(random(i)[0]);
  });
  return values;
}

Csr32 make_graph(const char* preset, double scale) {
  DcsbmOptions options = scaled(dcsbm_preset(preset), scale);
  options.classes = 0;
  options.width = 0;
  Csr32 graph = std::get<Csr32>(generate_dcsbm(options).graph);
  graph.weights = random_floats(graph.edges(), 1);
  return graph;
}

struct Case {
  Case(const char* graph_name, const Csr32& matrix, const TorchSpmm& torch_matrix,
       std::uint64_t columns)
      : name(graph_name),
        graph(matrix),
        torch(torch_matrix),
        width(columns),
        x(random_floats(matrix.vertices() * columns, 2)),
        y(matrix.vertices() * columns, 0.0f),
        y_torch(matrix.vertices() * columns, 0.0f) {}

  SpmmArgs args(bool weighted) {
    SpmmArgs args;
    args.begin = graph.offsets.span().first(graph.vertices());
    args.end = graph.offsets.span().last(graph.vertices());
    args.columns = graph.neighbours.data();
    args.weights = weighted ? graph.weights.data() : nullptr;
    args.x.base = x.data();
    args.x.stride = args.width = args.y_stride = width;
    args.y = y.data();
    return args;
  }
  void run(const std::string& rival) {
    if (rival == "torch") {
      torch(x.data(), y_torch.data(), width);
    } else {
      spmm(args(/*weighted=*/rival == "plait"));
    }
  }
  std::string label(const char* rival) const { return fmt::format("{}/{}/{}", name, width, rival); }

  std::string name;
  const Csr32& graph;
  const TorchSpmm& torch;
  std::uint64_t width;
  Buffer<float> x, y, y_torch;
  double scale = 1;  // of the graph
};

// All numbers are positive, so sums do not cancel and relative differences mean something.
void expect_close(float value, float expected, double tolerance, const std::string& what) {
  require<MismatchError>(std::abs(double{value} - expected) <= tolerance * std::abs(expected),
                         "{}: {} where {} is right, beyond {} relative", what, value, expected,
                         tolerance);
}

// Compares all of both results with each other, and every 61st row with the reference.
void check(Case& c) {
  c.run("torch");
  c.run("plait");
  for (std::size_t i = 0; i < c.y.size(); ++i)
    expect_close(c.y[i], c.y_torch[i], 1e-4, c.label("torch"));

  SpmmArgs args = c.args(true);
  std::vector<EdgeOffset> begin, end;
  for (std::size_t i = 0; i < c.graph.vertices(); i += 61) {
    begin.push_back(args.begin[i]);
    end.push_back(args.end[i]);
  }
  std::vector<float> expected(begin.size() * c.width);
  args.begin = begin;
  args.end = end;
  args.y = expected.data();
  spmm_reference(args);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(c.y[i / c.width * 61 * c.width + i % c.width], expected[i], 1e-5,
                 c.label("reference"));
}

// Keeps the time of every repetition, in ms, by the name of the benchmark.
class Times : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration && !run.error_occurred)
        ms_[run.run_name.function_name].push_back(1e3 * run.real_accumulated_time /
                                                  static_cast<double>(run.iterations));
  }
  // Returns sorted times; none if the benchmark was filtered out.
  std::vector<double> of(const std::string& name) const {
    const auto found = ms_.find(name);
    std::vector<double> ms = found == ms_.end() ? std::vector<double>{} : found->second;
    std::sort(ms.begin(), ms.end());
    return ms;
  }

 private:
  std::map<std::string, std::vector<double>> ms_;
};

std::string spread(const std::vector<double>& ms) {
  return fmt::format("{:.1f} ({:.1f} - {:.1f})", ms[ms.size() / 2], ms.front(), ms.back());
}

void write(Results& results, const std::deque<Case>& cases, const Times& times) {
  for (const Case& c : cases)
    for (const char* rival : kRivals)
      if (const auto ms = times.of(c.label(rival)); !ms.empty())
        results.add("spmm",
                    {{"graph", c.name}, {"scale", c.scale}, {"width", c.width}, {"kernel", rival}},
                    spread_fields(ms));
}

void print_table(const std::deque<Case>& cases, const Times& times) {
  fmt::print("\nms, median (least - most):\n{:<9} {:>5} {:>25} {:>25} {:>25} {:>7} {:>9}\n",
             "graph", "width", "plait", "torch", "plait, no weights", "ratio", "of least");
  double log_ratio = 0, log_least = 0;
  int rows = 0;
  for (const Case& c : cases) {
    const auto plait = times.of(c.label("plait")), torch = times.of(c.label("torch"));
    const auto unweighted = times.of(c.label("plait-unweighted"));
    if (plait.empty() || torch.empty()) continue;
    const double ratio = torch[torch.size() / 2] / plait[plait.size() / 2];
    const double least = torch.front() / plait.front();
    fmt::print("{:<9} {:>5} {:>25} {:>25} {:>25} {:>7.2f} {:>9.2f}\n", c.name, c.width,
               spread(plait), spread(torch), unweighted.empty() ? "-" : spread(unweighted), ratio,
               least);
    log_ratio += std::log(ratio);
    log_least += std::log(least);
    ++rows;
  }
  if (rows > 0)
    fmt::print("geometric mean of torch / plait: {:.2f} (of the least times: {:.2f})\n",
               std::exp(log_ratio / rows), std::exp(log_least / rows));
}

struct Options {
  double scale = 1;
  std::string json = "build/bench/spmm.json";
};

// Google Benchmark's arguments, with defaults before what the user gave; takes our options out.
std::vector<std::string> benchmark_arguments(int argc, char** argv, Options& o) {
  std::vector<std::string> arguments{argv[0], "--benchmark_enable_random_interleaving=true",
                                     "--benchmark_repetitions=9", "--benchmark_min_time=0.1"};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--scale=")) {
      char* rest = nullptr;
      o.scale = std::strtod(argument.c_str() + 8, &rest);
      require<UsageError>(*rest == '\0' && o.scale > 0, "--scale takes a number above 0, not '{}'",
                          argument.substr(8));
    } else if (argument.starts_with("--json=")) {
      o.json = argument.substr(7);
    } else {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

void run(int argc, char** argv) {
  Options o;
  std::vector<std::string> arguments = benchmark_arguments(argc, argv, o);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  require<UsageError>(!benchmark::ReportUnrecognizedArguments(count, pointers.data()),
                      "see --help for Google Benchmark's options, --scale=S and --json=FILE");

  fmt::print("rival: {}\nplait: {} threads; x and y of both on huge pages\n", TorchSpmm::settings(),
             thread_count());
  std::deque<Csr32> graphs;
  std::deque<TorchSpmm> torch;
  std::deque<Case> cases;
  for (const auto& [preset, own_scale] : kGraphs) {
    const double all = std::min(1.0, own_scale * o.scale);
    const Csr32& graph = graphs.emplace_back(make_graph(preset, all));
    fmt::print("{} at scale {:g}: {} vertices, {} edges\n", preset, all, graph.vertices(),
               graph.edges());
    torch.emplace_back(graph);
    for (const std::uint64_t width : kWidths) {
      Case& c = cases.emplace_back(preset, graph, torch.back(), width);
      c.scale = all;
      check(c);
      for (const char* rival : kRivals)
        benchmark::RegisterBenchmark(c.label(rival).c_str(), [&c, rival](benchmark::State& state) {
          for (auto _ : state) c.run(rival);
        })->UseRealTime();
    }
  }
  fmt::print("results match\n");
  std::fflush(stdout);
  Results results(o.json);
  Times times;
  benchmark::RunSpecifiedBenchmarks(&times);
  print_table(cases, times);
  write(results, cases, times);
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  try {
    plait::run(argc, argv);
    return 0;
  } catch (const plait::Error& error) {
    fmt::print(stderr, "spmm_bench: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "spmm_bench: {}\n", error.what());
    return 1;
  }
}
