#include "plait/nn/edge_operations.h"

#include <torch/csrc/autograd/custom_function.h>

namespace plait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
struct Held : torch::CustomClassHolder {
  explicit Held(T v) : value(std::move(v)) {}
  T value;
};

// What an operation needs besides tensors, both ways.
struct Setting {
  c10::intrusive_ptr<GraphHandle> graph;
  AttentionShape shape;
  DropoutStep step;
};

void keep(AutogradContext* context, const Setting& setting) {
  context->saved_data["setting"] =
      c10::IValue::make_capsule(c10::make_intrusive<Held<Setting>>(setting));
}

Setting kept(AutogradContext* context) {
  return static_cast<const Held<Setting>&>(*context->saved_data["setting"].toCapsule()).value;
}

Aggregator& aggregator(const Setting& setting, std::uint64_t width) {
  return setting.graph->aggregator(width);
}

float* data(torch::Tensor& t) { return t.mutable_data_ptr<float>(); }

// What stands beside each other in rows of `width` floats.
torch::Tensor rows_of(std::vector<torch::Tensor> parts, std::uint64_t width) {
  auto missing = static_cast<std::int64_t>(width);
  for (const torch::Tensor& part : parts) missing -= part.size(1);
  if (missing > 0) parts.push_back(parts[0].new_zeros({parts[0].size(0), missing}));
  return torch::cat(parts, 1);
}

struct Attend : torch::autograd::Function<Attend> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& h,
                               const torch::Tensor& source, const torch::Tensor& target,
                               const Setting& setting) {
    const torch::Tensor rows = rows_of({h, source}, setting.shape.forward_width());
    const torch::Tensor t = target.contiguous();
    torch::Tensor y = torch::empty_like(h, at::MemoryFormat::Contiguous), u = torch::empty_like(y);
    torch::Tensor b = torch::empty_like(t), norm = torch::empty_like(t);
    aggregator(setting, setting.shape.backward_width())
        .attention(rows.const_data_ptr<float>(), {.shape = setting.shape,
                                                  .dropout = {.step = setting.step},
                                                  .t = t.const_data_ptr<float>(),
                                                  .y = data(y),
                                                  .u = data(u),
                                                  .b = data(b),
                                                  .norm = data(norm)});
    keep(context, setting);
    context->save_for_backward({rows, t, y, u, b, norm});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Setting setting = kept(context);
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &rows = saved[0], &t = saved[1], &b = saved[4];
    const torch::Tensor dy = gradients[0].contiguous();
    const auto heads = static_cast<std::int64_t>(setting.shape.heads);
    const auto features = static_cast<std::int64_t>(setting.shape.features);
    const auto by_head = [&](const torch::Tensor& a) {
      return (dy * a).view({dy.size(0), heads, features}).sum(-1);
    };
    const torch::Tensor c = by_head(saved[2]);
    const torch::Tensor moved = rows_of({dy, t, saved[5], c}, setting.shape.backward_width());
    torch::Tensor dh = torch::empty_like(dy), ds = torch::empty_like(t);
    const auto stride = static_cast<std::uint64_t>(rows.size(1));
    const float* const h = rows.const_data_ptr<float>();
    aggregator(setting, setting.shape.backward_width())
        .attention_backward(moved.const_data_ptr<float>(), {.shape = setting.shape,
                                                            .dropout = {.step = setting.step},
                                                            .h = h,
                                                            .s = h + setting.shape.width(),
                                                            .h_stride = stride,
                                                            .s_stride = stride,
                                                            .dh = data(dh),
                                                            .ds = data(ds)});
    return {dh, ds, by_head(saved[3]) - c * b, torch::Tensor()};
  }
};

struct MaxOfNeighbours : torch::autograd::Function<MaxOfNeighbours> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const Setting& setting) {
    const torch::Tensor x = given.contiguous();
    torch::Tensor y = torch::empty_like(x), ties = torch::empty_like(x);
    const auto width = static_cast<std::uint64_t>(x.size(1));
    aggregator(setting, 2 * width)
        .max_rows(x.const_data_ptr<float>(), {.width = width, .y = data(y), .ties = data(ties)});
    keep(context, setting);
    context->save_for_backward({x, y, ties});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const auto width = static_cast<std::uint64_t>(x.size(1));
    const torch::Tensor shares = torch::where(saved[2] > 0, gradients[0] / saved[2], 0);
    const torch::Tensor moved = torch::cat({saved[1], shares}, 1);
    torch::Tensor dx = torch::empty_like(x);
    aggregator(kept(context), 2 * width)
        .max_rows_backward(moved.const_data_ptr<float>(),
                           {.width = width, .x = x.const_data_ptr<float>(), .dx = data(dx)});
    return {dx, torch::Tensor()};
  }
};

void check(const torch::Tensor& t, const char* name, const GraphHandle& graph) {
  TORCH_CHECK(t.dim() == 2 && t.size(0) == graph.own() && t.scalar_type() == torch::kFloat32,
              "plait: ", name, " must be ", graph.own(),
              " rows of float32, one for each own vertex, but is ", t.sizes(), " of ",
              t.scalar_type());
}

}  // namespace

torch::Tensor attend(const torch::Tensor& h, const torch::Tensor& source,
                     const torch::Tensor& target, const c10::intrusive_ptr<GraphHandle>& graph,
                     float slope, const DropoutStep& step) {
  check(h, "h", *graph);
  check(source, "source", *graph);
  check(target, "target", *graph);
  const std::int64_t heads = source.size(1);
  TORCH_CHECK(heads > 0 && target.size(1) == heads && h.size(1) % heads == 0, "plait: h has ",
              h.size(1), " columns, source ", heads, " and target ", target.size(1),
              "; each head needs one of both and as many of h as the others");
  const AttentionShape shape{static_cast<std::uint64_t>(heads),
                             static_cast<std::uint64_t>(h.size(1) / heads), slope};
  return Attend::apply(h, source, target, Setting{graph, shape, step});
}

torch::Tensor max_of_neighbours(const torch::Tensor& x,
                                const c10::intrusive_ptr<GraphHandle>& graph) {
  check(x, "x", *graph);
  return MaxOfNeighbours::apply(x, Setting{graph, {}, {}});
}

}  // namespace plait
