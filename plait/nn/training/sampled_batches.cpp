#include "plait/nn/training/sampled_batches.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "plait/aggregate/sampled_edges.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/random.h"
#include "plait/graph/loops.h"
#include "plait/nn/model.h"
#include "plait/placement/row_block.h"
#include "plait/sample/draw.h"
#include "plait/sample/neighbours.h"

namespace plait {
namespace {

constexpr std::uint64_t kOrder = std::uint64_t{0x4F72646572}
                                 << 24;  // counters of the order of examples

// The labelled training examples.
std::vector<std::uint64_t> training_examples(const Dataset& dataset, std::span<const Split> split) {
  std::vector<std::uint64_t> examples;
  for (std::uint64_t v = 0; v < split.size(); ++v)
    if (split[v] == Split::train && (dataset.labels.empty() || dataset.labels[v] >= 0))
      examples.push_back(v);
  return examples;
}

// Returns the examples in the order of an epoch: by random numbers that are keyed by the vertex.
std::vector<std::uint64_t> in_order_of(std::uint64_t epoch, std::uint64_t seed,
                                       const Dataset& dataset,
                                       std::vector<std::uint64_t> examples) {
  struct Keyed {
    std::uint64_t key, number, example;
    auto operator<=>(const Keyed&) const = default;
  };
  const Philox philox(seed);
  std::vector<Keyed> keyed;
  keyed.reserve(examples.size());
  for (const std::uint64_t v : examples) {
    const auto words = philox(dataset.number(v), kOrder | epoch);
    keyed.push_back({std::uint64_t{words[0]} << 32 | words[1], dataset.number(v), v});
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, examples.begin(), &Keyed::example);
  return examples;
}

torch::Tensor tensor_of(const std::vector<float>& values) {
  return torch::from_blob(const_cast<float*>(values.data()),
                          {static_cast<std::int64_t>(values.size())})
      .clone();
}

}  // namespace

struct SampledBatches::State {
  // A batch but for what its ranks must agree on.
  struct Prepared {
    std::int64_t step = 0;
    InputFeatures input;
    std::vector<SampledEdges> edges;  // one per layer
    std::vector<SampleScales> scales;
    SplitRows targets;
    double examples = 0;
  };

  World& world;
  const Dataset& dataset;
  const TrainConfig config;
  const ShardOptions options;
  const std::vector<std::uint64_t> examples;
  const std::int64_t steps;  // of an epoch
  const AnyCsr graph;        // without loops, if every vertex gets one
  const std::vector<float> loops, normalization;
  const NeighbourSampler sampler;
  const std::unique_ptr<NeighbourSampler::Workspace> workspace;
  std::pair<std::int64_t, std::vector<std::uint64_t>> order{-1, {}};  // of the epoch under way

  std::mutex mutex;  // guards the three below
  std::condition_variable_any changed;
  std::deque<Prepared> ready;
  std::exception_ptr error;
  std::jthread worker;  // the last member: it ends before the others do

  State(World& w, const Dataset& d, const TrainConfig& c, std::span<const Split> split)
      : world(w),
        dataset(d),
        config(c),
        options(shard_options_of(c.model)),
        examples(training_examples(d, split)),
        steps((std::ssize(examples) + group() - 1) / group()),
        graph(options.one_loop_each ? without_loops(d.graph) : d.graph),
        loops(options.one_loop_each ? loop_weights(d.graph) : std::vector<float>()),
        normalization(normalization_of_all()),
        sampler(graph, {.fanouts = c.sampled->fanouts, .targets = HopTargets::all}),
        workspace(sampler.workspace()) {
    const std::int64_t last = std::ssize(examples) % group();
    require<UsageError>(c.model.norm != NormKind::batch || (group() > 1 && last != 1),
                        "a step takes 1 of {} examples, over which nothing can be normalised; "
                        "change --batch, or --norm",
                        examples.size());
  }

  // Examples of all ranks in a step.
  std::int64_t group() const { return config.sampled->batch * world.size(); }

  std::vector<float> normalization_of_all() const {
    constexpr std::uint64_t kRows = 4096;  // of which copies are made at a time
    if (config.model.kind != "gcn") return {};
    std::vector<float> values;
    values.reserve(dataset.vertices());
    for (std::uint64_t begin = 0; begin < dataset.vertices(); begin += kRows)
      for (const float degree :
           degrees_of(dataset.graph, {begin, std::min(begin + kRows, dataset.vertices())}, true))
        values.push_back(degree > 0 ? 1 / std::sqrt(degree) : 0);
    return values;
  }

  // Returns this rank's examples of a step: a part of the step's that differs by one at most.
  std::span<const std::uint64_t> seeds_of(std::int64_t step, double& all) {
    const std::int64_t epoch = step / steps;
    if (order.first != epoch)
      order = {epoch, in_order_of(static_cast<std::uint64_t>(epoch), config.model.seed, dataset,
                                  examples)};
    const std::int64_t first = step % steps * group();
    const std::int64_t count = std::min(group(), std::ssize(examples) - first);
    const std::int64_t begin = count * world.rank() / world.size();
    const std::int64_t end = count * (world.rank() + 1) / world.size();
    all = static_cast<double>(count);
    return std::span<const std::uint64_t>(order.second)
        .subspan(static_cast<std::size_t>(first + begin), static_cast<std::size_t>(end - begin));
  }

  // Returns the number of a target's edges in the graph for each edge of its sample.
  static float scale_of(EdgeOffset all, EdgeOffset sampled) {
    return sampled == 0
               ? 1.0f
               : static_cast<float>(static_cast<double>(all) / static_cast<double>(sampled));
  }

  // Returns a hop's edges as a layer reads them, with the loop of each target first if it has one.
  template <VertexId V>
  SampledEdges edges_of(const Csr<V>& csr, const Sample& sample, const Sample::Hop& hop) const {
    SampledEdges edges{.inputs = hop.vertices};
    for (std::uint64_t t = 0; t < hop.targets(); ++t) {
      const std::uint64_t v = sample.vertices[t];
      const float scale = scale_of(csr.degree(v), hop.offsets[t + 1] - hop.offsets[t]);
      if (options.one_loop_each) {
        edges.sources.push_back(static_cast<Slot>(t));
        edges.weights.push_back(loops.empty() ? 1 : loops[v]);
      }
      for (std::uint32_t e = hop.offsets[t]; e < hop.offsets[t + 1]; ++e) {
        edges.sources.push_back(hop.neighbours[e]);
        if (options.one_loop_each) edges.weights.push_back(scale * csr.weight(hop.edges[e]));
      }
      edges.offsets.push_back(edges.sources.size());
    }
    if (options.slot_vertices)
      for (std::uint64_t i = 0; i < hop.vertices; ++i)
        edges.vertices.push_back(dataset.number(sample.vertices[i]));
    return edges;
  }

  template <VertexId V>
  SampleScales scales_of(const Csr<V>& csr, const Sample& sample, const Sample::Hop& hop) const {
    std::vector<float> sums, inputs;
    for (std::uint64_t t = 0; t < hop.targets(); ++t)
      sums.push_back(scale_of(csr.degree(sample.vertices[t]), hop.offsets[t + 1] - hop.offsets[t]));
    if (normalization.empty()) return {{}, tensor_of(sums)};
    for (std::uint64_t i = 0; i < hop.vertices; ++i)
      inputs.push_back(normalization[sample.vertices[i]]);
    return {tensor_of(inputs), tensor_of(sums)};
  }

  InputFeatures input_of(const Sample& sample) const {
    const auto count = static_cast<std::int64_t>(sample.vertices.size());
    InputVertices vertices{torch::empty({count}, torch::kInt64), {}};
    std::ranges::copy(sample.vertices, vertices.ids.mutable_data_ptr<std::int64_t>());
    vertices.numbers = vertices.ids;
    if (!dataset.numbers.empty()) {
      vertices.numbers = torch::empty_like(vertices.ids);
      std::ranges::transform(sample.vertices, vertices.numbers.mutable_data_ptr<std::int64_t>(),
                             [&](std::uint64_t v) { return dataset.number(v); });
    }
    return {dataset.features, std::move(vertices), config.normalize};
  }

  Prepared prepare(std::int64_t step) {
    double all = 0;
    const std::span seeds = seeds_of(step, all);
    const std::uint64_t key = sample_key(config.model.seed, static_cast<std::uint64_t>(step));
    const Sample sample = sampler.sample(seeds, key, *workspace);
    const auto rows = torch::arange(static_cast<std::int64_t>(seeds.size()));
    Prepared prepared{.step = step,
                      .input = input_of(sample),
                      .edges = {},
                      .scales = {},
                      .targets = {rows, labels_of(dataset, seeds)},
                      .examples = all};
    for (auto hop = sample.hops.rbegin(); hop != sample.hops.rend();
         ++hop)  // the first layer's is last
      std::visit(
          [&](const auto& csr) {
            prepared.edges.push_back(edges_of(csr, sample, *hop));
            prepared.scales.push_back(scales_of(csr, sample, *hop));
          },
          graph);
    return prepared;
  }

  // Prepares batches from `step` on, until it is asked to stop.
  void work(const std::stop_token& stop, std::int64_t step) {
    const ThreadCount one(1);  // the others compute
    try {
      for (;; ++step) {
        {
          std::unique_lock lock(mutex);
          if (!changed.wait(lock, stop,
                            [&] { return std::ssize(ready) < config.sampled->prefetch; }))
            return;
        }
        Prepared next = prepare(step);
        const std::lock_guard lock(mutex);
        ready.push_back(std::move(next));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      changed.notify_all();
    }
  }

  Prepared take(std::int64_t step) {
    const Timed timed("wait for a batch");
    if (!worker.joinable())
      worker = std::jthread([this, step](const std::stop_token& stop) { work(stop, step); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty() || error; });
    if (ready.empty()) std::rethrow_exception(error);
    Prepared next = std::move(ready.front());
    ready.pop_front();
    changed.notify_all();
    require(next.step == step, "batch {} was asked for, but {} is next", step, next.step);
    return next;
  }
};

SampledBatches::SampledBatches(World& world, const Dataset& dataset, const TrainConfig& config,
                               std::span<const Split> split)
    : state_((check_sampled(dataset, config),
              std::make_unique<State>(world, dataset, config, split))) {}

SampledBatches::~SampledBatches() = default;

std::int64_t SampledBatches::steps() const { return state_->steps; }

SampledBatch SampledBatches::batch(std::int64_t step) {
  State& s = *state_;
  State::Prepared next = s.take(step);
  std::vector<double>
      rows;  // own rows of each layer on all ranks, over which batches are normalised
  for (const SampledEdges& edges : next.edges)
    rows.push_back(static_cast<double>(edges.offsets.size() - 1));
  if (s.config.model.norm == NormKind::batch) s.world.all_reduce_sum(rows);
  SampledBatch batch{std::move(next.input), {}, std::move(next.targets), next.examples};
  for (std::size_t l = 0; l < rows.size(); ++l)
    batch.graphs.push_back(c10::make_intrusive<GraphHandle>(
        s.world, make_sample_aggregator(std::move(next.edges[l])),
        static_cast<std::uint64_t>(rows[l]), std::move(next.scales[l])));
  return batch;
}

void check_sampled(const Dataset& dataset, const TrainConfig& config) {
  const SampledTraining& s = *config.sampled;
  require<UsageError>(!dataset.is_set_of_graphs(),
                      "{} is a set of graphs; only one graph is sampled", dataset.name);
  require<UsageError>(std::ssize(s.fanouts) == config.model.layers,
                      "--fanout has {} numbers for {} layers; give one per layer", s.fanouts.size(),
                      config.model.layers);
  require<UsageError>(config.trials.empty(), "trials are of steps on the whole graph");
  require<UsageError>(s.batch >= 1 && s.prefetch >= 1,
                      "batch is {} and prefetch {}; use at least 1", s.batch, s.prefetch);
  require<UsageError>(!config.route.exact,
                      "exact sums are of the whole graph; leave out --exact or --sampled");
  require<UsageError>(!config.route.gpu,
                      "training on samples runs on CPU ranks; leave out --gpus or --sampled");
}

}  // namespace plait
