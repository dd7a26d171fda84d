// The words of settings.
#include "plait/nn/config.h"

#include "plait/base/names.h"

namespace plait {
namespace {

constexpr Names<NormKind, 3> kNorms{"norm", {"none", "batch", "layer"}};
constexpr Names<TaskKind, 3> kTasks{"task", {"single-label", "multi-label", "graph-label"}};
constexpr Names<Pool, 3> kPools{"pool", {"none", "sum", "mean"}, 1};
constexpr Names<Normalize, 4> kNormalize{"normalisation", {"auto", "rows", "unit", "none"}};
constexpr Names<MetricKind, 4> kMetrics{"metric", {"auto", "accuracy", "roc-auc", "micro-f1"}};
constexpr Names<Precision, 3> kPrecisions{"precision", {"fp32", "tf32", "bf16"}};
constexpr Names<StructurePlace, 3> kStructures{"structure", {"auto", "replicated", "sharded"}};

}  // namespace

NormKind parse_norm(std::string_view name) { return kNorms.parse(name); }
std::string_view to_string(NormKind norm) { return kNorms.of(norm); }

TaskKind parse_task(std::string_view name) { return kTasks.parse(name); }
std::string_view to_string(TaskKind task) { return kTasks.of(task); }

Pool parse_pool(std::string_view name) { return kPools.parse(name); }
std::string_view to_string(Pool pool) { return kPools.of(pool); }

Normalize parse_normalize(std::string_view name) { return kNormalize.parse(name); }
std::string_view to_string(Normalize normalize) { return kNormalize.of(normalize); }

MetricKind parse_metric(std::string_view name) { return kMetrics.parse(name); }
std::string_view to_string(MetricKind metric) { return kMetrics.of(metric); }

Precision parse_precision(std::string_view name) { return kPrecisions.parse(name); }
std::string_view to_string(Precision precision) { return kPrecisions.of(precision); }

StructurePlace parse_structure(std::string_view name) { return kStructures.parse(name); }
std::string_view to_string(StructurePlace place) { return kStructures.of(place); }

}  // namespace plait
