// Metrics against their definitions, written out over pairs; on ranks, tests/cli tests them.
#include "plait/nn/tasks/metric.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <random>

#include "plait/base/error.h"
#include "plait/nn/tasks/task.h"

namespace plait {
namespace {

double slow_auc(const std::vector<Scored>& examples) {
  double won = 0, pairs = 0;
  for (const Scored& a : examples)
    for (const Scored& b : examples) {
      if (!a.positive || b.positive) continue;
      ++pairs;
      won += a.score > b.score ? 1 : a.score == b.score ? 0.5 : 0;
    }
  return pairs > 0 ? won / pairs : 0;
}

TEST(RocAuc, IsTheShareOfPairsInOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    // Draws few different scores, so that most are tied; or many.
    const int scores = round % 2 == 0 ? 1 + round % 7 : 1000000;
    std::vector<Scored> examples(random() % 60);
    for (Scored& e : examples)
      e = {static_cast<double>(random() % static_cast<unsigned>(scores)) / 7, random() % 3 == 0};
    EXPECT_DOUBLE_EQ(roc_auc(examples), slow_auc(examples)) << round;
  }
}

TEST(RocAuc, OfKnownOrders) {
  EXPECT_EQ(roc_auc({}), 0);
  EXPECT_EQ(roc_auc({{1, true}, {2, true}}), 0);  // there is nothing to compare with
  EXPECT_EQ(roc_auc({{1, false}, {2, true}}), 1);
  EXPECT_EQ(roc_auc({{1, true}, {2, false}}), 0);
  EXPECT_EQ(roc_auc({{3, true}, {3, false}}), 0.5);
  EXPECT_EQ(roc_auc({{0.0, true}, {-0.0, false}}), 0.5);
  EXPECT_EQ(roc_auc({{0, false}, {std::nan(""), true}, {1, true}}), 0);
}

// Own examples of one rank are in all splits, some in none.
struct MetricCase {
  torch::Tensor scores;
  Targets targets;
};

MetricCase random_case(std::int64_t rows, std::int64_t classes, bool sets, int seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  MetricCase c{torch::randn({rows, classes}).mul(3).round().div(3), {}};  // ties, and zeros
  c.targets.labels = sets ? (torch::rand({rows, classes}) < 0.3).to(torch::kFloat32)
                          : torch::randint(classes, {rows}, torch::kInt64);
  const torch::Tensor part = torch::randint(4, {rows}, torch::kInt64);
  for (std::int64_t s = 0; s < 4; ++s) {
    const torch::Tensor list = (part == s).nonzero().flatten();
    const auto at = static_cast<std::size_t>(s);
    c.targets.splits[at] = {list, c.targets.labels.index_select(0, list)};
    c.targets.totals[at] = static_cast<double>(list.numel());
  }
  return c;
}

// Returns the values of train, validation and test.
std::vector<double> measured(MetricKind kind, const MetricCase& c) {
  const auto world = World::alone();
  const auto metric = make_metric(kind);
  const torch::Tensor evidence = metric->evidence(c.scores, c.targets);
  const std::span own(evidence.const_data_ptr<double>(),
                      static_cast<std::size_t>(evidence.numel()));
  const std::vector<double> counts = metric->counts(*world, own);
  const std::size_t each = counts.size() / 3;
  std::vector<double> values;
  for (std::size_t s = 0; s < 3; ++s)
    values.push_back(
        metric->value(std::span(counts).subspan(s * each, each), c.targets.total(kMeasured[s])));
  return values;
}

template <class Slow>
void expect_measured(MetricKind kind, const MetricCase& c, Slow slow) {
  const std::vector<double> found = measured(kind, c);
  for (std::size_t s = 0; s < 3; ++s) {
    std::vector<std::int64_t> rows;
    const torch::Tensor& list = c.targets.of(kMeasured[s]).rows;
    for (std::int64_t i = 0; i < list.numel(); ++i) rows.push_back(list[i].item<std::int64_t>());
    EXPECT_DOUBLE_EQ(found[s], slow(rows)) << s;
  }
}

TEST(Metric, AccuracyIsTheShareOfHits) {
  for (const std::int64_t rows : {0, 5, 80}) {
    const MetricCase c = random_case(rows, 4, false, 2);
    expect_measured(MetricKind::accuracy, c, [&](const std::vector<std::int64_t>& list) {
      double hits = 0;
      for (const std::int64_t i : list)
        hits +=
            c.scores[i].argmax().item<std::int64_t>() == c.targets.labels[i].item<std::int64_t>();
      return list.empty() ? 0 : hits / static_cast<double>(list.size());
    });
  }
}

// F1 is 2 PR / (P + R), precision and recall being over all pairs.
TEST(Metric, MicroF1IsTheHarmonicMean) {
  for (const std::int64_t rows : {0, 7, 90}) {
    const MetricCase c = random_case(rows, 5, true, 3);
    expect_measured(MetricKind::micro_f1, c, [&](const std::vector<std::int64_t>& list) {
      double hits = 0, said = 0, labelled = 0;
      for (const std::int64_t i : list)
        for (std::int64_t k = 0; k < 5; ++k) {
          const bool yes = torch::sigmoid(c.scores[i][k]).item<float>() > 0.5f;
          const bool is = c.targets.labels[i][k].item<float>() == 1;
          hits += yes && is, said += yes, labelled += is;
        }
      if (hits == 0) return 0.0;
      const double precision = hits / said, recall = hits / labelled;
      return 2 * precision * recall / (precision + recall);
    });
  }
}

TEST(Metric, RocAucIsByTheMarginOfClass1) {
  for (const std::int64_t rows : {0, 6, 120}) {
    const MetricCase c = random_case(rows, 2, false, 4);
    expect_measured(MetricKind::roc_auc, c, [&](const std::vector<std::int64_t>& list) {
      std::vector<Scored> examples;
      for (const std::int64_t i : list)
        examples.push_back({(c.scores[i][1] - c.scores[i][0]).item<double>(),
                            c.targets.labels[i].item<std::int64_t>() == 1});
      return slow_auc(examples);
    });
  }
}

// The loss is -y log s - (1 - y) log(1 - s), in double precision, mean over classes.
TEST(Task, LossOfLabelSets) {
  const MetricCase c = random_case(30, 6, true, 5);
  const SplitRows& train = c.targets.of(Split::train);
  const torch::Tensor found = task_of(TaskKind::multi_label).losses(c.scores, train, {});
  const torch::Tensor y = train.labels.to(torch::kFloat64);
  const torch::Tensor s = torch::sigmoid(c.scores.index_select(0, train.rows).to(torch::kFloat64));
  const torch::Tensor wanted = -(y * s.log() + (1 - y) * (1 - s).log()).mean(1);
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_TRUE(torch::allclose(found.to(torch::kFloat64), wanted, 1e-5, 1e-6));
}

TEST(Task, MetricsThatSuit) {
  using enum MetricKind;
  const Task &one = task_of(TaskKind::single_label), &sets = task_of(TaskKind::multi_label);
  EXPECT_EQ(metric_for(one, automatic, 7), accuracy);
  EXPECT_EQ(metric_for(sets, automatic, 7), micro_f1);
  EXPECT_EQ(metric_for(one, roc_auc, 2), roc_auc);
  EXPECT_THROW(metric_for(one, roc_auc, 3), UsageError);
  EXPECT_THROW(metric_for(one, micro_f1, 3), UsageError);
  EXPECT_THROW(metric_for(sets, accuracy, 2), UsageError);
  for (const TaskKind task : {TaskKind::single_label, TaskKind::multi_label, TaskKind::graph_label})
    EXPECT_EQ(parse_task(to_string(task)), task);
}

}  // namespace
}  // namespace plait
