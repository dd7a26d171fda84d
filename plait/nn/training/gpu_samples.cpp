// Everything of a batch is made on the GPU, on a stream beside the one that computes: the sample,
// its edges as layers read them, their plans, and the inputs' features. Memory order: the stream
// that computes waits for an event behind all of that (MadeBatch::wait); tensors are known to both
// streams (record_stream), and the memory of a sample is used again behind an event of the stream
// that computes.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <mutex>
#include <optional>

#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/nn/training/sample_maker.h"
#include "plait/sample/cuda/layer_edges.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/store/cuda/gather_rows.h"
#include "plait/store/sharded/cuda/gpu_array.h"
#include "plait/store/sharded/cuda/gpu_table.h"
#include "plait/store/sharded/place.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

// Memory of samples that no batch holds.
class FreeSamples {
 public:
  struct Memory {
    explicit Memory(const torch::Device& device) : used(device.type()) {}
    GpuSampleBuffers buffers;
    c10::Event used;  // by the batch before
  };

  // Returns memory that comes back, behind the work of the stream `work`, when the batch lets go of
  // it. Other batches may be made and freed meanwhile by other threads.
  static std::shared_ptr<Memory> take(const std::shared_ptr<FreeSamples>& from,
                                      const c10::Stream& work) {
    std::unique_ptr<Memory> memory;
    {
      const std::lock_guard lock(from->mutex_);
      if (!from->free_.empty()) {
        memory = std::move(from->free_.back());
        from->free_.pop_back();
      }
    }
    if (!memory) memory = std::make_unique<Memory>(work.device());
    return {memory.release(), [from, work](Memory* used) {
              std::unique_ptr<Memory> back(used);
              try {
                back->used.record(work);
                const std::lock_guard lock(from->mutex_);
                from->free_.push_back(std::move(back));
              } catch (const std::exception&) {
                // The GPU has failed, which the next wait for it tells.
              }
            }};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> free_;
};

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

class GpuSamples : public SampleMaker {
 public:
  GpuSamples(World& world, const Dataset& dataset, const SampledGraph& graph,
             const TrainConfig& config, std::uint64_t ahead)
      : dataset_(dataset),
        graph_(graph),
        normalize_(config.normalize),
        device_(torch_device(true)),
        work_(current_torch_stream(device_)),
        prepare_(beside(work_)) {
    if (!dataset.features.is_sparse()) table_ = table_of(world, ahead);
    place_structure(world, config.sampled->structure == StructurePlace::sharded);
    on_all_or_none(world, [&] {
      sampler_.emplace(structure_, SampleSettings{.fanouts = config.sampled->fanouts,
                                                  .targets = HopTargets::all});
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

  MadeBatch make(std::span<const std::uint64_t> seeds, std::uint64_t key,
                 const DropoutStep& dropout) override {
    use_gpu(device_.index());
    const c10::StreamGuard here(prepare_);
    const auto memory = FreeSamples::take(free_, work_);
    memory->used.block(prepare_);
    const GpuSample& sample = sampler_->sample(seeds, key, memory->buffers, stream());
    MadeBatch made{.memory = memory,
                   .input = input_of(sample, dropout),
                   .layers = {},
                   .targets = {torch::arange(static_cast<std::int64_t>(seeds.size()), device_),
                               labels_of(dataset_, seeds).to(device_)},
                   .wait = {}};
    both_use({made.targets.rows, made.targets.labels});
    for (std::size_t l = 0; l < sample.hops.size(); ++l)
      made.layers.push_back(layer_of(sample, l, memory));
    const auto ready = std::make_shared<c10::Event>(device_.type());
    ready->record(prepare_);
    made.wait = [ready, work = work_] { ready->block(work); };
    return made;
  }

 private:
  void* stream() const { return prepare_.native_handle(); }

  // Lets go of these tensors' memory behind the work of both streams.
  void both_use(std::initializer_list<torch::Tensor> tensors) const {
    for (const torch::Tensor& t : tensors)
      if (t.defined() && t.numel() > 0) t.record_stream(work_);
  }

  // Collective. Copies all of the graph that has an element per edge, and the offsets.
  void place_structure(World& world, bool sharded) {
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
    if (!graph_.edge_weights().empty())
      weights_ = reinterpret_cast<const float*>(placed(std::as_bytes(graph_.edge_weights())));
  }

  // `ahead`: bytes that this rank's GPU will need besides, the graph's structure among them.
  std::unique_ptr<GpuTable> table_of(World& world, std::uint64_t ahead) const {
    const bool narrow = !dataset_.features.bf16.empty() && normalize_ == Normalize::none;
    const TableSettings wanted{.form = narrow ? RowForm::bf16 : RowForm::f32};
    StoreQuestion question = store_question(dataset_, wanted, world.size(), true);
    question.structure = question.labels = 0;
    TableSettings settings = question.table;
    settings.place = choose_place(world, question, false, ahead);
    return GpuTable::create(world, settings, input_rows(dataset_.features, normalize_));
  }

  InputFeatures input_of(const GpuSample& sample, const DropoutStep& dropout) const {
    const auto count = static_cast<std::int64_t>(sample.vertex_count);
    const auto ints = torch::dtype(torch::kInt64).device(device_);
    InputVertices vertices{torch::empty({count}, ints), {}};
    if (count > 0)
      vertices.ids.copy_(at::from_blob(
          const_cast<std::uint64_t*>(sample.vertices), {count}, [](void*) {}, ints, device_));
    vertices.numbers = numbers_.defined() ? numbers_.index_select(0, vertices.ids) : vertices.ids;
    if (!table_) {
      InputVertices there{vertices.ids.to(torch::kCPU), {}};
      there.numbers = numbers_.defined() ? vertices.numbers.to(torch::kCPU) : there.ids;
      InputFeatures sparse(dataset_.features, std::move(there), normalize_, device_);
      sparse.also_used_on(work_);
      return sparse;
    }
    const std::uint64_t width = dataset_.features.width;
    torch::Tensor x = torch::empty({count, static_cast<std::int64_t>(width)},
                                   torch::dtype(torch::kFloat32).device(device_));
    const GatherRows rows = table_->rows().gather(sample.vertices, sample.vertex_count,
                                                  x.mutable_data_ptr<float>(), width);
    if (dropout.active())
      gpu_gather_rows(rows,
                      {*dropout.dropout, dropout.epoch, dropout.layer, ids_of(vertices.numbers)},
                      stream());
    else
      gpu_gather_rows(rows, stream());
    const InputFeatures dense(std::move(x), std::move(vertices), dropout);
    dense.also_used_on(work_);
    return dense;
  }

  // Returns what layer `l` reads: the first layer's hop is the last.
  LayerSample layer_of(const GpuSample& sample, std::size_t l,
                       std::shared_ptr<const void> memory) const {
    const GpuSample::Hop& hop = sample.hops[sample.hops.size() - 1 - l];
    const HopView view{hop.targets,    hop.edge_count, hop.vertices,   hop.offsets,
                       hop.neighbours, hop.edges,      sample.vertices};
    const std::uint64_t count = layer_edge_count(view, graph_.loops());
    const auto empty = [&](bool wanted, std::uint64_t size, torch::ScalarType type) {
      if (!wanted) return torch::Tensor();
      return torch::empty({static_cast<std::int64_t>(size)}, torch::dtype(type).device(device_));
    };
    const torch::Tensor offsets = empty(true, view.targets + 1, torch::kInt64);
    const torch::Tensor sources = empty(graph_.loops(), count, torch::kInt32);
    const torch::Tensor weights = empty(graph_.loops(), count, torch::kFloat32);
    const torch::Tensor numbers = empty(graph_.slot_vertices(), view.inputs, torch::kInt64);
    SampleScales scales{empty(normalization_.defined(), view.inputs, torch::kFloat32),
                        empty(true, view.targets, torch::kFloat32),
                        empty(true, view.targets, torch::kFloat32)};
    gpu_layer_edges({.hop = view,
                     .graph = graph_view(),
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
         .sources = graph_.loops() ? data_of<Slot>(sources) : hop.neighbours,
         .weights = data_of<float>(weights),
         .vertices = data_of<std::uint64_t>(numbers),
         .arrays = std::make_shared<Arrays>(
             Arrays{std::move(memory), offsets, sources, weights, numbers})},
        {stream(), work_.native_handle()}, gradients_[l]);
    return {std::move(aggregator), std::move(scales), std::nullopt};
  }

  LayerGraph graph_view() const {
    return {.offsets = structure_.offsets,
            .loops = graph_.loops(),
            .weights = weights_,
            .loop_weights = data_of<float>(loop_weights_),
            .normalization = data_of<float>(normalization_),
            .numbers = data_of<std::uint64_t>(numbers_)};
  }

  const Dataset& dataset_;
  const SampledGraph& graph_;
  const Normalize normalize_;
  const torch::Device device_;
  const c10::Stream work_, prepare_;
  std::vector<std::unique_ptr<GpuArray>> arrays_;  // of the two below
  GpuCsr structure_;
  const float* weights_ = nullptr;  // of edges, or null: all 1
  std::optional<GpuNeighbourSampler> sampler_;
  torch::Tensor loop_weights_, normalization_, numbers_;
  std::unique_ptr<GpuTable> table_;
  std::vector<WantsGradients> gradients_;  // by layer
  const std::shared_ptr<FreeSamples> free_ = std::make_shared<FreeSamples>();
};

}  // namespace

std::unique_ptr<SampleMaker> make_gpu_samples(World& world, const Dataset& dataset,
                                              const SampledGraph& graph, const TrainConfig& config,
                                              std::uint64_t ahead) {
  return std::make_unique<GpuSamples>(world, dataset, graph, config, ahead);
}

}  // namespace plait
