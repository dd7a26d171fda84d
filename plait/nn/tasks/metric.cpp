#include "plait/nn/tasks/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "plait/base/error.h"

namespace plait {
namespace {

// Metrics whose evidence can be summed as it is.
class Additive : public Metric {
 public:
  std::vector<double> counts(World&, std::span<const double> evidence) const override {
    return {evidence.begin(), evidence.end()};
  }
};

class Accuracy : public Additive {
 public:
  torch::Tensor evidence(const torch::Tensor& scores, const Targets& targets) const override {
    const torch::Tensor hits = scores.argmax(1) == targets.labels;
    std::vector<torch::Tensor> of;
    for (const Split split : kMeasured)
      of.push_back(hits.index_select(0, targets.of(split).rows).sum(torch::kFloat64));
    return torch::stack(of);
  }
  double value(std::span<const double> sums, double examples) const override {
    return examples > 0 ? sums[0] / examples : 0;
  }
};

class MicroF1 : public Additive {
 public:
  torch::Tensor evidence(const torch::Tensor& scores, const Targets& targets) const override {
    const torch::Tensor said = scores > 0, labelled = targets.labels > 0;
    std::vector<torch::Tensor> of;
    for (const Split split : kMeasured)
      for (const torch::Tensor& pairs : {said.logical_and(labelled), said, labelled})
        of.push_back(pairs.index_select(0, targets.of(split).rows).sum(torch::kFloat64));
    return torch::stack(of);
  }
  double value(std::span<const double> sums, double) const override {
    return f1(sums[0], sums[1], sums[2]);
  }
};

// Examples are ranked against the examples of all ranks, so every rank gives all of its own: by how
// much the score of class 1 is the higher, the label, and the split.
class RocAuc : public Metric {
 public:
  // Three rows, with one column per example: margin, label, number of the split in kMeasured.
  torch::Tensor evidence(const torch::Tensor& scores, const Targets& targets) const override {
    const torch::Tensor margins = (scores.select(1, 1) - scores.select(1, 0)).to(torch::kFloat64);
    std::vector<torch::Tensor> parts;
    for (std::size_t s = 0; s < kMeasured.size(); ++s) {
      const SplitRows& split = targets.of(kMeasured[s]);
      const torch::Tensor labels = split.labels.to(torch::kFloat64);
      parts.push_back(torch::stack({margins.index_select(0, split.rows), labels,
                                    torch::full_like(labels, static_cast<double>(s))}));
    }
    return torch::cat(parts, 1).flatten();
  }
  // Rank 0 ranks all examples; other ranks count nothing.
  std::vector<double> counts(World& world, std::span<const double> evidence) const override {
    const auto parts = world.all_gather(std::as_bytes(evidence));
    std::vector<double> found(kMeasured.size());
    if (world.rank() != 0) return found;
    std::array<std::vector<Scored>, kMeasured.size()> splits;
    for (const auto& part : parts) {
      std::vector<double> rows(part.size() / sizeof(double));
      if (!rows.empty()) std::memcpy(rows.data(), part.data(), part.size());
      const std::size_t examples = rows.size() / 3;
      for (std::size_t i = 0; i < examples; ++i)
        splits[static_cast<std::size_t>(rows[2 * examples + i])].push_back(
            {rows[i], rows[examples + i] > 0});
    }
    for (std::size_t s = 0; s < splits.size(); ++s) found[s] = roc_auc(std::move(splits[s]));
    return found;
  }
  double value(std::span<const double> sums, double) const override { return sums[0]; }
};

}  // namespace

std::unique_ptr<Metric> make_metric(MetricKind kind) {
  if (kind == MetricKind::roc_auc) return std::make_unique<RocAuc>();
  if (kind == MetricKind::micro_f1) return std::make_unique<MicroF1>();
  return std::make_unique<Accuracy>();
}

double f1(double hits, double said, double labelled) {
  return said + labelled > 0 ? 2 * hits / (said + labelled) : 0;
}

double roc_auc(std::vector<Scored> examples) {
  // NaN has no place in an order.
  if (std::ranges::any_of(
          examples, [](double score) { return std::isnan(score); }, &Scored::score))
    return 0;
  std::ranges::sort(examples, {}, &Scored::score);
  double positives = 0, negatives = 0, pairs = 0;
  for (auto first = examples.begin(); first != examples.end();) {
    const auto last =
        std::upper_bound(first, examples.end(), first->score,
                         [](double score, const Scored& example) { return score < example.score; });
    const auto tied = static_cast<double>(
        std::count_if(first, last, [](const Scored& example) { return example.positive; }));
    const double against = static_cast<double>(last - first) - tied;
    pairs += tied * (negatives + against / 2);
    positives += tied;
    negatives += against;
    first = last;
  }
  return positives > 0 && negatives > 0 ? pairs / (positives * negatives) : 0;
}

}  // namespace plait
