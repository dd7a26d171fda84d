// Models of every kind against their formulas on dense matrices in double precision, with the
// gradients of all weights, and the buffers of norms.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "plait/nn/model.h"
#include "plait/nn/operations/edges.h"
#include "tests/support/dense_graph.h"

namespace plait {
namespace {

using test::DenseGraph;
using torch::Tensor;

// counts[i][j]: edges of i from j.
Tensor edge_counts(const DenseGraph& g) {
  const auto n = static_cast<std::int64_t>(g.graph.vertices());
  Tensor counts = torch::zeros({n, n}, torch::kFloat64);
  for (std::int64_t i = 0; i < n; ++i)
    for (EdgeOffset e = g.graph.offsets[static_cast<std::size_t>(i)];
         e < g.graph.offsets[static_cast<std::size_t>(i) + 1]; ++e)
      counts[i][g.graph.neighbours[e]] += 1;
  return counts;
}

// Returns the same with one loop each.
Tensor looped_counts(const DenseGraph& g) {
  const Tensor counts = edge_counts(g);
  return counts - counts.diag().diag() + torch::eye(counts.size(0), torch::kFloat64);
}

// Returns a[i][j]: the attention that i gives to its edges from j together, by scores[i][j]; 0
// without edges.
Tensor softmax_of(const Tensor& counts, const Tensor& scores) {
  const Tensor e = counts * (scores - scores.amax(1, true).detach()).exp();
  return e / e.sum(1, true).clamp_min(1e-300);
}
Tensor attention_of(const Tensor& counts, const Tensor& source, const Tensor& target) {
  return softmax_of(counts, torch::leaky_relu(target.unsqueeze(1) + source.unsqueeze(0), 0.2));
}

// A model's copy in double precision.
class DenseModel {
 public:
  DenseModel(const Model& model, const DenseGraph& g)
      : config_(model.config()),
        counts_(edge_counts(g)),
        looped_(looped_counts(g)),
        x_(g.x.to(torch::kFloat64)) {
    for (const auto& [name, p] : model.named_parameters())
      tensors_[name] = p.detach().to(torch::kFloat64).requires_grad_();
    for (const auto& [name, b] : model.named_buffers()) tensors_[name] = b.to(torch::kFloat64);
  }

  const Tensor& at(const std::string& name) const { return tensors_.at(name); }

  Tensor forward(bool trains) {
    trains_ = trains;
    Tensor h = x_;
    for (int l = 0; l < config_.layers; ++l) {
      const std::string residual = fmt::format("residuals.{}.weight", l);
      Tensor y = layer(h, l);
      if (config_.residual) y = y + (tensors_.contains(residual) ? h.matmul(at(residual).t()) : h);
      if (l + 1 == config_.layers) return y;
      h = activated(normalised(y, fmt::format("norms.{}.", l)));
    }
    return h;
  }

 private:
  Tensor activated(const Tensor& y) const {
    return config_.activation == "elu" ? torch::where(y > 0, y, y.clamp_max(0).expm1()) : y.relu();
  }

  Tensor layer(const Tensor& h, int l) {
    const auto w = [&](const char* name) { return at(fmt::format("convs.{}.{}", l, name)); };
    if (config_.kind == "mlp") return h.matmul(w("lin.weight").t()) + w("bias");
    if (config_.kind == "gin") {
      const Tensor sum = h * (1 + w("eps")) + counts_.matmul(h);
      const Tensor hidden = sum.matmul(w("nn.lins.0.weight").t()) + w("nn.lins.0.bias");
      return activated(normalised(hidden, fmt::format("convs.{}.nn.norms.0.", l)))
                 .matmul(w("nn.lins.1.weight").t()) +
             w("nn.lins.1.bias");
    }
    if (config_.kind == "sage")
      return of_neighbours(h).matmul(w("lin_l.weight").t()) + w("lin_l.bias") +
             h.matmul(w("lin_r.weight").t());
    if (config_.kind == "gatv2" || config_.kind == "transformer") return pairs(h, l, w);
    const Tensor by_head =
        h.matmul(w("lin.weight").t()).view({h.size(0), w("att_src").size(1), -1});
    std::vector<Tensor> heads;
    for (std::int64_t k = 0; k < by_head.size(1); ++k) {
      const Tensor one = by_head.select(1, k);
      heads.push_back(
          attention_of(looped_, one.matmul(w("att_src")[0][k]), one.matmul(w("att_dst")[0][k]))
              .matmul(one));
    }
    const bool last = l + 1 == config_.layers;
    return (last ? torch::stack(heads).mean(0) : torch::cat(heads, 1)) + w("bias");
  }

  // Attention whose scores are functions of pairs of rows.
  template <class Weight>
  Tensor pairs(const Tensor& h, int l, const Weight& w) const {
    const bool last = l + 1 == config_.layers, dynamic = config_.kind == "gatv2";
    const std::int64_t count = last ? config_.output_heads : config_.heads;
    const auto times = [&](const std::string& name) {
      return h.matmul(w((name + ".weight").c_str()).t()) + w((name + ".bias").c_str());
    };
    const auto by_head = [&](const Tensor& t) { return t.view({h.size(0), count, -1}).unbind(1); };
    const auto q = by_head(times(dynamic ? "lin_r" : "lin_query")),
               p = by_head(times(dynamic ? "lin_l" : "lin_key")),
               v = dynamic ? p : by_head(times("lin_value"));
    std::vector<Tensor> heads;
    for (std::size_t k = 0; k < q.size(); ++k) {
      Tensor scores = q[k].matmul(p[k].t()) / std::sqrt(static_cast<double>(q[k].size(1)));
      if (dynamic) {
        const Tensor sums = q[k].unsqueeze(1) + p[k].unsqueeze(0);
        scores = torch::leaky_relu(sums, config_.slope)
                     .matmul(w("att")[0][static_cast<std::int64_t>(k)]);
      }
      heads.push_back(softmax_of(dynamic ? looped_ : counts_, scores).matmul(v[k]));
    }
    const Tensor y = last ? torch::stack(heads).mean(0) : torch::cat(heads, 1);
    return y + (dynamic ? w("bias") : times("lin_skip"));
  }

  // Returns the mean, maximum or minimum; 0 without edges.
  Tensor of_neighbours(const Tensor& h) const {
    const Tensor degree = counts_.sum(1, true);
    if (config_.aggregation == "mean") return counts_.matmul(h) / degree.clamp_min(1);
    const double sign = config_.aggregation == "min" ? -1 : 1;
    const Tensor all = (sign * h).unsqueeze(0).masked_fill(
        counts_.unsqueeze(2) == 0, -std::numeric_limits<double>::infinity());
    return torch::where(degree > 0, sign * all.amax(1), 0.0);
  }

  Tensor normalised(const Tensor& y, const std::string& name) {
    if (config_.norm == NormKind::none) return y;
    const bool batch = config_.norm == NormKind::batch;
    const std::string prefix = name + (batch ? "module." : "");
    Tensor mean = y.mean(batch ? 0 : 1, true), variance = y.var(batch ? 0 : 1, false, true);
    if (batch && trains_) {
      keep(prefix + "running_mean", mean[0]);
      keep(prefix + "running_var", y.var(0, true));
    } else if (batch) {
      mean = at(prefix + "running_mean");
      variance = at(prefix + "running_var");
    }
    return (y - mean) / (variance + 1e-5).sqrt() * at(prefix + "weight") + at(prefix + "bias");
  }
  void keep(const std::string& name, const Tensor& now) {
    tensors_[name] = 0.9 * tensors_[name] + 0.1 * now.detach();
  }

  ModelConfig config_;
  bool trains_ = false;
  Tensor counts_, looped_, x_;
  std::map<std::string, Tensor> tensors_;
};

// Compares to 1e-5, relative to the largest value if that is above 1.
void expect_near(const Tensor& found, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(found.sizes(), wanted.sizes()) << what;
  const double largest = std::max(wanted.abs().max().item<double>(), 1.0);
  EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5 * largest) << what;
}

// Sets values that are neither 0 nor 1, so that each of them counts. Variances stay positive.
void shake(const Model& model) {
  const torch::NoGradGuard no_grad;
  for (const Tensor& t : model.parameters()) t.detach().add_(torch::randn_like(t), 0.2);
  for (const auto& [name, b] : model.named_buffers()) b.detach().add_(torch::rand_like(b));
}

struct Case {
  const char* name;
  ModelConfig config;
  bool sparse;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ModelForward : public testing::TestWithParam<Case> {};

TEST_P(ModelForward, IsTheDenseFormulaWithItsGradients) {
  const auto& [name, given, sparse] = GetParam();
  ModelConfig config = given;
  config.layers = 3;
  config.inputs = 9;
  config.outputs = 5;
  config.seed = 4;
  // There are 40 edges: some vertices have none.
  const DenseGraph g(sparse, 2, 23, config.kind.starts_with("gat") ? 120 : 40);
  const Model model(config);
  shake(model);
  const InputFeatures input(g.features, g.partition, 0, Normalize::none);
  const auto handle = g.handle(model.shard_options());
  DenseModel dense(model, g);
  for (const bool trains : {false, true}) {
    const Tensor scores = model.forward(input, handle, {}, trains), wanted = dense.forward(trains);
    expect_near(scores, wanted, "scores");
    const Tensor direction = torch::randn_like(wanted);
    const auto gradients = torch::autograd::grad({(scores * direction).sum()}, model.parameters());
    std::vector<Tensor> copies;
    for (const auto& [parameter, _] : model.named_parameters())
      copies.push_back(dense.at(parameter));
    const auto wanted_gradients = torch::autograd::grad({(wanted * direction).sum()}, copies);
    for (std::size_t i = 0; i < copies.size(); ++i)
      expect_near(gradients[i], wanted_gradients[i], model.named_parameters()[i].first);
    for (const auto& [buffer, now] : model.named_buffers())
      expect_near(now, dense.at(buffer), buffer);
  }
}

// Layers that narrow rows and that widen them, on dense and on sparse features.
INSTANTIATE_TEST_SUITE_P(
    Kinds, ModelForward,
    testing::Values(
        Case{"mlp", {.kind = "mlp", .hidden = 6, .norm = NormKind::batch}, false},
        Case{"sage", {.kind = "sage", .hidden = 6}, true},
        Case{"wide_sage", {.kind = "sage", .hidden = 12, .norm = NormKind::layer}, false},
        Case{"max", {.kind = "sage", .hidden = 6, .aggregation = "max"}, false},
        Case{"min", {.kind = "sage", .hidden = 6, .aggregation = "min"}, false},
        Case{"sparse_max",
             {.kind = "sage", .hidden = 12, .residual = true, .aggregation = "max"},
             true},
        Case{"gin", {.kind = "gin", .hidden = 6, .norm = NormKind::batch}, true},
        Case{"wide_gin",
             {.kind = "gin", .hidden = 12, .residual = true, .activation = "elu"},
             false},
        Case{"gin_by_row", {.kind = "gin", .hidden = 6, .norm = NormKind::layer}, false},
        Case{"gat",
             {.kind = "gat", .hidden = 8, .activation = "elu", .heads = 4, .output_heads = 3},
             true},
        Case{"wide_gat", {.kind = "gat", .hidden = 12, .norm = NormKind::layer, .heads = 2}, false},
        Case{"gatv2",
             {.kind = "gatv2", .hidden = 8, .activation = "elu", .heads = 4, .output_heads = 3},
             true},
        Case{"wide_gatv2", {.kind = "gatv2", .hidden = 15, .residual = true, .heads = 3}, false},
        Case{"transformer",
             {.kind = "transformer", .hidden = 8, .heads = 4, .output_heads = 3},
             true},
        Case{"wide_transformer",
             {.kind = "transformer", .hidden = 14, .norm = NormKind::layer, .heads = 2},
             false}),
    [](const auto& instance) { return std::string(instance.param.name); });

// The attention that each edge keeps is read off by sums of unit vectors: [head][i][j].
class AttentionDropout : public testing::Test {
 protected:
  static constexpr std::int64_t kHeads = 5, kVertices = 23;

  Tensor attended(const Tensor& h, const Tensor& s, const Tensor& t,
                  const DropoutStep& step) const {
    return attend(h, s, t, handle, 0.2f, step);
  }
  Tensor read_off(const DropoutStep& step) const {
    const Tensor units = torch::eye(kVertices).repeat({1, kHeads});
    return attended(units, source, target, step)
        .view({kVertices, kHeads, kVertices})
        .transpose(0, 1);
  }
  // Returns the factor of each edge: 0 or 1 / (1 - p); 0 where there is none.
  Tensor mask(const DropoutStep& step) const {
    const Tensor whole = read_off({});
    return torch::where(whole > 0, read_off(step) / whole, 0.0);
  }

  const DenseGraph g{false, 7};
  const c10::intrusive_ptr<GraphHandle> handle =
      g.handle({.one_loop_each = true, .slot_vertices = true});
  const Tensor source = torch::randn({kVertices, kHeads}),
               target = torch::randn({kVertices, kHeads});
  const Dropout dropout{3, 0.4f};
};

TEST_F(AttentionDropout, KeepsItsShareOfEdges) {
  const Tensor first = mask({&dropout, 4, 1});
  const Tensor edges = looped_counts(g).expand_as(first) > 0;
  const Tensor kept = first > 0;
  test::expect_close(first.masked_select(kept),
                     torch::full({kept.sum().item<std::int64_t>()}, 1 / 0.6f));
  const double share = kept.sum().item<double>() / edges.sum().item<double>();
  EXPECT_NEAR(share, 0.6, 0.08);
  for (const DropoutStep& other : {DropoutStep{&dropout, 5, 1}, DropoutStep{&dropout, 4, 2}})
    EXPECT_GT((mask(other) != first).sum().item<double>(), 0.3 * edges.sum().item<double>());
  for (std::int64_t k = 1; k < kHeads; ++k) EXPECT_FALSE(torch::equal(first[k], first[0]));
}

TEST_F(AttentionDropout, GradientsAreThoseOfTheSameMask) {
  const DropoutStep step{&dropout, 4, 1};
  const Tensor kept = mask(step).to(torch::kFloat64), counts = looped_counts(g);
  std::vector<Tensor> inputs{torch::randn({kVertices, 3 * kHeads}), source.clone(), target.clone()};
  std::vector<Tensor> copies;
  for (Tensor& input : inputs) {
    copies.push_back(input.to(torch::kFloat64).requires_grad_());
    input.requires_grad_();
  }
  std::vector<Tensor> heads;
  for (std::int64_t k = 0; k < kHeads; ++k)
    heads.push_back((kept[k] * attention_of(counts, copies[1].select(1, k), copies[2].select(1, k)))
                        .matmul(copies[0].narrow(1, 3 * k, 3)));
  const Tensor wanted = torch::cat(heads, 1), y = attended(inputs[0], inputs[1], inputs[2], step);
  expect_near(y, wanted, "y");
  const Tensor direction = torch::randn_like(wanted);
  const auto gradients = torch::autograd::grad({(y * direction).sum()}, inputs);
  const auto wanted_gradients = torch::autograd::grad({(wanted * direction).sum()}, copies);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect_near(gradients[i], wanted_gradients[i], fmt::format("input {}", i));
}

}  // namespace
}  // namespace plait
