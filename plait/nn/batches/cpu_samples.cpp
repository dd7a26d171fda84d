#include <algorithm>
#include <cmath>

#include "plait/base/data_or_null.h"
#include "plait/base/profile.h"
#include "plait/graph/loops.h"
#include "plait/nn/batches/cpu_batches.h"
#include "plait/nn/model.h"
#include "plait/placement/row_block.h"
#include "plait/sample/eligible_edges.h"
#include "plait/sample/neighbours.h"

namespace plait {
namespace {

// Returns 1 / sqrt(degree) of all vertices; nothing for models that do not scale by it.
std::vector<float> normalization_of(const Dataset& dataset, const ModelConfig& model) {
  constexpr std::uint64_t kRows = 4096;  // rows that are copied at a time
  if (!layer_kind(model.kind).by_degree) return {};
  std::vector<float> values;
  values.reserve(dataset.vertices());
  for (std::uint64_t begin = 0; begin < dataset.vertices(); begin += kRows)
    for (const float degree :
         degrees_of(dataset.graph, {begin, std::min(begin + kRows, dataset.vertices())}, true))
      values.push_back(degree > 0 ? 1 / std::sqrt(degree) : 0);
  return values;
}

std::span<const float> weights_of(const AnyCsr& graph) {
  return std::visit([](const auto& csr) { return csr.weights.span(); }, graph);
}

torch::Tensor floats(std::uint64_t count) {
  return torch::empty({static_cast<std::int64_t>(count)});
}

}  // namespace

SampledGraph::SampledGraph(const Dataset& dataset, const ModelConfig& model,
                           const SampledTraining& sampled)
    : loops_(shard_options_of(model).one_loop_each),
      slot_vertices_(shard_options_of(model).slot_vertices),
      by_weight_(sampled.by_weight),
      csr_(loops_ ? without_loops(dataset.graph) : dataset.graph),
      settings_{.fanouts = sampled.fanouts,
                .replace = sampled.replace,
                .disjoint = sampled.times.any(),
                .targets = HopTargets::all,
                .time = sampled.latest ? TimeRule::last : TimeRule::uniform},
      times_{sampled.times.vertices,
             loops_ ? without_loops(dataset.graph, sampled.times.edges) : sampled.times.edges,
             sampled.times.examples},
      loop_weights_(loops_ ? plait::loop_weights(dataset.graph) : std::vector<float>()),
      normalization_(normalization_of(dataset, model)),
      numbers_(dataset.numbers.span()) {}

SampleValues SampledGraph::values() const {
  return {.weights = by_weight_ ? weights_of(csr_) : std::span<const float>(),
          .edge_times = times_.edges,
          .vertex_times = times_.vertices};
}

std::vector<std::int64_t> SampledGraph::times_of(std::span<const std::uint64_t> examples) const {
  std::vector<std::int64_t> times;
  if (settings_.disjoint)
    for (const std::uint64_t v : examples) times.push_back(times_.of_example(v));
  return times;
}

std::span<const float> SampledGraph::edge_weights() const {
  return loops_ ? weights_of(csr_) : std::span<const float>();
}

LayerGraph SampledGraph::view() const {
  return {.offsets = std::visit([](const auto& csr) { return csr.offsets.data(); }, csr_),
          .loops = loops_,
          .weights = data_or_null(edge_weights()),
          .loop_weights = data_or_null(loop_weights()),
          .normalization = data_or_null(normalization()),
          .numbers = data_or_null(numbers())};
}

LayerSample CpuBatches::layer(const Sample& sample, std::size_t of_sample, std::size_t number,
                              std::span<const std::int64_t> times) const {
  const Sample::Hop& hop = sample.hops[of_sample];
  const HopView view{hop.targets(),         hop.edges.size(),      hop.vertices,
                     hop.offsets.data(),    hop.neighbours.data(), hop.edges.data(),
                     sample.vertices.data()};
  const std::uint64_t count = layer_edge_count(view, graph_.loops());
  const bool normalizes = !graph_.normalization().empty();
  SampledEdges edges{
      .offsets = std::vector<EdgeOffset>(view.targets + 1),
      .sources = std::vector<Slot>(count),
      .weights = std::vector<float>(graph_.loops() ? count : 0),
      .inputs = view.inputs,
      .vertices = std::vector<std::uint64_t>(graph_.slot_vertices() ? view.inputs : 0)};
  SampleScales scales{normalizes ? floats(view.inputs) : torch::Tensor(), floats(view.targets),
                      floats(view.targets)};
  std::vector<std::uint64_t> eligible(graph_.drawn_by_values() ? view.targets : 0);
  std::vector<float> means(graph_.draws_weights() ? view.targets : 0);
  const EligibleArrays of_values{eligible.data(), means.empty() ? nullptr : means.data()};
  if (!eligible.empty())
    eligible_edges(graph_.csr(), graph_.values(), {sample, hop, times, graph_.draws_again(number)},
                   of_values);
  layer_edges({.hop = view,
               .graph = graph_.view(),
               .eligible = {data_or_null(eligible), data_or_null(means)},
               .to = {.offsets = edges.offsets.data(),
                      .sources = edges.sources.data(),
                      .weights = graph_.loops() ? edges.weights.data() : nullptr,
                      .sums = scales.sums.mutable_data_ptr<float>(),
                      .inverse_degree = scales.inverse_degree.mutable_data_ptr<float>(),
                      .normalization =
                          normalizes ? scales.gcn_normalization.mutable_data_ptr<float>() : nullptr,
                      .numbers = graph_.slot_vertices() ? edges.vertices.data() : nullptr}});
  return {make_sample_aggregator(std::move(edges)), std::move(scales), std::nullopt};
}

MadeBatch CpuBatches::batch(std::span<const std::uint64_t> seeds,
                            std::span<const std::uint64_t> inputs) const {
  InputVertices vertices{torch::empty({std::ssize(inputs)}, torch::kInt64), {}};
  std::ranges::copy(inputs, vertices.ids.mutable_data_ptr<std::int64_t>());
  vertices.numbers = vertices.ids;
  if (!graph_.numbers().empty()) {
    vertices.numbers = torch::empty_like(vertices.ids);
    std::ranges::transform(inputs, vertices.numbers.mutable_data_ptr<std::int64_t>(),
                           [&](std::uint64_t v) { return dataset_.number(v); });
  }
  return {.memory = {},
          .input = {dataset_.features, std::move(vertices), normalize_},
          .layers = {},
          .targets = {torch::arange(std::ssize(seeds)), labels_of(dataset_, seeds)},
          .shares_input = false,
          .wait = {}};
}

namespace {

class CpuSamples : public SampleMaker {
 public:
  CpuSamples(const Dataset& dataset, const SampledGraph& graph, const TrainConfig& config)
      : batches_(dataset, graph, config.normalize),
        graph_(graph),
        sampler_(graph.csr(), graph.settings(), graph.values()),
        workspace_(sampler_.workspace()) {}

  MadeBatch make(const StepSeeds& seeds, const DropoutStep& /*dropout*/) override {
    const std::vector<std::int64_t> times = graph_.times_of(seeds.vertices);
    const Sample sample = timed(SampleMaker::kSampling, [&] {
      return sampler_.sample(seeds.vertices, seeds.key, *workspace_, times, seeds.first);
    });
    MadeBatch made = timed(SampleMaker::kGathering,
                           [&] { return batches_.batch(seeds.vertices, sample.vertices); });
    const Timed timed(SampleMaker::kSampling);
    for (std::size_t h = sample.hops.size(); h-- > 0;)  // the first layer's hop is the last
      made.layers.push_back(batches_.layer(sample, h, h, times));
    return made;
  }

 private:
  const CpuBatches batches_;
  const SampledGraph& graph_;
  const NeighbourSampler sampler_;
  const std::unique_ptr<NeighbourSampler::Workspace> workspace_;
};

}  // namespace

std::unique_ptr<SampleMaker> make_cpu_samples(const Dataset& dataset, const SampledGraph& graph,
                                              const TrainConfig& config) {
  return std::make_unique<CpuSamples>(dataset, graph, config);
}

}  // namespace plait
