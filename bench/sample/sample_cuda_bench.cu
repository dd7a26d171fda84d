// Neighbour sampling on one GPU, with append-unique, on a graph like ogbn-products.
//
//   sample_cuda_bench [--scale=S] [--batch=N] [--repetitions=N] [--json=FILE] [FANOUTS...]
//
// FANOUTS: 30,30,30 and the like; without any, 30,30,30, 10,10,10 and 15,10,5. The graph has 2.4 M
// vertices, some 124 M edges and degrees by a power law, at scale 1; four of five edges stay in one
// of 5,000 communities, and ids are shuffled. It is made on the GPU.
//
// The first batch of each way is compared with the CPU's sampler: the exit code is 3 if they
// differ. Each line has the ways all and newest of choosing targets, and disjoint samples:
// milliseconds of a batch, median (least - most), with the wait of the host for its counts; G edges
// a second of these; and the same if the host enqueues the next batch before it waits. FILE
// (build/bench/sample-cuda.json) receives the times as JSON.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/results.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/random.h"
#include "plait/base/timer.h"
#include "plait/graph/generate.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/draw.h"

namespace plait {
namespace {

struct Options {
  double scale = 1;
  std::size_t batch = 512;
  int repetitions = 31;
  std::string json = "build/bench/sample-cuda.json";
  std::vector<std::string> fanouts;
};

// A graph in the order of its communities, of which ids are shuffled places.
struct Hidden {
  static constexpr std::uint64_t kCommunity = 490;  // vertices
  static constexpr double kExponent = 2.2, kMostDegree = 17481;

  std::uint64_t vertices;
  std::vector<EdgeOffset> offsets;  // in the hidden order
  std::vector<std::uint32_t> id;    // by place
  std::vector<EdgeOffset> offsets_by_id;

  explicit Hidden(double scale) : vertices(static_cast<std::uint64_t>(2449029 * scale)) {
    const Philox random(1);
    std::vector<double> degrees(vertices);
    double sum = 0;
    for (std::uint64_t v = 0; v < vertices; ++v) {
      const Philox::Block words = random(v);
      const double u = 1 - uniform_double(words[0], words[1]);
      sum += degrees[v] = std::pow(u, -1 / (kExponent - 1));
    }
    const double factor = 123718280 * scale / sum;
    const Permutation shuffled(vertices, 1, 2);
    offsets.assign(vertices + 1, 0);
    offsets_by_id.assign(vertices + 1, 0);
    id.resize(vertices);
    for (std::uint64_t v = 0; v < vertices; ++v) {
      const auto degree =
          static_cast<std::uint64_t>(std::min(std::round(degrees[v] * factor), kMostDegree));
      id[v] = static_cast<std::uint32_t>(shuffled(v));
      offsets[v + 1] = offsets[v] + degree;
      offsets_by_id[id[v] + 1] = degree;
    }
    for (std::uint64_t v = 0; v < vertices; ++v) offsets_by_id[v + 1] += offsets_by_id[v];
  }
};

// A block per place.
__global__ void write_owners(const EdgeOffset* offsets, std::uint32_t* owner) {
  const std::uint32_t v = blockIdx.x;
  for (EdgeOffset e = offsets[v] + threadIdx.x; e < offsets[v + 1]; e += blockDim.x) owner[e] = v;
}

// An edge comes from the vertex of an edge that is drawn at random, so by degree.
__global__ void write_neighbours(const EdgeOffset* offsets, const std::uint32_t* owner,
                                 const std::uint32_t* id, const EdgeOffset* to_offsets,
                                 std::uint64_t vertices, std::uint32_t* neighbours) {
  const std::uint64_t v = blockIdx.x, first = v / Hidden::kCommunity * Hidden::kCommunity;
  const std::uint64_t last = min(first + Hidden::kCommunity, vertices);
  const Philox random(2);
  std::uint32_t* const to = neighbours + to_offsets[id[v]];
  for (EdgeOffset e = offsets[v] + threadIdx.x; e < offsets[v + 1]; e += blockDim.x) {
    const Philox::Block words = random(e);
    const bool leaves = words[2] < 0x33333333u;
    const EdgeOffset begin = leaves ? 0 : offsets[first];
    const EdgeOffset end = leaves ? offsets[vertices] : offsets[last];
    to[e - offsets[v]] = id[owner[begin + uniform_below(end - begin, words[0], words[1])]];
  }
}

// The graph on the GPU, and on the host for the comparison.
struct Graph {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<std::uint32_t> neighbours;
  GpuCsr there;
  AnyCsr here;

  explicit Graph(const Hidden& hidden)
      : offsets(std::span(hidden.offsets_by_id)), neighbours(hidden.offsets.back()) {
    const DeviceArray<EdgeOffset> hidden_offsets{std::span(hidden.offsets)};
    const DeviceArray<std::uint32_t> id{std::span(hidden.id)};
    DeviceArray<std::uint32_t> owner(neighbours.size());
    const auto blocks = static_cast<unsigned>(hidden.vertices);
    write_owners<<<blocks, 64>>>(hidden_offsets.data(), owner.data());
    write_neighbours<<<blocks, 64>>>(hidden_offsets.data(), owner.data(), id.data(), offsets.data(),
                                     hidden.vertices, neighbours.data());
    check_cuda(cudaGetLastError(), "making a graph");
    there = {offsets.data(), neighbours.data(), false, hidden.vertices, neighbours.size()};
    here = Csr32{hidden.offsets_by_id, neighbours.to_host(), {}};
  }
};

struct Way {
  const char* name;
  bool disjoint;
  HopTargets targets;
};
constexpr Way kWays[] = {{"newest", false, HopTargets::newest},
                         {"all", false, HopTargets::all},
                         {"disjoint", true, HopTargets::newest}};

class Contest {
 public:
  Contest(const Graph& graph, const Options& o, const SampleSettings& settings)
      : graph_(graph), o_(o), settings_(settings), sampler_(graph.there, settings), buffers_(2) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  }
  ~Contest() { cudaStreamDestroy(stream_); }

  void check() {
    const NeighbourSampler sampler(graph_.here, settings_);
    const auto workspace = sampler.workspace();
    const Sample wanted = sampler.sample(seeds(0), key(0), *workspace);
    const Sample found = to_host(sampler_.sample(seeds(0), key(0), buffers_[0], stream_));
    bool same = found.vertices == wanted.vertices && found.trees == wanted.trees;
    for (std::size_t h = 0; h < wanted.hops.size(); ++h)
      same = same && found.hops[h].offsets == wanted.hops[h].offsets &&
             found.hops[h].neighbours == wanted.hops[h].neighbours &&
             found.hops[h].edges == wanted.hops[h].edges;
    require<MismatchError>(same, "a sample differs from the CPU's");
  }

  // Returns the milliseconds of each batch alone; edges() has their edges.
  std::vector<double> alone() {
    std::vector<double> ms;
    for (int k = -3; k < o_.repetitions; ++k) {
      const auto batch = static_cast<std::uint64_t>(k + 3);
      const std::vector<std::uint64_t> ids = seeds(batch);
      const Stopwatch watch;
      const GpuSample& sample = sampler_.sample(ids, key(batch), buffers_[0], stream_);
      if (k < 0) continue;
      ms.push_back(watch.seconds() * 1e3);
      for (const GpuSample::Hop& hop : sample.hops) edges_ += hop.edge_count;
      vertices_ += sample.vertex_count;
    }
    return ms;
  }
  // Returns the milliseconds of all batches if there is always one more on its way.
  double together() {
    const auto last = static_cast<std::uint64_t>(o_.repetitions) + 3;
    for (std::uint64_t k = 0; k < 2; ++k) sampler_.sample(seeds(k), key(k), buffers_[k], stream_);
    std::vector<std::vector<std::uint64_t>> all;
    for (std::uint64_t k = 3; k < last; ++k) all.push_back(seeds(k));
    const Stopwatch watch;
    for (std::uint64_t k = 3; k < last; ++k) {
      sampler_.enqueue(all[k - 3], key(k), buffers_[k % 2], stream_);
      if (k > 3) sampler_.wait(buffers_[(k - 1) % 2]);
    }
    sampler_.wait(buffers_[(last - 1) % 2]);
    return watch.seconds() * 1e3;
  }
  std::uint64_t edges() const { return edges_; }  // of all batches
  std::uint64_t vertices() const { return vertices_; }

 private:
  static std::uint64_t key(std::uint64_t batch) { return sample_key(1, batch); }
  std::vector<std::uint64_t> seeds(std::uint64_t batch) const {
    const Permutation shuffled(graph_.there.vertices, 5, batch);
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(o_.batch, graph_.there.vertices));
    for (std::uint64_t i = 0; i < ids.size(); ++i) ids[i] = shuffled(i);
    return ids;
  }

  const Graph& graph_;
  const Options& o_;
  const SampleSettings settings_;
  const GpuNeighbourSampler sampler_;
  std::vector<GpuSampleBuffers> buffers_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t edges_ = 0, vertices_ = 0;
};

std::vector<std::int64_t> parse_fanouts(const std::string& text) {
  std::vector<std::int64_t> fanouts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    fanouts.push_back(std::stoll(text.substr(at, end - at)));
    at = end + 1;
  }
  return fanouts;
}

void run(const Options& o) {
  require(gpu_count() > 0, "no GPU is there");
  Results results(o.json);
  const Stopwatch watch;
  const Graph graph{Hidden(o.scale)};
  std::printf("%s: %llu vertices, %llu edges, made in %.1f s; batches of %zu seeds\n",
              current_gpu_name().c_str(), static_cast<unsigned long long>(graph.there.vertices),
              static_cast<unsigned long long>(graph.there.edges), watch.seconds(), o.batch);
  std::printf("%-10s %-9s %11s %11s %24s %9s %9s\n", "fan-outs", "targets", "edges", "vertices",
              "ms of a batch alone", "G edges/s", "two on");
  for (const std::string& fanouts : o.fanouts)
    for (const Way& way : kWays) {
      Contest contest(
          graph, o,
          {.fanouts = parse_fanouts(fanouts), .disjoint = way.disjoint, .targets = way.targets});
      contest.check();
      std::vector<double> ms = contest.alone();
      double sum = 0;
      for (const double each : ms) sum += each;
      std::ranges::sort(ms);
      const auto edges = static_cast<double>(contest.edges());
      const double rate = edges / sum / 1e6, pipelined = edges / contest.together() / 1e6;
      const auto count = static_cast<std::uint64_t>(o.repetitions);
      std::printf("%-10s %-9s %11llu %11llu %8.3f (%.3f - %.3f) %9.2f %9.2f\n", fanouts.c_str(),
                  way.name, static_cast<unsigned long long>(contest.edges() / count),
                  static_cast<unsigned long long>(contest.vertices() / count), ms[ms.size() / 2],
                  ms.front(), ms.back(), rate, pipelined);
      std::fflush(stdout);
      ResultFields fields = spread_fields(ms);
      fields.update({{"g_edges_s", rate}, {"g_edges_s_two", pipelined}});
      results.add(
          "sample-cuda",
          {{"fanouts", fanouts}, {"targets", way.name}, {"batch", o.batch}, {"scale", o.scale}},
          fields);
    }
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.starts_with("--scale="))
      o.scale = std::stod(a.substr(8));
    else if (a.starts_with("--batch="))
      o.batch = std::stoull(a.substr(8));
    else if (a.starts_with("--repetitions="))
      o.repetitions = std::stoi(a.substr(14));
    else if (a.starts_with("--json="))
      o.json = a.substr(7);
    else
      o.fanouts.push_back(a);
  }
  if (o.fanouts.empty()) o.fanouts = {"30,30,30", "10,10,10", "15,10,5"};
  return o;
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  try {
    plait::run(plait::parse(argc, argv));
  } catch (const plait::Error& error) {
    std::fprintf(stderr, "sample_cuda_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
