#include "plait/nn/operations/dense.h"

#include <ATen/ops/mm.h>

#include <atomic>

#include "plait/base/profile.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/exact_sums.h"
#include "plait/nn/operations/kept_graph.h"

namespace plait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

torch::Tensor gradient_of_row(const torch::Tensor& by_vertex, const GraphRef& graph) {
  return on_rank_0(exact_column_sums(by_vertex, *graph).to(torch::kFloat32), graph);
}

struct Product : torch::autograd::Function<Product> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const GraphRef& graph) {
    keep_graph(context, graph);
    context->save_for_backward({x, weight});
    return exact_row_products(x, weight);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const GraphRef graph = kept_graph(context);
    const torch::Tensor dy = gradients[0].contiguous();
    torch::Tensor dx;
    if (context->needs_input_grad(0)) dx = exact_row_products(dy, s[1].t().contiguous());
    return {dx, on_rank_0(exact_column_products(dy, s[0], *graph), graph), torch::Tensor()};
  }
};

// Returns the product of two matrices of bf16, summed in float32. libtorch has no such product on
// the CPU; the products of two numbers of bf16 are exact in float32.
torch::Tensor product_of_bf16(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.is_cuda()) return at::mm(a.to(torch::kFloat32), b.to(torch::kFloat32));
  return at::mm(a, b, torch::kFloat32);
}

struct ProductOfBf16 : torch::autograd::Function<ProductOfBf16> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    const torch::Tensor a = x.to(torch::kBFloat16), b = weight.to(torch::kBFloat16);
    context->save_for_backward({a, b});
    return product_of_bf16(a, b.t());
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const torch::Tensor dy = gradients[0].to(torch::kBFloat16);
    torch::Tensor dx, dweight;
    if (context->needs_input_grad(0)) dx = product_of_bf16(dy, s[1]);
    if (context->needs_input_grad(1)) dweight = product_of_bf16(dy.t(), s[0]);
    return {dx, dweight};
  }
};

std::atomic<Precision> precision_of_products = Precision::fp32;

struct AddBias : torch::autograd::Function<AddBias> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& h,
                               const torch::Tensor& bias, const GraphRef& graph) {
    keep_graph(context, graph);
    return h + bias;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0], gradient_of_row(gradients[0], kept_graph(context)), torch::Tensor()};
  }
};

struct ScaleColumns : torch::autograd::Function<ScaleColumns> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& scale, const GraphRef& graph) {
    keep_graph(context, graph);
    context->save_for_backward({x, scale});
    return x * scale;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const torch::Tensor& dy = gradients[0];
    const torch::Tensor along = gradient_of_row((dy * s[0]).flatten(1), kept_graph(context));
    return {dy * s[1], along.view_as(s[1]), torch::Tensor()};
  }
};

// Returns the mean of each column over all vertices, float32.
torch::Tensor mean_over_vertices(const torch::Tensor& x, const GraphRef& graph) {
  return (exact_column_sums(x, *graph) / static_cast<double>(graph->vertices()))
      .to(torch::kFloat32);
}

struct Standardize : torch::autograd::Function<Standardize> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& mean, const torch::Tensor& scale,
                               const GraphRef& graph) {
    keep_graph(context, graph);
    const torch::Tensor y = (x - mean) * scale;
    context->save_for_backward({y, scale});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const GraphRef graph = kept_graph(context);
    const torch::Tensor &dy = gradients[0], &y = s[0], &scale = s[1];
    const torch::Tensor along_mean = mean_over_vertices(dy, graph),
                        along_scale = mean_over_vertices(dy * y, graph);
    return {(dy - along_mean - y * along_scale) * scale, torch::Tensor(), torch::Tensor(),
            torch::Tensor()};
  }
};

// libtorch's sigmoid on the CPU has other bits for the last numbers of an array, which are too few
// for a register; its exp() has not.
struct BinaryCrossEntropy : torch::autograd::Function<BinaryCrossEntropy> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& scores,
                               const torch::Tensor& labels) {
    context->save_for_backward({scores, labels});
    return torch::relu(scores) - scores * labels + torch::exp(-scores.abs()).log1p();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    return {gradients[0] * ((1 + torch::exp(-s[0])).reciprocal() - s[1]), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor on_rank_0(const torch::Tensor& whole, const GraphRef& graph) {
  return graph->world().rank() == 0 ? whole : torch::zeros_like(whole);
}

void set_precision(Precision precision) { precision_of_products = precision; }

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const GraphRef& graph) {
  const Timed timed("dense");
  if (!is_exact(graph) && precision_of_products == Precision::bf16) {
    const torch::Tensor y = ProductOfBf16::apply(x, weight);
    return bias.defined() ? y + bias : y;
  }
  if (!is_exact(graph))
    return bias.defined() ? torch::linear(x, weight, bias) : x.matmul(weight.t());
  const torch::Tensor y = Product::apply(x, weight, graph);
  return bias.defined() ? add_bias(y, bias, graph) : y;
}

torch::Tensor add_bias(const torch::Tensor& h, const torch::Tensor& bias, const GraphRef& graph) {
  return is_exact(graph) ? AddBias::apply(h, bias, graph) : h + bias;
}

torch::Tensor scale_columns(const torch::Tensor& x, const torch::Tensor& scale,
                            const GraphRef& graph) {
  return is_exact(graph) ? ScaleColumns::apply(x, scale, graph) : x * scale;
}

torch::Tensor row_sums(const torch::Tensor& x, const GraphRef& graph) {
  if (!is_exact(graph)) return x.sum(-1);
  const auto expand = [columns = x.size(-1)](const torch::Tensor& sums) {
    std::vector<std::int64_t> shape = sums.sizes().vec();
    shape.push_back(columns);
    return sums.unsqueeze(-1).expand(shape).contiguous();
  };
  return linear_map(x, exact_row_sums, expand);
}

torch::Tensor row_means(const torch::Tensor& x, const GraphRef& graph) {
  if (!is_exact(graph)) return x.mean(-1);
  return row_sums(x, graph) / static_cast<double>(x.size(-1));
}

ColumnStatistics exact_statistics(const torch::Tensor& x, const GraphRef& graph) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor mean = mean_over_vertices(x, graph);
  return {mean, mean_over_vertices((x - mean).square(), graph)};
}

torch::Tensor standardize(const torch::Tensor& x, const torch::Tensor& mean,
                          const torch::Tensor& scale, const GraphRef& graph) {
  return Standardize::apply(x, mean, scale, graph);
}

torch::Tensor activate(const torch::Tensor& h, const std::string& activation,
                       const GraphRef& graph) {
  if (activation != "elu") return h.relu();
  // For the same reason as with the sigmoid above: expm1() has the same bits wherever a number
  // stands, elu() has not.
  return is_exact(graph) ? torch::where(h > 0, h, h.clamp_max(0).expm1()) : torch::elu(h);
}

torch::Tensor binary_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                   const GraphRef& graph) {
  if (is_exact(graph)) return BinaryCrossEntropy::apply(scores, labels);
  return torch::binary_cross_entropy_with_logits(scores, labels, {}, {}, at::Reduction::None);
}

torch::Tensor part_of_total(const torch::Tensor& values, const GraphRef& graph) {
  const torch::Tensor here = values.detach();
  if (!is_exact(graph)) return here.sum(torch::kFloat64);
  return on_rank_0(exact_column_sums(here.unsqueeze(1), *graph).squeeze(0), graph);
}

}  // namespace plait
