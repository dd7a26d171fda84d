#include "plait/nn/batches/gpu_batches.h"

#include <c10/core/Event.h>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/eligible_edges.h"
#include "plait/sample/cuda/layer_edges.h"
#include "plait/sample/row_sums.h"
#include "plait/symmetric/agreement.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/sharded/place.h"

namespace plait {
namespace {

template <class T>
torch::Tensor on_gpu(std::span<const T> values, torch::ScalarType type,
                     const torch::Device& device) {
  if (values.empty()) return {};
  return torch::from_blob(const_cast<T*>(values.data()), {static_cast<std::int64_t>(values.size())},
                          type)
      .to(device);
}

template <class T>
T* data_of(const torch::Tensor& t) {
  return t.defined() ? static_cast<T*>(t.mutable_data_ptr()) : nullptr;
}

}  // namespace

GpuBatches::GpuBatches(World& world, const Dataset& dataset, const SampledGraph& graph,
                       const TrainConfig& config, std::uint64_t ahead, const Partition* owners)
    : dataset_(dataset),
      graph_(graph),
      normalize_(config.normalize),
      device_(torch_device(true)),
      work_(current_torch_stream(device_)),
      prepare_(beside(work_)) {
  on_all_or_none(world, [&] { check_sampler(graph.csr(), graph.settings(), graph.values()); });
  if (!dataset.features.is_sparse()) table_ = table_of(world, ahead, owners);
  place_structure(world, config.sampled->structure == StructurePlace::sharded);
  on_all_or_none(world, [&] {
    sampler_.emplace(structure_, graph.settings(), values_);
    try {
      loop_weights_ = on_gpu(graph.loop_weights(), torch::kFloat32, device_);
      normalization_ = on_gpu(graph.normalization(), torch::kFloat32, device_);
      numbers_ = on_gpu(graph.numbers(), torch::kInt64, device_);
    } catch (const c10::OutOfMemoryError& error) {
      throw DoesNotFitError(fmt::format("GPU memory for values of the graph that is sampled: {}",
                                        error.what_without_backtrace()));
    }
  });
  wait_for_gpu();
  for (std::size_t l = 0; l < config.sampled->fanouts.size(); ++l)
    gradients_.push_back(std::make_shared<std::atomic<bool>>(false));
}

// Copies all of the graph that has an element per edge, and the offsets; and values of edges and
// vertices, each array once: layers and draws may read the same.
void GpuBatches::place_structure(World& world, bool sharded) {
  const auto placed = [&](std::span<const std::byte> content) -> const std::byte* {
    if (sharded) {
      arrays_.push_back(GpuArray::sharded(world, content));
    } else {
      on_all_or_none(world, [&] { arrays_.push_back(GpuArray::replicated(content)); });
    }
    return arrays_.back()->data();
  };
  std::visit(
      [&](const auto& csr) {
        structure_ = {.offsets = reinterpret_cast<const EdgeOffset*>(
                          placed(std::as_bytes(csr.offsets.span()))),
                      .neighbours = placed(std::as_bytes(csr.neighbours.span())),
                      .wide = sizeof(csr.neighbours[0]) == sizeof(std::uint64_t),
                      .vertices = csr.vertices(),
                      .edges = csr.edges()};
      },
      graph_.csr());
  const auto put = [&]<class T>(std::span<const T> values) -> const T* {
    return values.empty() ? nullptr : reinterpret_cast<const T*>(placed(std::as_bytes(values)));
  };
  const SampleValues values = graph_.values();
  weights_ = put(graph_.edge_weights());
  values_ = {
      .weights = !values.weights.empty() && weights_ != nullptr ? weights_ : put(values.weights),
      .edge_times = put(values.edge_times),
      .vertex_times = put(values.vertex_times)};
  if (!draws_by_row_sums(graph_.settings(), values)) return;
  Buffer<double> sums;
  on_all_or_none(world, [&] { sums = row_sums(graph_.csr(), values.weights); });
  values_.sums = put(std::span<const double>(sums.span()));
}

std::unique_ptr<Table> GpuBatches::table_of(World& world, std::uint64_t ahead,
                                            const Partition* owners) const {
  const TableSettings wanted{
      .type = normalize_ == Normalize::none ? dataset_.features.type() : DType::f32,
      .division = owners != nullptr ? TableDivision::owners : TableDivision::ranges,
      .owners = owners};
  StoreQuestion question = store_question(dataset_, wanted, world.size(), true);
  question.structure = question.labels = 0;
  TableSettings settings = question.table;
  settings.place = choose_place(world, question, false, ahead);
  return Table::create(world, settings, input_rows(dataset_.features, normalize_), Device::gpu);
}

MadeBatch GpuBatches::batch(std::span<const std::uint64_t> seeds) const {
  const torch::Tensor rows = torch::arange(std::ssize(seeds), device_);
  const torch::Tensor labels = labels_of(dataset_, seeds).to(device_);
  both_use({rows, labels});
  return {.memory = {},
          .input = {torch::empty({0, 0}, rows.options()), {}},
          .layers = {},
          .targets = {rows, labels},
          .shares_input = false,
          .wait = {}};
}

InputVertices GpuBatches::vertices(const std::uint64_t* ids, std::uint64_t count) const {
  const auto ints = torch::dtype(torch::kInt64).device(device_);
  const auto size = static_cast<std::int64_t>(count);
  InputVertices vertices{torch::empty({size}, ints), {}};
  if (count > 0)
    vertices.ids.copy_(at::from_blob(
        const_cast<std::uint64_t*>(ids), {size}, [](void*) {}, ints, device_));
  vertices.numbers = numbers_.defined() ? numbers_.index_select(0, vertices.ids) : vertices.ids;
  return vertices;
}

torch::Tensor GpuBatches::rows(const InputVertices& vertices, const DropoutStep& dropout) const {
  const std::uint64_t width = dataset_.features.width;
  const std::int64_t count = vertices.ids.numel();
  torch::Tensor x = torch::empty({count, static_cast<std::int64_t>(width)},
                                 torch::dtype(torch::kFloat32).device(device_));
  const GatherRows rows = table_->rows().gather(
      ids_of(vertices.ids), static_cast<std::uint64_t>(count), x.mutable_data_ptr<float>(), width);
  if (dropout.active())
    gpu_gather_rows(
        rows, {*dropout.dropout, dropout.epoch, dropout.layer, ids_of(vertices.numbers)}, stream());
  else
    gpu_gather_rows(rows, stream());
  return x;
}

InputFeatures GpuBatches::input(InputVertices vertices, const DropoutStep& dropout) const {
  if (table_) {
    torch::Tensor x = rows(vertices, dropout);
    const InputFeatures dense(std::move(x), std::move(vertices), dropout);
    dense.also_used_on(work_);
    return dense;
  }
  InputVertices there{vertices.ids.to(torch::kCPU), {}};
  there.numbers = numbers_.defined() ? vertices.numbers.to(torch::kCPU) : there.ids;
  InputFeatures sparse(dataset_.features, std::move(there), normalize_, device_);
  sparse.also_used_on(work_);
  return sparse;
}

LayerSample GpuBatches::layer(Hop of) const {
  const GpuSample::Hop& hop = of.sample.hops[of.hop];
  const HopView view{hop.targets,    hop.edge_count, hop.vertices,      hop.offsets,
                     hop.neighbours, hop.edges,      of.sample.vertices};
  const std::uint64_t count = layer_edge_count(view, graph_.loops());
  const auto empty = [&](bool wanted, std::uint64_t size, torch::ScalarType type) {
    if (!wanted) return torch::Tensor();
    return torch::empty({static_cast<std::int64_t>(size)}, torch::dtype(type).device(device_));
  };
  const torch::Tensor offsets = empty(true, view.targets + 1, torch::kInt64);
  const torch::Tensor sources = empty(graph_.loops() || !of.memory, count, torch::kInt32);
  const torch::Tensor weights = empty(graph_.loops(), count, torch::kFloat32);
  const torch::Tensor numbers = empty(graph_.slot_vertices(), view.inputs, torch::kInt64);
  const bool by_values = graph_.drawn_by_values();
  const torch::Tensor eligible = empty(by_values, view.targets, torch::kInt64);
  const torch::Tensor means = empty(graph_.draws_weights(), view.targets, torch::kFloat32);
  const EligibleArrays of_values{data_of<std::uint64_t>(eligible), data_of<float>(means)};
  if (by_values)
    gpu_eligible_edges(structure_, values_, {of.sample, hop, graph_.draws_again(of.number)},
                       of_values, stream());
  SampleScales scales{empty(normalization_.defined(), view.inputs, torch::kFloat32),
                      empty(true, view.targets, torch::kFloat32),
                      empty(true, view.targets, torch::kFloat32)};
  gpu_layer_edges({.hop = view,
                   .graph = graph_view(),
                   .eligible = {of_values.counts, of_values.mean_weights},
                   .to = {.offsets = data_of<EdgeOffset>(offsets),
                          .sources = data_of<Slot>(sources),
                          .weights = data_of<float>(weights),
                          .sums = data_of<float>(scales.sums),
                          .inverse_degree = data_of<float>(scales.inverse_degree),
                          .normalization = data_of<float>(scales.gcn_normalization),
                          .numbers = data_of<std::uint64_t>(numbers)}},
                  stream());
  both_use({offsets, sources, weights, numbers, scales.sums, scales.inverse_degree,
            scales.gcn_normalization});
  struct Arrays {
    std::shared_ptr<const void> memory;
    torch::Tensor offsets, sources, weights, numbers;
  };
  auto aggregator = make_gpu_sample_aggregator(
      {.own = view.targets,
       .inputs = view.inputs,
       .edges = count,
       .offsets = data_of<EdgeOffset>(offsets),
       .sources = sources.defined() ? data_of<Slot>(sources) : hop.neighbours,
       .weights = data_of<float>(weights),
       .vertices = data_of<std::uint64_t>(numbers),
       .arrays = std::make_shared<Arrays>(
           Arrays{std::move(of.memory), offsets, sources, weights, numbers})},
      {stream(), work_.native_handle()}, gradients_[of.number]);
  return {std::move(aggregator), std::move(scales), std::nullopt};
}

LayerGraph GpuBatches::graph_view() const {
  return {.offsets = structure_.offsets,
          .loops = graph_.loops(),
          .weights = weights_,
          .loop_weights = data_of<float>(loop_weights_),
          .normalization = data_of<float>(normalization_),
          .numbers = data_of<std::uint64_t>(numbers_)};
}

void GpuBatches::both_use(std::initializer_list<torch::Tensor> tensors) const {
  for (const torch::Tensor& t : tensors)
    if (t.defined() && t.numel() > 0) t.record_stream(work_);
}

void GpuBatches::end(MadeBatch& made) const {
  const auto ready = std::make_shared<c10::Event>(device_.type());
  ready->record(prepare_);
  made.wait = [ready, work = work_] { ready->block(work); };
}

}  // namespace plait
