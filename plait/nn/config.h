// What a model and a training run are made from. No libtorch here, so that callers need none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plait/aggregate/route.h"
#include "plait/graph/dataset.h"
#include "plait/graph/folds.h"

namespace plait {

enum class NormKind { none, batch, layer };
// Throws UsageError that lists them.
NormKind parse_norm(std::string_view name);
std::string_view to_string(NormKind norm);

// "single-label", "multi-label" or "graph-label".
std::string_view to_string(TaskKind task);
// Throws UsageError that lists them.
TaskKind parse_task(std::string_view name);

// How the rows of a graph's vertices become one row, for graph labels.
enum class Pool { none, sum, mean };
// Throw UsageError that lists them.
Pool parse_pool(std::string_view name);
std::string_view to_string(Pool pool);

struct ModelConfig {
  std::string kind = "gcn";
  int layers = 2;
  std::int64_t hidden = 16;
  std::int64_t inputs = 0;   // feature width
  std::int64_t outputs = 0;  // classes
  float dropout = 0.5f;      // on the input of every layer, and on attention
  std::uint64_t seed = 0;
  TaskKind task = TaskKind::single_label;
  // Of graph labels: the last layer is as those before, its rows are pooled over each graph, and a
  // head of two linear layers follows; dropout is then within the head alone.
  Pool pool = Pool::none;
  // Between layers, and within those of gin.
  NormKind norm = NormKind::none;
  bool residual = false;  // a layer's input is added to what it gives, projected where widths
                          // differ (He et al., CVPR 2016)
  std::string activation = "relu";  // or elu
  // Of gat.
  std::int64_t heads = 1;         // of all layers but the last, side by side in `hidden`
  std::int64_t output_heads = 1;  // of the last, of which the mean is taken
  float slope = 0.2f;             // of leaky ReLU
  // Of sage.
  std::string aggregation = "mean";  // or max
};

// The kinds of models, with the settings of their papers:
//   gcn   graph convolution (Kipf and Welling, ICLR 2017)
//   mlp   the same layers without the graph: what the features alone can tell
//   sage  GraphSAGE on the whole graph (Hamilton, Ying and Leskovec, NeurIPS 2017)
//   gin   graph isomorphism network (Xu et al., ICLR 2019)
//   gat   graph attention network (Velickovic et al., ICLR 2018)
struct ModelDefaults {
  int layers;
  std::int64_t hidden, heads;
  float dropout;
  const char* activation;
  NormKind norm;
  double learning_rate, weight_decay;
  bool decay_last;  // the weights of the last layer too
  Pool pool;        // for graph labels
};
// Throws UsageError that lists the kinds.
const ModelDefaults& model_defaults(const std::string& kind);
// A model of the kind with those settings.
ModelConfig default_model(const std::string& kind);
// The kinds, as a help text lists them: "gcn, mlp, ...".
std::string model_kinds();

enum class Normalize {
  automatic,  // for bags of words (stored sparse, or all 0 or 1): rows, or unit if they hold
              // over 50 words on average, of which rows would leave too little; else none
  rows,       // each row divided by its sum, where that is not 0 (Kipf and Welling, section 5.2)
  unit,       // each row divided by its Euclidean length, where that is not 0
  none,
};
// Throws UsageError that lists them.
Normalize parse_normalize(std::string_view name);
std::string_view to_string(Normalize normalize);

enum class MetricKind {
  automatic,  // accuracy, for several labels a vertex micro-F1
  accuracy,   // share of the examples whose highest score is their label
  roc_auc,    // area under the ROC curve of class 1, of two
  micro_f1,   // F1 over all pairs of vertex and class; a score above 0 says yes
};
// Throws UsageError that lists them.
MetricKind parse_metric(std::string_view name);
std::string_view to_string(MetricKind metric);

struct TrainConfig {
  ModelConfig model;  // inputs and outputs are filled from the dataset
  double learning_rate = 0.01;
  double weight_decay = 5e-4;  // L2, on the layers that the kind's defaults say
  int epochs = 200;
  int patience = 0;  // stop when the validation loss has not fallen for so many epochs; 0: never
  std::uint32_t split = 0;  // of the dataset's own
  Folds folds;              // instead, if any; drawn from the model's seed
  MetricKind metric = MetricKind::automatic;
  Normalize normalize = Normalize::automatic;
  Route route;
  std::string checkpoint;  // written when training ends, and every `checkpoint_every` epochs
  int checkpoint_every = 50;
  std::string resume;  // a checkpoint to go on from
};

struct InferConfig {
  std::string checkpoint;  // what training wrote
  Normalize normalize = Normalize::automatic;
  Route route;
};

}  // namespace plait
