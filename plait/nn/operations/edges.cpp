#include "plait/nn/operations/edges.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "plait/nn/operations/dense.h"

namespace plait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Graph = c10::intrusive_ptr<GraphHandle>;

template <class T>
struct Held : torch::CustomClassHolder {
  explicit Held(T v) : value(std::move(v)) {}
  T value;
};

template <class T>
void keep(AutogradContext* context, const T& value) {
  context->saved_data["setting"] = c10::IValue::make_capsule(c10::make_intrusive<Held<T>>(value));
}

template <class T>
const T& kept(AutogradContext* context) {
  return static_cast<const Held<T>&>(*context->saved_data["setting"].toCapsule()).value;
}

AttentionShape shape_of(const AttentionInput& input, float slope) {
  const auto heads = static_cast<std::uint64_t>(input.source.size(1));
  return {heads, static_cast<std::uint64_t>(input.h.size(1)) / heads, slope};
}

// Returns null if there is no tensor.
float* data(torch::Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; }

// Returns an array of as wide rows, without gaps; undefined unless `wanted`.
torch::Tensor room_like(const torch::Tensor& t, std::int64_t rows, bool wanted = true) {
  return wanted ? torch::empty({rows, t.size(1)}, t.options()) : torch::Tensor();
}

// Adds columns of 0 at the end, up to `width`.
torch::Tensor pad_columns(const torch::Tensor& t, std::uint64_t width) {
  const std::int64_t missing = static_cast<std::int64_t>(width) - t.size(-1);
  return missing > 0 ? torch::constant_pad_nd(t, {0, missing}) : t;
}

// Returns rows, or their gradient, as edges read them: heads padded to head_stride().
template <class Shape>  // AttentionShape or PairShape
torch::Tensor pad_heads(const torch::Tensor& h, const Shape& shape) {
  const auto heads = static_cast<std::int64_t>(shape.heads),
             features = static_cast<std::int64_t>(shape.features);
  return pad_columns(h.reshape({h.size(0), heads, features}), shape.head_stride()).flatten(1);
}

// Puts the parts beside each other in rows of `width` floats.
torch::Tensor rows_of(std::vector<torch::Tensor> parts, std::uint64_t width) {
  std::int64_t before = 0;
  for (const torch::Tensor& part : parts) before += part.size(1);
  before -= parts.back().size(1);
  parts.back() = pad_columns(parts.back(), width - static_cast<std::uint64_t>(before));
  return torch::cat(parts, 1);
}

struct Attend : torch::autograd::Function<Attend> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& h,
                               const torch::Tensor& source, const torch::Tensor& target,
                               const AttentionSetting& setting) {
    const Attended a = attention_forward({h, source, target}, setting);
    keep(context, setting);
    context->save_for_backward({h, source, target, a.y, a.u, a.b, a.norm});
    return a.y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const AttentionInput input =
        attention_backward(gradients[0], {s[0], s[1], s[2]}, {s[3], s[4], s[5], s[6]},
                           kept<AttentionSetting>(context));
    return {input.h, input.source, input.target, torch::Tensor()};
  }
};

using OptionalTensor = std::optional<torch::Tensor>;

struct PairSetting {
  Graph graph;
  PairShape shape;
  DropoutStep step;
  bool keeps;  // what a gradient needs

  // Rows that edges read forward.
  torch::Tensor rows(const torch::Tensor& p, const torch::Tensor& v) const {
    std::vector<torch::Tensor> parts{pad_heads(p, shape)};
    if (shape.own_values) parts.push_back(pad_heads(v, shape));
    return rows_of(std::move(parts), shape.forward_width());
  }
  // The aggregator, with room for both directions if there may be a gradient.
  GraphHandle::Use aggregator() const {
    const std::uint64_t forward = shape.forward_width();
    return graph->aggregator(keeps ? std::max(forward, shape.backward_width()) : forward);
  }
};

const float* read(const torch::Tensor& t) {
  return t.defined() ? t.const_data_ptr<float>() : nullptr;
}

// The gradient for f is that for `f_rows`, which has f once for each own row: summing these over
// rows is left to the operation that has made them, as exact sums need more than a sum.
struct AttendPairs : torch::autograd::Function<AttendPairs> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q,
                               const torch::Tensor& p, const OptionalTensor& given_v,
                               const OptionalTensor& given_f, const OptionalTensor&,
                               const PairSetting& setting) {
    const std::int64_t own = q.size(0);
    const torch::Tensor v = given_v.value_or(torch::Tensor()),
                        f = given_f.value_or(torch::Tensor());
    const torch::Tensor rows = setting.rows(p, v);
    torch::Tensor y = room_like(q, own), norm;
    if (setting.keeps)
      norm = torch::empty({own, static_cast<std::int64_t>(setting.shape.heads)}, q.options());
    setting.aggregator()->over_edges(read(rows), PairForward{.edges = {},
                                                             .shape = setting.shape,
                                                             .dropout = {.step = setting.step},
                                                             .q = read(q),
                                                             .f = read(f),
                                                             .y = data(y),
                                                             .norm = data(norm)});
    keep(context, setting);
    context->save_for_backward({q, p, v, f, y, norm});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    const auto& [q, p, v, f, y, norm] = std::tie(s[0], s[1], s[2], s[3], s[4], s[5]);
    const auto& setting = kept<PairSetting>(context);
    const PairShape& shape = setting.shape;
    const torch::Tensor dy = gradients[0].contiguous(), c = products_of_heads(dy, y, setting);
    const torch::Tensor rows = setting.rows(p, v);
    torch::Tensor dq = room_like(q, q.size(0)), df = room_like(q, q.size(0), f.defined());
    setting.aggregator()->over_edges(read(rows), PairOwnGradient{.edges = {},
                                                                 .shape = shape,
                                                                 .dropout = {.step = setting.step},
                                                                 .q = read(q),
                                                                 .f = read(f),
                                                                 .dy = read(dy),
                                                                 .norm = read(norm),
                                                                 .c = read(c),
                                                                 .dq = data(dq),
                                                                 .df = data(df)});
    const torch::Tensor moved =
        rows_of({pad_heads(q, shape), pad_heads(dy, shape), norm, c}, shape.backward_width());
    torch::Tensor dp = room_like(p, p.size(0)), dv = room_like(p, p.size(0));
    setting.aggregator()->over_edges(read(moved), PairBackward{.edges = {},
                                                               .shape = shape,
                                                               .dropout = {.step = setting.step},
                                                               .p = read(p),
                                                               .v = read(shape.own_values ? v : p),
                                                               .f = read(f),
                                                               .dp = data(dp),
                                                               .dv = data(dv)});
    if (!shape.own_values) dp += dv;
    return {dq, dp, shape.own_values ? dv : torch::Tensor(), torch::Tensor(), df, torch::Tensor()};
  }

 private:
  static torch::Tensor products_of_heads(const torch::Tensor& dy, const torch::Tensor& y,
                                         const PairSetting& setting) {
    const auto heads = static_cast<std::int64_t>(setting.shape.heads),
               features = static_cast<std::int64_t>(setting.shape.features);
    return row_sums((dy * y).reshape({dy.size(0), heads, features}), setting.graph).contiguous();
  }
};

struct ExtremumOfNeighbours : torch::autograd::Function<ExtremumOfNeighbours> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const Graph& graph,
                               Extremum which) {
    const Extrema extrema = extremum_forward(x, graph, which);
    keep(context, graph);
    context->save_for_backward({x, extrema.y, extrema.ties});
    return extrema.y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list s = context->get_saved_variables();
    return {extremum_backward(gradients[0], s[0], {s[1], s[2]}, kept<Graph>(context)),
            torch::Tensor(), torch::Tensor()};
  }
};

void check(const torch::Tensor& t, const char* name, std::int64_t rows) {
  TORCH_CHECK(t.dim() == 2 && t.size(0) == rows && t.scalar_type() == torch::kFloat32,
              "plait: ", name, " must be ", rows, " rows of float32, one for each vertex, but is ",
              t.sizes(), " of ", t.scalar_type());
}

}  // namespace

Attended attention_forward(const AttentionInput& input, const AttentionSetting& setting,
                           bool keeps) {
  const AttentionShape shape = shape_of(input, setting.slope);
  const torch::Tensor rows =
      rows_of({pad_heads(input.h, shape), input.source}, shape.forward_width());
  const torch::Tensor t = input.target.contiguous();
  const std::int64_t own = setting.graph->own();
  Attended a{room_like(input.h, own), room_like(input.h, own, keeps), room_like(t, own, keeps),
             room_like(t, own, keeps)};
  setting.graph->aggregator(keeps ? shape.backward_width() : shape.forward_width())
      ->over_edges(rows.const_data_ptr<float>(), AttentionForward{.edges = {},
                                                                  .shape = shape,
                                                                  .dropout = {.step = setting.step},
                                                                  .t = t.const_data_ptr<float>(),
                                                                  .y = data(a.y),
                                                                  .u = data(a.u),
                                                                  .b = data(a.b),
                                                                  .norm = data(a.norm)});
  return a;
}

AttentionInput attention_backward(const torch::Tensor& dy, const AttentionInput& input,
                                  const Attended& attended, const AttentionSetting& setting) {
  const AttentionShape shape = shape_of(input, setting.slope);
  const auto by_head = [&](const torch::Tensor& a) {
    return row_sums((dy * a).reshape({dy.size(0), static_cast<std::int64_t>(shape.heads),
                                      static_cast<std::int64_t>(shape.features)}),
                    setting.graph);
  };
  const torch::Tensor c = by_head(attended.y);
  const torch::Tensor moved =
      rows_of({pad_heads(dy, shape), input.target, attended.norm, c}, shape.backward_width());
  const torch::Tensor h = input.h.contiguous(), s = input.source.contiguous();
  torch::Tensor dh = room_like(h, h.size(0)), ds = room_like(s, s.size(0));
  setting.graph->aggregator(shape.backward_width())
      ->over_edges(moved.const_data_ptr<float>(),
                   AttentionBackward{.edges = {},
                                     .shape = shape,
                                     .dropout = {.step = setting.step},
                                     .h = h.const_data_ptr<float>(),
                                     .s = s.const_data_ptr<float>(),
                                     .h_stride = shape.width(),
                                     .s_stride = shape.heads,
                                     .dh = data(dh),
                                     .ds = data(ds)});
  return {dh, ds, by_head(attended.u) - c * attended.b};
}

Extrema extremum_forward(const torch::Tensor& given, const Graph& graph, Extremum which,
                         bool keeps) {
  const torch::Tensor x = given.contiguous();
  Extrema extrema{room_like(x, graph->own()), room_like(x, graph->own(), keeps)};
  const auto width = static_cast<std::uint64_t>(x.size(1));
  graph->aggregator(keeps ? 2 * row_stride(width) : width)
      ->over_edges(x.const_data_ptr<float>(), ExtremumForward{.edges = {},
                                                              .width = width,
                                                              .y = data(extrema.y),
                                                              .ties = data(extrema.ties),
                                                              .which = which});
  return extrema;
}

torch::Tensor extremum_backward(const torch::Tensor& dy, const torch::Tensor& given,
                                const Extrema& extrema, const Graph& graph) {
  const torch::Tensor x = given.contiguous();
  const auto width = static_cast<std::uint64_t>(x.size(1));
  const torch::Tensor shares = torch::where(extrema.ties > 0, dy / extrema.ties, 0);
  const std::uint64_t half = row_stride(width);
  const torch::Tensor moved =
      torch::cat({pad_columns(extrema.y, half), pad_columns(shares, half)}, 1);
  torch::Tensor dx = room_like(x, x.size(0));
  graph->aggregator(2 * half)->over_edges(
      moved.const_data_ptr<float>(),
      ExtremumBackward{
          .edges = {}, .width = width, .x = x.const_data_ptr<float>(), .dx = data(dx)});
  return dx;
}

torch::Tensor attend(const torch::Tensor& h, const torch::Tensor& source,
                     const torch::Tensor& target, const Graph& graph, float slope,
                     const DropoutStep& step) {
  check(h, "h", graph->inputs());
  check(source, "source", graph->inputs());
  check(target, "target", graph->own());
  const std::int64_t heads = source.size(1);
  TORCH_CHECK(heads > 0 && target.size(1) == heads && h.size(1) % heads == 0, "plait: h has ",
              h.size(1), " columns, source ", heads, " and target ", target.size(1),
              "; each head needs one column of both, and all heads need equally many of h");
  return Attend::apply(h, source, target, AttentionSetting{graph, slope, step});
}

torch::Tensor attend_pairs(const AttendedPairs& rows, std::int64_t heads, const Graph& graph,
                           float slope, const DropoutStep& step) {
  check(rows.q, "q", graph->own());
  check(rows.p, "p", graph->inputs());
  if (rows.v.defined()) check(rows.v, "v", graph->inputs());
  const std::int64_t width = rows.q.size(1);
  TORCH_CHECK(heads > 0 && width % heads == 0 && rows.p.size(1) == width &&
                  (!rows.v.defined() || rows.v.size(1) == width) &&
                  (!rows.f.defined() || rows.f.numel() == width),
              "plait: q has ", width, " columns for ", heads,
              " heads; all heads need equally many, and p, v and f as many as q");
  const PairShape shape{.heads = static_cast<std::uint64_t>(heads),
                        .features = static_cast<std::uint64_t>(width / heads),
                        .score = rows.f.defined() ? PairScore::leaky : PairScore::product,
                        .own_values = rows.v.defined(),
                        .slope = slope};
  const bool keeps = torch::GradMode::is_enabled();
  OptionalTensor v, f, f_rows;
  if (rows.v.defined()) v = rows.v.contiguous();
  if (rows.f.defined()) {
    f = rows.f.detach().flatten().contiguous();
    if (keeps) f_rows = scale_columns(torch::ones_like(rows.q), rows.f.flatten(), graph);
  }
  return AttendPairs::apply(rows.q.contiguous(), rows.p.contiguous(), v, f, f_rows,
                            PairSetting{graph, shape, step, keeps});
}

torch::Tensor extremum_of_neighbours(const torch::Tensor& x, const Graph& graph, Extremum which) {
  check(x, "x", graph->inputs());
  return ExtremumOfNeighbours::apply(x, graph, which);
}

}  // namespace plait
