// Attention and the maximum over neighbours as registered operations: torch.ops.plait.attend and
// extremum_of_neighbours.
//
// Each has a forward and a backward operation for autograd, so that the tensors that are kept are
// known to other parts of PyTorch. Without gradients nothing is kept. Attention is dropped by a
// seed and a step, from which the backward operation draws the mask again. There are no gradients
// of gradients: they are refused.
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

#include "plait/nn/operations/edges.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Graph = c10::intrusive_ptr<GraphHandle>;

template <class Signature>
auto operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// Tells whether autograd must know of an operation on `inputs`.
template <class... Inputs>
bool differentiates(const Inputs&... inputs) {
  return c10::GradMode::is_enabled() && (inputs.requires_grad() || ...);
}

bool is_nothing(const Tensor& rows, const Graph& graph) {
  return rows.size(1) == 0 || graph->vertices() == 0;
}

// --- attention ---

// The settings of attention besides tensors. dropout: the share of attention that is dropped.
struct AttentionOptions {
  Graph graph;
  double slope, dropout;
  std::int64_t seed;
  OptionalTensor step;
};

std::int64_t heads_of(const Tensor& scores) { return scores.size(1) / 2; }

// `scores`: of each node as a source, then as a target.
AttentionInput input_of(const Tensor& h, const Tensor& scores) {
  const std::int64_t heads = heads_of(scores);
  return {h, scores.narrow(1, 0, heads), scores.narrow(1, heads, heads)};
}

void check_attention(const Tensor& h, const Tensor& scores, const AttentionOptions& options) {
  for (const auto& [t, name] : {std::pair{&h, "h"}, {&scores, "scores"}}) {
    check_dense(*t, name, options.graph->device());
    check_shape(*t, options.graph->own(), name);
  }
  const std::int64_t heads = heads_of(scores);
  TORCH_CHECK_VALUE(heads > 0 && scores.size(1) == 2 * heads && h.size(1) % heads == 0,
                    "scores has ", scores.size(1), " columns and h ", h.size(1),
                    "; give 2 scores for each head, and each head as many columns of h");
}

template <class Body>
auto with_attention(const AttentionOptions& options, Body body) {
  return with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    require_here(options.graph->world(), kPlaced);
    const Dropout dropout(static_cast<std::uint64_t>(options.seed),
                          static_cast<float>(options.dropout));
    const Step step(options.step, options.graph->device());
    return body(AttentionSetting{options.graph, static_cast<float>(options.slope),
                                 step.dropout_step(dropout, 0)});
  });
}

Attended attend_checked(const Tensor& h, const Tensor& scores, const AttentionOptions& options,
                        bool keeps) {
  check_attention(h, scores, options);
  const AttentionInput input = input_of(h, scores);
  if (is_nothing(h, options.graph)) {
    const auto like = [](const Tensor& t) { return torch::zeros_like(t); };
    return {like(h), like(h), like(input.source), like(input.source)};
  }
  return with_attention(options, [&](const AttentionSetting& setting) {
    return attention_forward(input, setting, keeps);
  });
}

Tensor attend_plain(const Tensor& h, const Tensor& scores, const Graph& graph, double slope,
                    double dropout, std::int64_t seed, const OptionalTensor& step) {
  return attend_checked(h, scores, {graph, slope, dropout, seed, step}, false).y;
}

Tensor attend_meta(const Tensor& h, const Tensor&, const Graph&, double, double, std::int64_t,
                   const OptionalTensor&) {
  return torch::empty_like(h, at::MemoryFormat::Contiguous);
}

using Attention = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Attention attend_forward(const Tensor& h, const Tensor& scores, const Graph& graph, double slope,
                         double dropout, std::int64_t seed, const OptionalTensor& step) {
  const Attended a = attend_checked(h, scores, {graph, slope, dropout, seed, step}, true);
  return {a.y, a.u, a.b, a.norm};
}

Attention attend_forward_meta(const Tensor& h, const Tensor& scores, const Graph&, double, double,
                              std::int64_t, const OptionalTensor&) {
  const auto like = [&](std::int64_t width) { return h.new_empty({h.size(0), width}); };
  const std::int64_t heads = heads_of(scores);
  return {like(h.size(1)), like(h.size(1)), like(heads), like(heads)};
}

// `kept`: h, scores, y, u, b, norm.
std::tuple<Tensor, Tensor> attend_backward(const Tensor& dy, at::TensorList kept,
                                           const Graph& graph, double slope, double dropout,
                                           std::int64_t seed, const OptionalTensor& step) {
  TORCH_CHECK_VALUE(kept.size() == 6, "6 tensors must be kept, but there are ", kept.size());
  const AttentionOptions options{graph, slope, dropout, seed, step};
  check_attention(kept[0], kept[1], options);
  if (is_nothing(dy, graph)) return {torch::zeros_like(kept[0]), torch::zeros_like(kept[1])};
  return with_attention(options, [&](const AttentionSetting& setting) {
    const AttentionInput d = attention_backward(dy, input_of(kept[0], kept[1]),
                                                {kept[2], kept[3], kept[4], kept[5]}, setting);
    return std::tuple(d.h, torch::cat({d.source, d.target}, 1));
  });
}

std::tuple<Tensor, Tensor> attend_backward_meta(const Tensor&, at::TensorList kept, const Graph&,
                                                double, double, std::int64_t,
                                                const OptionalTensor&) {
  return {torch::empty_like(kept[0]), torch::empty_like(kept[1])};
}

struct AttendFunction : torch::autograd::Function<AttendFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& h, const Tensor& scores,
                        const AttentionOptions& o) {
    static const auto forward_of = operation<decltype(attend_forward)>("plait::attend_forward");
    auto& data = context->saved_data;
    data["graph"] = o.graph;
    data["slope"] = o.slope;
    data["dropout"] = o.dropout;
    data["seed"] = o.seed;
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, u, b, norm] =
        forward_of.call(h, scores, o.graph, o.slope, o.dropout, o.seed, o.step);
    context->save_for_backward({h, scores, y, u, b, norm, o.step.value_or(Tensor())});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto backward_of = operation<decltype(attend_backward)>("plait::attend_backward");
    auto& data = context->saved_data;
    variable_list kept = context->get_saved_variables();
    const Tensor step = kept.back();
    kept.pop_back();
    const auto [dh, dscores] =
        backward_of.call(gradients[0], kept, data["graph"].toCustomClass<GraphHandle>(),
                         data["slope"].toDouble(), data["dropout"].toDouble(), data["seed"].toInt(),
                         step.defined() ? OptionalTensor(step) : std::nullopt);
    return {dh, dscores, {}};
  }
};

Tensor attend_with_autograd(const Tensor& h, const Tensor& scores, const Graph& graph, double slope,
                            double dropout, std::int64_t seed, const OptionalTensor& step) {
  if (differentiates(h, scores))
    return AttendFunction::apply(h, scores, AttentionOptions{graph, slope, dropout, seed, step});
  static const auto plain = operation<decltype(attend_plain)>("plait::attend");
  const at::AutoDispatchBelowADInplaceOrView below;
  return plain.call(h, scores, graph, slope, dropout, seed, step);
}

// --- the maximum and the minimum ---

Extremum which_of(bool least) { return least ? Extremum::least : Extremum::greatest; }

Extrema extremum_checked(const Tensor& x, const Graph& graph, bool least, bool keeps) {
  check_dense(x, "x", graph->device());
  check_shape(x, graph->own());
  if (is_nothing(x, graph)) return {torch::zeros_like(x), torch::zeros_like(x)};
  return with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    require_here(graph->world(), kPlaced);
    return extremum_forward(x, graph, which_of(least), keeps);
  });
}

Tensor extremum_of_neighbours_plain(const Tensor& x, const Graph& graph, bool least) {
  return extremum_checked(x, graph, least, false).y;
}

Tensor extremum_of_neighbours_meta(const Tensor& x, const Graph&, bool) {
  return torch::empty_like(x, at::MemoryFormat::Contiguous);
}

std::tuple<Tensor, Tensor> extremum_of_neighbours_forward(const Tensor& x, const Graph& graph,
                                                          bool least) {
  const Extrema extrema = extremum_checked(x, graph, least, true);
  return {extrema.y, extrema.ties};
}

std::tuple<Tensor, Tensor> extremum_of_neighbours_forward_meta(const Tensor& x, const Graph& graph,
                                                               bool least) {
  const auto like = [&] { return extremum_of_neighbours_meta(x, graph, least); };
  return {like(), like()};
}

Tensor extremum_of_neighbours_backward(const Tensor& dy, const Tensor& x, const Tensor& y,
                                       const Tensor& ties, const Graph& graph) {
  check_dense(x, "x", graph->device());
  check_shape(x, graph->own());
  if (is_nothing(x, graph)) return torch::empty_like(x);
  return with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    require_here(graph->world(), kPlaced);
    return extremum_backward(dy, x, {y, ties}, graph);
  });
}

Tensor extremum_of_neighbours_backward_meta(const Tensor&, const Tensor& x, const Tensor&,
                                            const Tensor&, const Graph&) {
  return torch::empty_like(x);
}

struct ExtremumFunction : torch::autograd::Function<ExtremumFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Graph& graph, bool least) {
    static const auto forward_of = operation<decltype(extremum_of_neighbours_forward)>(
        "plait::extremum_of_neighbours_forward");
    context->saved_data["graph"] = graph;
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, ties] = forward_of.call(x, graph, least);
    context->save_for_backward({x, y, ties});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto backward_of = operation<decltype(extremum_of_neighbours_backward)>(
        "plait::extremum_of_neighbours_backward");
    const variable_list s = context->get_saved_variables();
    return {backward_of.call(gradients[0], s[0], s[1], s[2],
                             context->saved_data["graph"].toCustomClass<GraphHandle>()),
            {},
            {}};
  }
};

Tensor extremum_of_neighbours_with_autograd(const Tensor& x, const Graph& graph, bool least) {
  if (differentiates(x)) return ExtremumFunction::apply(x, graph, least);
  static const auto plain =
      operation<decltype(extremum_of_neighbours_plain)>("plait::extremum_of_neighbours");
  const at::AutoDispatchBelowADInplaceOrView below;
  return plain.call(x, graph, least);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  register_graph_class();
  m.def(
      "attend(Tensor h, Tensor scores, __torch__.torch.classes.plait.Graph graph, "
      "float slope=0.2, float dropout=0.0, int seed=0, Tensor? step=None) -> Tensor");
  m.def(
      "attend_forward(Tensor h, Tensor scores, __torch__.torch.classes.plait.Graph graph, "
      "float slope, float dropout, int seed, Tensor? step) -> (Tensor y, Tensor u, Tensor b, "
      "Tensor norm)");
  m.def(
      "attend_backward(Tensor dy, Tensor[] kept, __torch__.torch.classes.plait.Graph graph, "
      "float slope, float dropout, int seed, Tensor? step) -> (Tensor, Tensor)");
  m.def(
      "extremum_of_neighbours(Tensor x, __torch__.torch.classes.plait.Graph graph, "
      "bool least=False) -> Tensor");
  m.def(
      "extremum_of_neighbours_forward(Tensor x, __torch__.torch.classes.plait.Graph graph, "
      "bool least) -> (Tensor y, Tensor ties)");
  m.def(
      "extremum_of_neighbours_backward(Tensor dy, Tensor x, Tensor y, Tensor ties, "
      "__torch__.torch.classes.plait.Graph graph) -> Tensor");
}

// Kernels are registered for every device: which one it must be follows from the graph.
TORCH_LIBRARY_IMPL(plait, CompositeExplicitAutograd, m) {
  m.impl("attend", &attend_plain);
  m.impl("attend_forward", &attend_forward);
  m.impl("attend_backward", &attend_backward);
  m.impl("extremum_of_neighbours", &extremum_of_neighbours_plain);
  m.impl("extremum_of_neighbours_forward", &extremum_of_neighbours_forward);
  m.impl("extremum_of_neighbours_backward", &extremum_of_neighbours_backward);
}

TORCH_LIBRARY_IMPL(plait, Meta, m) {
  m.impl("attend", &attend_meta);
  m.impl("extremum_of_neighbours", &extremum_of_neighbours_meta);
  m.impl("attend_forward", &attend_forward_meta);
  m.impl("attend_backward", &attend_backward_meta);
  m.impl("extremum_of_neighbours_forward", &extremum_of_neighbours_forward_meta);
  m.impl("extremum_of_neighbours_backward", &extremum_of_neighbours_backward_meta);
}

TORCH_LIBRARY_IMPL(plait, Autograd, m) {
  m.impl("attend", &attend_with_autograd);
  m.impl("extremum_of_neighbours", &extremum_of_neighbours_with_autograd);
  for (const char* name : {"attend_forward", "attend_backward", "extremum_of_neighbours_forward",
                           "extremum_of_neighbours_backward"})
    m.impl(name, torch::autograd::autogradNotImplementedFallback());
}

}  // namespace plait
