#include "plait/nn/memory/work_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "plait/aggregate/rows_in_order.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/nn/inference/infer.h"
#include "plait/nn/memory/tensor_trace.h"
#include "plait/nn/model.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trainable.h"
#include "plait/plan/nccl_memory.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/table/sharded/cuda/gpu_array.h"

namespace plait {
namespace {

// Bytes of weights up to which a rehearsal is made; above, the largest arrays give an estimate.
constexpr double kRehearsed = 512.0 * (1 << 20);

// Makes splits of the examples of `whole` that have a label, in proportion, each at least twice:
// libtorch handles one example in another way than several.
Array<Split> few_splits(std::span<const Split> whole, const Dataset& dataset, std::uint64_t count) {
  std::array<std::uint64_t, 4> of{};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool labelled = dataset.labels.empty() || dataset.labels[i] >= 0;
    ++of[labelled ? static_cast<std::size_t>(whole[i]) : 0];
  }
  std::vector<Split> splits;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const double share = static_cast<double>(of[static_cast<std::size_t>(split)]) /
                         static_cast<double>(std::max<std::size_t>(whole.size(), 1));
    const auto some = std::lround(share * static_cast<double>(count));
    splits.insert(splits.end(), static_cast<std::size_t>(std::max(some, 2L)), split);
  }
  splits.resize(count, Split::none);
  return splits;
}

Features few_features(const Features& whole, std::uint64_t rows) {
  Features few{.rows = rows, .width = whole.width};
  if (!whole.is_sparse()) {
    few.f32 = Buffer<float>(rows * whole.width, 0.0f);
    return few;
  }
  const double each = static_cast<double>(whole.sparse.edges()) /
                      static_cast<double>(std::max<std::uint64_t>(whole.rows, 1));
  std::vector<EdgeOffset> offsets{0};
  for (std::uint64_t i = 1; i <= rows; ++i)
    offsets.push_back(static_cast<EdgeOffset>(std::llround(each * static_cast<double>(i))));
  std::vector<std::uint32_t> columns(offsets.back());
  for (std::size_t e = 0; e < columns.size(); ++e)
    columns[e] = static_cast<std::uint32_t>(e % whole.width);
  std::vector<float> values(columns.size(), 1.0f);
  few.sparse = {std::move(offsets), std::move(columns), std::move(values)};
  return few;
}

// Returns a dataset of few vertices that is like `whole`, but without edges, which libtorch does
// not see. `split`: of `whole`, or empty.
Dataset few_of(const Dataset& whole, std::uint64_t times, std::span<const Split> split) {
  constexpr std::uint64_t kVertices = 64, kFewest = 8, kGraphs = 16, kFloats = 1 << 22;
  Dataset few{.name = whole.name, .symmetric = true, .classes = whole.classes};
  const std::uint64_t width = std::max<std::uint64_t>(whole.features.width, 1);
  std::uint64_t vertices =
      times *
      (whole.features.is_sparse() ? kVertices : std::clamp(kFloats / width, kFewest, kVertices));
  if (whole.is_set_of_graphs()) {
    few.graphs = static_cast<std::uint32_t>(kGraphs * times);
    const std::uint64_t each =
        std::max<std::uint64_t>(1, (whole.vertices() + whole.graphs / 2) / whole.graphs);
    vertices = each * few.graphs;
    std::vector<std::uint32_t> ids(vertices);
    for (std::uint64_t v = 0; v < vertices; ++v) ids[v] = static_cast<std::uint32_t>(v / each);
    few.graph_ids = std::move(ids);
  }
  few.graph = Csr32{std::vector<EdgeOffset>(vertices + 1, 0), {}, {}};
  few.features = few_features(whole.features, vertices);
  const std::uint64_t examples = few.examples();
  if (whole.task() == TaskKind::multi_label) {
    few.label_sets = Buffer<std::uint8_t>(examples * static_cast<std::uint64_t>(whole.classes), 0);
  } else {
    std::vector<std::int32_t> labels(examples);
    for (std::uint64_t i = 0; i < examples; ++i)
      labels[i] = static_cast<std::int32_t>(
          i % static_cast<std::uint64_t>(std::max(whole.classes, std::int32_t{1})));
    few.labels = std::move(labels);
  }
  few.splits = few_splits(split, whole, examples);
  few.split_count = 1;
  return few;
}

// Bytes of features outside of tensors: the pattern of a sparse matrix, by rows and by columns.
std::uint64_t pattern_bytes(const Features& features, std::uint64_t rows) {
  if (!features.is_sparse()) return 0;
  const double entries = static_cast<double>(features.sparse.edges()) * static_cast<double>(rows) /
                         static_cast<double>(std::max<std::uint64_t>(features.rows, 1));
  return whole_bytes(entries * (2 * sizeof(std::uint32_t) + sizeof(float))) +
         (rows + features.width + 2) * sizeof(EdgeOffset);
}

using Rehearse = std::function<void(const Dataset& few, const std::function<void()>& kept)>;

// Returns the memory of the work on each rank. `times_weights`: how often the weights are held, for
// models so large that no rehearsal is made.
std::vector<WorkBytes> work_of(const Dataset& dataset, const Partition& partition,
                               const ModelConfig& model, std::span<const Split> split, bool gpu,
                               const Rehearse& rehearse, double times_weights) {
  const ModelSize size = size_of_model(model);
  std::vector<WorkBytes> work(static_cast<std::size_t>(partition.parts()));
  const auto each = [&](auto bytes) {
    for (int rank = 0; rank < partition.parts(); ++rank) {
      const std::uint64_t rows = partition.size(rank),
                          pattern = pattern_bytes(dataset.features, rows);
      WorkBytes& mine = work[static_cast<std::size_t>(rank)] = bytes(rows);
      mine.kept += std::min(pattern, ~mine.kept), mine.most += std::min(pattern, ~mine.most);
    }
  };
  if (size.weights * sizeof(float) > kRehearsed) {
    each([&](std::uint64_t rows) {
      const double inputs =
          dataset.features.is_sparse() ? 0 : static_cast<double>(dataset.features.width);
      const double kept = times_weights * size.weights + static_cast<double>(rows) * inputs;
      const double most = kept + static_cast<double>(rows) * size.activations_per_vertex;
      return WorkBytes{whole_bytes(kept * sizeof(float)), whole_bytes(most * sizeof(float))};
    });
    return work;
  }
  const auto rehearsal = [&](std::uint64_t times) {
    const Timed timed("rehearse memory");
    const ProfilePause pause;
    const Dataset few = few_of(dataset, times, split);
    return Rehearsal{few.vertices(), trace_tensors([&](const auto& kept) { rehearse(few, kept); })};
  };
  const Rehearsal few = rehearsal(1), more = rehearsal(2);
  each([&](std::uint64_t rows) {
    return work_bytes(few, more, rows, gpu ? BlockMemory::cached : BlockMemory::kept);
  });
  return work;
}

std::string name_of(const ModelConfig& model) {
  return fmt::format("a model of {} layers with {} inputs, {} hidden features and {} classes",
                     model.layers, model.inputs, model.hidden, model.outputs);
}

RunMemory run_of(const ModelConfig& model, bool sparse, const Route& route) {
  if (route.gpu) require_kernels(model);
  std::vector<std::uint64_t> widths = moved_widths_of(model, sparse);
  std::ranges::sort(widths);
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  const EdgeMemory edges = edge_memory_of(model);
  // All rows are counted for exact operations, though one rank may copy none: their many small
  // blocks lie scattered in memory that the allocator keeps.
  std::optional<std::uint64_t> copied_width;
  if (!route.exact)
    for (const LayerPlan& plan : layer_plans_of(model, sparse))
      copied_width = std::max(copied_width.value_or(0), plan.copied_width);
  return {.route = route,
          .shards = shard_options_of(model),
          .widths = std::move(widths),
          .operations = operations_of(model),
          .edge_scratch = edges.scratch,
          .rows_per_sum = edges.rows_per_sum,
          .copied_width = copied_width};
}

// Returns the memory of steps of training on as many rows as the partition gives a rank.
std::vector<WorkBytes> training_work(const Dataset& dataset, const Partition& partition,
                                     const TrainConfig& config) {
  TrainConfig small = config;
  small.checkpoint.clear(), small.resume.clear(), small.sampled.reset();
  small.made_rows = nullptr;
  small.route = {.exact = config.route.exact}, small.split = 0, small.folds = {},
  small.patience = 0;
  constexpr double kWeightsOften = 6;  // with gradients twice, two moments, and the best so far
  return work_of(
      dataset, partition, config.model, split_of(dataset, config).span(), config.route.gpu,
      [&](const Dataset& few, const std::function<void()>& kept) {
        Trainer::rehearse(few, small, kept);
      },
      kWeightsOften);
}

std::vector<WorkBytes> inference_work(const Dataset& dataset, const Partition& partition,
                                      const ModelConfig& model, const Route& route) {
  return work_of(
      dataset, partition, model, {}, route.gpu,
      [&](const Dataset& few, const std::function<void()>& kept) {
        rehearse_inference(few, model, route.exact, kept);
      },
      1);
}

// The sizes of a rank's batch of samples, at the most.
struct BatchBound {
  double inputs = 0;  // rows of the first layer
  double rows = 0;    // the most that a layer makes, or gets from other ranks
  double edges = 0;   // of all layers
  double room = 0;    // edges for which a GPU takes memory before it counts them
};

BatchBound bound_of_batch(const Dataset& dataset, const Partition& partition,
                          const SampledTraining& sampled) {
  constexpr auto kRoomy = static_cast<double>(GpuNeighbourSampler::kRoomyEdges);
  // In disjoint samples each example may find all of the graph.
  const double copies = sampled.times.any() ? static_cast<double>(sampled.batch) : 1;
  const double vertices = copies * static_cast<double>(dataset.vertices());
  const double all = copies * static_cast<double>(dataset.edges());
  const auto edges_of = [&](double targets, std::int64_t fanout) {
    if (fanout < 0) return all;
    const double most = targets * static_cast<double>(fanout);
    return sampled.replace ? most : std::min(all, most);
  };
  // Ranks that sample together find the vertices of all, and each makes the rows of its own.
  const double own = sampled.cooperative ? static_cast<double>(partition.largest()) : vertices;
  const double batches = sampled.cooperative ? partition.parts() : 1;
  double found = std::min(vertices, batches * static_cast<double>(sampled.batch));
  BatchBound bound{.inputs = std::min(own, found)};
  for (const std::int64_t fanout : sampled.fanouts) {
    const double rows = std::min(own, found), edges = edges_of(rows, fanout);
    bound.rows = std::max({bound.rows, rows, bound.inputs});
    bound.edges += edges + rows;  // with a loop for each row
    bound.room += std::max(edges, std::min(rows * static_cast<double>(fanout), kRoomy));
    bound.inputs = std::min(vertices, rows + edges);
    found = std::min(vertices, found + edges_of(found, fanout));
  }
  // GPUs that sample together also fetch features for each other, of their own vertices.
  if (sampled.cooperative) bound.inputs = std::max(bound.inputs, std::min(own, found));
  return bound;
}

// Returns the bytes of the batches that a rank holds at once, without the work of a step. Each has
// features of its own, and a step on the CPU a dropped copy. Of an edge a batch holds a source, a
// weight and its place in the graph, and a step both of the former turned round; on a GPU also what
// sampling and turning round take, and all of it for one more batch.
std::uint64_t batch_bytes(const Dataset& dataset, const Partition& partition,
                          const TrainConfig& config) {
  const BatchBound bound = bound_of_batch(dataset, partition, *config.sampled);
  const bool gpu = config.route.gpu, sparse = dataset.features.is_sparse();
  // A recorded step has a batch of its own.
  const bool room = records_samples(config, sparse, partition.parts());
  const double held = config.sampled->prefetch + (gpu ? 2 : 1) + (room ? 1 : 0);
  const double words = sparse ? static_cast<double>(dataset.features.sparse.edges()) /
                                    std::max(1.0, static_cast<double>(dataset.vertices()))
                              : 0;
  const double width = sparse ? 0 : static_cast<double>(dataset.features.width);
  // A word has a value, a column and its place, and the first two turned round.
  // A GPU gathers rows that are dropped already. If it shares them with others, a step has the rows
  // that it receives and those of its inputs besides.
  const bool shares = gpu && config.sampled->cooperative;
  const double copies = gpu ? held + (shares ? 2 : 0) : held + 1;
  const double input =
      width * sizeof(float) * copies + words * 28 * held + (shares ? 56 : 32) * held;
  // Disjoint samples on a GPU have a hash table, of up to four slots of 12 bytes per vertex.
  const double scratch = config.sampled->times.any() ? 18 + 12 + 4 * 12 : 18;
  // On the CPU, the sums of a layer scale gradients in memory of their own.
  double scaled = 0;
  if (!gpu)
    for (const LayerPlan& plan : layer_plans_of(config.model, sparse))
      if (plan.operations.empty()) scaled += static_cast<double>(plan.moved_width);
  const double edges = gpu ? bound.edges * 32 * (held + 1) + bound.room * scratch * held
                           : bound.edges * 16 * (held + 1);
  return whole_bytes(bound.inputs * input + bound.rows * scaled * sizeof(float) + edges);
}

// Returns the bytes at the most of the lists from which a GPU draws by values, in one batch.
std::uint64_t value_scratch(const AnyCsr& graph) {
  const std::span<const EdgeOffset> offsets =
      std::visit([](const auto& csr) { return csr.offsets.span(); }, graph);
  std::uint64_t degree = 0;
  for (std::size_t v = 0; v + 1 < offsets.size(); ++v)
    degree = std::max(degree, offsets[v + 1] - offsets[v]);
  const std::uint64_t of_block = 2 * degree * sizeof(std::uint64_t);
  return std::max(of_block, std::min(264 * of_block, GpuNeighbourSampler::kMostValueScratch));
}

// Returns the memory of NCCL on a GPU where only cooperative batches need it. The plan has the
// memory of a strategy that joins NCCL.
std::uint64_t nccl_of_sharing(const Partition& partition, const TrainConfig& config) {
  const auto ranks = static_cast<std::uint64_t>(partition.parts());
  const bool shared = config.sampled->cooperative && ranks > 1;
  return shared && !config.route.by_nccl() ? nccl_memory(ranks) : 0;
}

// Returns the bytes that a rank holds of the graph for its samples. A GPU also reads features from
// a table, whose place is chosen by the memory that is left.
std::uint64_t sampled_structure(const Dataset& dataset, const Partition& partition,
                                const TrainConfig& config) {
  const std::uint64_t vertices = dataset.vertices(), each = sizeof(std::uint32_t);
  const std::uint64_t own = config.sampled->cooperative ? partition.largest() : 0;
  const bool loops = shard_options_of(config.model).one_loop_each;
  const bool weighted = is_weighted(dataset.graph), timed = config.sampled->times.any();
  const std::uint64_t sums =
      config.sampled->by_weight && config.sampled->replace && !timed ? sizeof(double) : 0;
  const std::uint64_t times = config.sampled->times.edges.empty() ? 0 : sizeof(std::int64_t);
  if (!config.route.gpu)  // the sampler's tables of numbers, and its values of edges
    return (vertices + own) * each + dataset.edges() * (sums + (loops ? times : 0));
  const std::uint64_t samples = static_cast<std::uint64_t>(config.sampled->prefetch) + 2;
  const std::uint64_t id = vertices < std::uint64_t{1} << 32 ? each : 2 * each;
  const std::uint64_t values = weighted && (loops || config.sampled->by_weight) ? sizeof(float) : 0;
  const std::uint64_t vertex_times =
      config.sampled->times.vertices.empty() ? 0 : sizeof(std::int64_t);
  const std::uint64_t of_vertex = (loops ? 2 * sizeof(float) : 0) +
                                  (dataset.numbers.empty() ? 0 : sizeof(std::uint64_t)) +
                                  samples * each;
  const bool sharded = config.sampled->structure == StructurePlace::sharded;
  const bool by_values = config.sampled->by_weight || timed;
  std::uint64_t bytes = nccl_of_sharing(partition, config) + vertices * of_vertex +
                        (by_values ? samples * value_scratch(dataset.graph) : 0);
  for (const std::uint64_t array :
       {(vertices + 1) * sizeof(EdgeOffset), dataset.edges() * id, dataset.edges() * values,
        dataset.edges() * sums, dataset.edges() * times, vertices * vertex_times})
    bytes += sharded && array > 0 ? sharded_bytes(array, partition.parts()) : array;
  return bytes;
}

// Returns the memory of steps on samples, and of evaluations on the whole graph between them.
std::vector<WorkBytes> sampled_work(const Dataset& dataset, const Partition& partition,
                                    const TrainConfig& config) {
  const BatchBound bound = bound_of_batch(dataset, partition, *config.sampled);
  const auto rows = static_cast<std::uint64_t>(bound.rows) + 1;
  const auto ranks = static_cast<std::uint64_t>(partition.parts());
  const std::vector<WorkBytes> step =
      training_work(dataset, partition_by_vertices(rows * ranks, partition.parts()), config);
  std::vector<WorkBytes> work = inference_work(dataset, partition, config.model, config.route);
  for (std::size_t rank = 0; rank < work.size(); ++rank) {
    WorkBytes& mine = work[rank];
    // A recorded step keeps what it works in beside that of steps that are not.
    const bool twice = records_samples(config, dataset.features.is_sparse(), partition.parts());
    const std::uint64_t recorded = twice ? step[rank].most - step[rank].kept : 0;
    mine.most = std::max(mine.most, mine.kept + step[rank].most) + recorded +
                batch_bytes(dataset, partition, config) +
                sampled_structure(dataset, partition, config);
  }
  return work;
}

RunMemory training_run(const Dataset& dataset, const Partition& partition,
                       const TrainConfig& config) {
  RunMemory run = run_of(config.model, dataset.features.is_sparse(), config.route);
  run.shards.transposed = !config.sampled;
  run.work = config.sampled ? sampled_work(dataset, partition, config)
                            : training_work(dataset, partition, config);
  return run;
}

}  // namespace

std::uint64_t sampled_bytes_ahead(const Dataset& dataset, const Partition& partition,
                                  const TrainConfig& config, int rank) {
  const WorkBytes work = sampled_work(dataset, partition, config)[static_cast<std::size_t>(rank)];
  const auto ranks = static_cast<std::uint64_t>(partition.parts());
  // NCCL takes most of its memory in the first evaluation; with cooperative batches alone it is in
  // `work`.
  const bool joins = config.route.by_nccl() && ranks > 1;
  return work.most - work.kept + (joins ? nccl_memory(ranks) : 0);
}

bool records_samples(const TrainConfig& config, bool sparse, int ranks) {
  return config.record.value_or(ranks > 1) && config.sampled && config.route.gpu && !sparse &&
         !config.sampled->cooperative && config.model.norm != NormKind::batch;
}

ModelConfig model_for(ModelConfig model, const Dataset& dataset) {
  model.inputs = static_cast<std::int64_t>(dataset.features.width);
  model.outputs = dataset.classes;
  model.task = dataset.task();
  if (!dataset.is_set_of_graphs()) model.pool = Pool::none;
  return model;
}

Dataset stand_in(std::uint64_t width, std::int32_t classes) {
  constexpr std::uint64_t kVertices = 64;
  Dataset dataset{.symmetric = true, .classes = classes};
  dataset.graph = Csr32{std::vector<EdgeOffset>(kVertices + 1, 0), {}, {}};
  dataset.features = {.rows = kVertices, .width = width};
  dataset.splits = Buffer<Split>(kVertices, Split::train);
  dataset.split_count = 1;
  return dataset;
}

MemoryPlan plan_training(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config) {
  return plan_run(dataset.graph, dataset.symmetric, partition,
                  training_run(dataset, partition, config));
}

NamedRun training_memory(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config) {
  return {name_of(config.model), training_run(dataset, partition, config)};
}

NamedRun scoring_memory(const Dataset& dataset, const Partition& partition,
                        const ModelConfig& model, const Route& route) {
  RunMemory run = run_of(model, dataset.features.is_sparse(), route);
  run.shards.transposed = false;
  run.work = inference_work(dataset, partition, model, route);
  return {name_of(model), std::move(run)};
}

void require_training_fits(World& world, const Dataset& dataset, const Partition& partition,
                           const TrainConfig& config) {
  const NamedRun named = training_memory(dataset, partition, config);
  require_run_fits(world, dataset.graph, dataset.symmetric, partition, named.run, named.what);
}

void require_inference_fits(World& world, const Dataset& dataset, const Partition& partition,
                            const ModelConfig& model, const InferConfig& config) {
  NamedRun named = scoring_memory(dataset, partition, model, config.route);
  RunMemory& run = named.run;
  // When the placed model is gone, ranks have their scores, and rank 0 also those of all.
  const std::uint64_t each = static_cast<std::uint64_t>(model.outputs) * sizeof(float);
  const std::uint64_t copies = dataset.is_set_of_graphs() ? 1 : copies_in_order(partition);
  for (int rank = 0; rank < partition.parts(); ++rank) {
    const std::uint64_t own =
        dataset.is_set_of_graphs() ? dataset.examples() : partition.size(rank);
    run.afterwards.push_back(each * (own + (rank == 0 ? copies * dataset.examples() : 0)));
  }
  require_run_fits(world, dataset.graph, dataset.symmetric, partition, run, named.what);
}

}  // namespace plait
