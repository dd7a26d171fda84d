// Settings of a model and of a training run. This header needs no libtorch, so that callers need
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/graph/folds.h"
#include "plait/plan/optimiser.h"
#include "plait/plan/route.h"
#include "plait/table/table_layout.h"

namespace plait {

// Normalisation between layers (layers/norm.h).
enum class NormKind { none, batch, layer };
// Throws a UsageError that lists them.
NormKind parse_norm(std::string_view name);
std::string_view to_string(NormKind norm);

// "single-label", "multi-label" or "graph-label".
std::string_view to_string(TaskKind task);
// Throws a UsageError that lists them.
TaskKind parse_task(std::string_view name);

// The way in which the rows of a graph's vertices become one row, for graph labels.
enum class Pool { none, sum, mean };
// Throws a UsageError that lists them.
Pool parse_pool(std::string_view name);
std::string_view to_string(Pool pool);

// The shape of a model, and the seed of its weights and dropout.
struct ModelConfig {
  std::string kind = "gcn";
  int layers = 2;
  std::int64_t hidden = 16;
  std::int64_t inputs = 0;   // feature width
  std::int64_t outputs = 0;  // classes
  float dropout = 0.5f;      // on the input of every layer, and on attention
  std::uint64_t seed = 0;
  TaskKind task = TaskKind::single_label;
  // For graph labels: the last layer is like the others, its rows are pooled over each graph, and a
  // head of two linear layers follows; dropout is then within the head alone.
  Pool pool = Pool::none;
  // Between layers, and within the layers of gin.
  NormKind norm = NormKind::none;
  // A layer's input is added to its output, projected if widths differ (He et al., CVPR 2016).
  bool residual = false;
  std::string activation = "relu";  // or elu
  // For kinds with heads (KindTrait::heads):
  std::int64_t heads = 1;         // of all layers but the last, side by side in `hidden`
  std::int64_t output_heads = 1;  // of the last layer, which takes their mean
  float slope = 0.2f;             // factor of leaky ReLU below 0
  // For sage:
  std::string aggregation = "mean";  // or max, or min
};

// The settings that a kind of model has in its paper:
//   gcn          graph convolution (Kipf and Welling, ICLR 2017)
//   mlp          the same layers without the graph, which use the features alone
//   sage         GraphSAGE on the whole graph (Hamilton, Ying and Leskovec, NeurIPS 2017)
//   gin          graph isomorphism network (Xu et al., ICLR 2019)
//   gat          graph attention network (Velickovic et al., ICLR 2018)
//   gatv2        the same with dynamic attention (Brody, Alon and Yahav, ICLR 2022)
//   transformer  attention by products of queries and keys (Shi et al., IJCAI 2021)
struct ModelDefaults {
  int layers;
  std::int64_t hidden, heads;
  float dropout;
  const char* activation;
  NormKind norm;
  double learning_rate, weight_decay;
  bool decay_last;  // weight decay is for the weights of the last layer too
  Pool pool;        // for graph labels
};
// Throws a UsageError that lists the kinds.
const ModelDefaults& model_defaults(const std::string& kind);
// Returns a model of the kind with these settings. Throws as model_defaults().
ModelConfig default_model(const std::string& kind);
// Properties of a kind that decide which settings it reads.
enum class KindTrait {
  heads,        // of attention: it reads heads and output_heads
  aggregation,  // it reads the aggregation
  inner_norm,   // norm and activation also stand within each layer
  decay_last,   // weight decay is for the weights of the last layer too
};
// Returns the kinds, or those with a trait, as a help text lists them: "gcn, mlp, ...".
std::string model_kinds();
std::string model_kinds(KindTrait trait);

// The normalisation of features before training.
enum class Normalize {
  // For bags of words (stored sparse, or all 0 or 1): rows, or unit if the bags hold over 50 words
  // on average, because shares of a sum would be too small. For other features none.
  automatic,
  rows,  // each row divided by its sum, unless that is 0 (Kipf and Welling, section 5.2)
  unit,  // each row divided by its Euclidean length, unless that is 0
  none,
};
// Throws a UsageError that lists them.
Normalize parse_normalize(std::string_view name);
std::string_view to_string(Normalize normalize);

// The figure that compares scores with labels.
enum class MetricKind {
  automatic,  // accuracy; for several labels per vertex micro-F1
  accuracy,   // share of the examples whose highest score is their label
  roc_auc,    // area under the ROC curve of class 1, of two
  micro_f1,   // F1 over all pairs of vertex and class; a score above 0 says yes
};
// Throws a UsageError that lists them.
MetricKind parse_metric(std::string_view name);
std::string_view to_string(MetricKind metric);

// The numbers to which the factors of dense products, and of their gradients, are rounded. Sums are
// float32, and so are weights, their gradients, and rows between operations.
enum class Precision {
  fp32,
  tf32,  // 10 bits, on GPUs
  bf16,  // 7 bits
};
// Throws a UsageError that lists them.
Precision parse_precision(std::string_view name);
std::string_view to_string(Precision precision);

// The memory that has the graph's structure when GPUs sample.
enum class StructurePlace {
  automatic,   // replicated if all else fits then, else sharded
  replicated,  // a copy on each GPU
  sharded,     // shared out over the GPUs, which read each other's parts
};
// Throws a UsageError that lists them.
StructurePlace parse_structure(std::string_view name);
std::string_view to_string(StructurePlace place);

// Times that limit samples, in the order of the dataset's vertices and edges, or empty: an
// edge is drawn for an example only if neither it nor its source is later than the example.
struct SampleTimes {
  Array<std::int64_t> vertices, edges;
  Array<std::int64_t> examples;  // one per vertex; empty: the times of the vertices

  bool any() const { return !vertices.empty() || !edges.empty(); }
  std::int64_t of_example(std::uint64_t vertex) const {
    return examples.empty() ? vertices[vertex] : examples[vertex];
  }
};

// The settings of training on sampled neighbourhoods.
struct SampledTraining {
  std::vector<std::int64_t> fanouts;  // edges per vertex, from the examples on; -1: all
  std::int64_t batch = 512;           // examples per rank and step
  int prefetch = 2;                   // batches that are prepared ahead; 0: each in its turn
  bool by_weight = false;             // an edge's chance to be drawn is proportional to its weight
  bool replace = false;               // an edge may be drawn more than once
  bool latest = false;                // the latest edges are taken; else any that are not too late
  SampleTimes times;
  bool cooperative = false;  // ranks sample a step's batch together (sample/cooperative.h)
  StructurePlace structure = StructurePlace::automatic;  // on GPUs
  std::int64_t checkpoint_steps = 0;  // steps of an epoch between checkpoints; 0: none in it

  // Tells whether a checkpoint is written before step `i` of an epoch.
  bool saves_before(std::int64_t i) const {
    return checkpoint_steps > 0 && i % checkpoint_steps == 0;
  }
};

// The settings of a training run.
struct TrainConfig {
  ModelConfig model;  // inputs and outputs are filled from the dataset
  double learning_rate = 0.01;
  double weight_decay = 5e-4;  // L2, on the layers that the kind's defaults say
  int epochs = 200;
  int patience = 0;  // stop if the validation loss has not fallen for so many epochs; 0: never
  std::uint32_t split = 0;  // number of the dataset's split
  Folds folds;              // used instead of the split, if any; drawn from the model's seed
  MetricKind metric = MetricKind::automatic;
  Normalize normalize = Normalize::automatic;
  // Rows of dense features that are made when they are read, by ids of vertices; empty: the rows of
  // the dataset. If they are made, the dataset's features have their width alone.
  TableSource made_rows;
  std::optional<SampledTraining> sampled;  // instead of a step on the whole graph
  Route route;
  Precision precision = Precision::fp32;
  int passes = 0;  // on GPUs, as TrialWay::passes
  // On GPUs: whether steps are recorded and replayed, where they can be. None: steps on the whole
  // graph are, and steps on samples on several GPUs, where it is faster (docs/performance.md).
  std::optional<bool> record;
  // Ways that the first epochs try (training/trials.h), the route's own first; empty: no trials.
  std::vector<TrialWay> trials;
  // Path of the file that is written when training ends, and every `checkpoint_every` epochs;
  // empty: none.
  std::string checkpoint;
  int checkpoint_every = 50;  // 0: only when training ends
  std::string resume;         // path of a checkpoint to go on from, or empty
};

// The settings of a run of inference.
struct InferConfig {
  std::string checkpoint;  // path of a checkpoint that training wrote
  Normalize normalize = Normalize::automatic;
  Route route;
};

}  // namespace plait
