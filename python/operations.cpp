// Plait as Python sees it: torch.classes.plait.Graph and the operations torch.ops.plait.*.
//
// An aggregation is one operation with a flag for the transposed graph. Its gradient is the same
// operation with the flag turned, so gradients of gradients need nothing more.
#include "python/operations.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "plait/base/fault.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/exchange/shared_machine.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "plait/io/io.h"
#include "plait/plan/route.h"
#include "plait/world/launch.h"
#include "python/dataset_tensors.h"
#include "python/edge_tensors.h"

namespace plait {

using torch::Tensor;

std::mutex& operation_mutex() {
  static std::mutex mutex;
  return mutex;
}

void check_dense(const Tensor& t, const char* name, const torch::Device& device, const char* what) {
  TORCH_CHECK_VALUE(t.device() == device, name, " is on ", t.device(), "; ", what, " is on ",
                    device, ", and both must be on one device");
  TORCH_CHECK_VALUE(t.layout() == torch::kStrided, name, " is sparse; use .to_dense()");
  TORCH_CHECK_VALUE(t.scalar_type() == torch::kFloat32, name, " holds ", t.scalar_type(),
                    "; only float32 is supported yet, use .float()");
}

void check_shape(const Tensor& x, std::int64_t rows, const char* name) {
  TORCH_CHECK_VALUE(x.dim() == 2 && x.size(0) == rows, name, " has shape ", x.sizes(),
                    ", but must have one row for each of ", rows, " nodes");
}

void check_path(const std::string& path) {
  const auto end = path.find('\0');
  TORCH_CHECK_VALUE(end == std::string::npos, "a path has a zero byte after '", path.substr(0, end),
                    "', which no file's name can have");
}

ReadOptions reading_options(std::int64_t vertices, bool directed, const std::string& first_line,
                            std::vector<std::string>& warnings) {
  return {.vertices = static_cast<std::uint64_t>(vertices),
          .first_line = parsed("first-line", first_line, parse_first_line),
          .directed = directed,
          .warnings_to = &warnings};
}

TensorState::TensorState(const OptionalTensor& tensor) : given_(tensor && tensor->defined()) {
  if (!given_ || tensor->is_inference()) return;
  tensor_.emplace(tensor->getIntrusivePtr());
  version_ = tensor->_version();
}

bool TensorState::is(const OptionalTensor& tensor) const {
  if (!tensor || !tensor->defined()) return !given_;
  return tensor_ && tensor_->lock() == tensor->getIntrusivePtr() && version_ == tensor->_version();
}

Step::Step(const OptionalTensor& step, const torch::Device& device)
    : step_(step.value_or(Tensor())) {
  TORCH_CHECK_VALUE(!step_.defined() || (step_.scalar_type() == torch::kInt32 && step_.dim() == 0 &&
                                         step_.device() == device),
                    "step must be an int32 scalar on ", device);
}

DropoutStep Step::dropout_step(const Dropout& dropout, std::uint32_t layer) const {
  DropoutStep at{.dropout = &dropout, .layer = layer};
  if (!step_.defined()) return at;
  const auto* const value =
      reinterpret_cast<const std::uint32_t*>(step_.const_data_ptr<std::int32_t>());
  if (step_.is_cuda())
    at.epoch_at = value;
  else
    at.epoch = *value;
  return at;
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Graph = c10::intrusive_ptr<GraphHandle>;

// --- graphs ---

void check(const Tensor& edge_index, std::int64_t num_nodes, const OptionalTensor& edge_weight) {
  with_python_errors([&] {
    const ThreadCount threads(thread_share());
    check_edges({edge_index, num_nodes, edge_weight});
  });
}

// Takes the graph from the partition, if that was made of these edges just before. Vertices have
// the numbers that they have in the partition. Under the lock of operations.
AnyCsr csr_of(const EdgeTensors& edges, const std::optional<PartitionRef>& partition) {
  if (partition && (*partition)->built) {
    const BuiltGraph built = std::move(*std::exchange((*partition)->built, std::nullopt));
    if (built.index.is(edges.index) && built.weight.is(edges.weight)) return std::move(built.csr);
  }
  AnyCsr csr = build_csr(edge_list_of(edges));
  if (!partition || (*partition)->partition.numbers().empty()) return csr;
  return renumbered({.graph = std::move(csr)}, (*partition)->partition.numbers().span()).graph;
}

}  // namespace

void use_device(const torch::Device& device, c10::OptionalDeviceGuard& guard) {
  require<UsageError>(device.is_cpu() || device.is_cuda(),
                      "graphs are on the CPU or on a GPU, not on {}", device.str());
  if (!device.is_cuda()) return;
  const int before = current_gpu();
  guard.reset_device({torch::kCUDA, static_cast<c10::DeviceIndex>(before)});
  use_gpu(device.has_index() ? device.index() : before);
}

EdgesToPlace edges_to_place(const EdgeTensors& edges,
                            const std::optional<PartitionRef>& partition) {
  EdgesToPlace found;
  found.world =
      partition ? &require_here((*partition)->world, "the nodes were divided") : &current_world();
  prepare_on_all(*found.world, [&] {
    fault_point();
    found.csr = csr_of(edges, partition);
    found.owners = partition
                       ? *partition
                       : c10::make_intrusive<PartitionHandle>(
                             *found.world,
                             make_partition(PartitionScheme::edges, found.csr, found.world->size()),
                             std::nullopt);
    found.symmetric = is_symmetric(found.csr);
  });
  return found;
}

void take_measured_machine(World& world) {
  static const World* taken = nullptr;  // by these ranks; a process may work alone before
  if (is_beside_ranks(world) || std::exchange(taken, &world) == &world) return;
  if (const std::string note = use_measured_machine(world); !note.empty()) TORCH_WARN(note);
}

namespace {

Graph graph_from_edges(const Tensor& edge_index, std::int64_t num_nodes,
                       const OptionalTensor& edge_weight, bool one_loop_each, double loop_weight,
                       const std::optional<PartitionRef>& partition,
                       std::optional<torch::Device> device, const std::string& strategy,
                       const std::string& wire) {
  return with_python_errors([&] {
    const torch::Device place = device.value_or(torch::kCPU);
    c10::OptionalDeviceGuard guard;
    use_device(place, guard);
    require<UsageError>(loop_weight == 1 || edge_weight.has_value(),
                        "loop_weight is {}, but the edges have no weights; give edge_weight",
                        loop_weight);
    const Route route{.strategy = parse_strategy(strategy),
                      .wire = parsed("wire", wire, parse_wire),
                      .gpu = place.is_cuda()};
    const ThreadCount threads(thread_share());
    const std::lock_guard lock(operation_mutex());
    EdgesToPlace edges = edges_to_place({edge_index, num_nodes, edge_weight}, partition);
    World& world = *edges.world;
    if (place.is_cuda()) take_measured_machine(world);
    const ShardOptions shards{.one_loop_each = one_loop_each,
                              .loop_weight = static_cast<float>(loop_weight),
                              .slot_vertices = true};  // which key the dropout of attention
    return c10::make_intrusive<GraphHandle>(world, edges.csr, edges.symmetric,
                                            edges.owners->partition,
                                            ExchangeOptions{.route = route, .shards = shards});
  });
}

// Returns the tensors of a file, and the warnings about it, which are Python's to show.
std::tuple<c10::Dict<std::string, Tensor>, std::vector<std::string>> read(
    const std::string& path, std::int64_t vertices, bool directed, const std::string& first_line) {
  check_path(path);
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    std::vector<std::string> warnings;
    const ReadOptions options = reading_options(vertices, directed, first_line, warnings);
    return std::tuple(tensors_of(with_first_numbers(read_dataset(path, options))), warnings);
  });
}

// --- aggregation ---

// The aggregation of x: diag(post) A diag(pre), or the transpose of that.
struct Aggregation {
  Graph graph;
  bool weighted;
  OptionalTensor pre, post;
  bool transposed;
};

// Returns a contiguous tensor, or an undefined one.
Tensor checked_scale(const OptionalTensor& scale, const char* name, const Graph& graph) {
  if (!scale.has_value() || !scale->defined()) return {};
  check_dense(*scale, name, graph->device());
  const std::int64_t rows = graph->own();
  TORCH_CHECK_VALUE(scale->dim() == 1 && scale->size(0) == rows, name, " has shape ",
                    scale->sizes(), ", but must have one number for each of ", rows, " nodes");
  return scale->contiguous();
}

Tensor run(const Tensor& x, const Graph& graph, bool weighted, const OptionalTensor& pre,
           const OptionalTensor& post, bool transposed) {
  check_dense(x, "x", graph->device());
  check_shape(x, graph->own());
  const Tensor before = checked_scale(pre, "pre", graph);
  const Tensor after = checked_scale(post, "post", graph);
  const Tensor in = x.contiguous();
  Tensor out = torch::empty_like(in);
  if (in.size(1) == 0) return out;  // a rank without rows takes part all the same
  const auto data_or_null = [](const Tensor& t) {
    return t.defined() ? t.const_data_ptr<float>() : nullptr;
  };
  const Scaling scaling{data_or_null(before), data_or_null(after), weighted};
  const auto direction = transposed ? &Aggregator::backward : &Aggregator::forward;
  const auto width = static_cast<std::uint64_t>(in.size(1));
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    require_here(graph->world(), kPlaced);
    const auto aggregator = graph->aggregator(width);
    ((*aggregator).*direction)(scaling, in.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
                               width);
  });
  return out;
}

// Returns the result's shape alone, for tensors without data.
Tensor run_meta(const Tensor& x, const Graph&, bool, const OptionalTensor&, const OptionalTensor&,
                bool) {
  return torch::empty_like(x, at::MemoryFormat::Contiguous);
}

Tensor dispatch(const Tensor& x, const Aggregation& a) {
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("plait::aggregate", "").typed<decltype(run)>();
  return operation.call(x, a.graph, a.weighted, a.pre, a.post, a.transposed);
}

struct AggregateFunction : torch::autograd::Function<AggregateFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Aggregation& a) {
    context->saved_data["graph"] = a.graph;
    context->saved_data["weighted"] = a.weighted;
    context->saved_data["transposed"] = a.transposed;
    context->save_for_backward({a.pre.value_or(Tensor()), a.post.value_or(Tensor())});
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch(x, a);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const auto optional = [](const Tensor& t) {
      return t.defined() ? OptionalTensor(t) : std::nullopt;
    };
    return {dispatch(gradients[0],
                     {data["graph"].toCustomClass<GraphHandle>(), data["weighted"].toBool(),
                      optional(saved[0]), optional(saved[1]), !data["transposed"].toBool()}),
            {}};
  }
};

Tensor run_with_autograd(const Tensor& x, const Graph& graph, bool weighted,
                         const OptionalTensor& pre, const OptionalTensor& post, bool transposed) {
  const auto tracked = [](const OptionalTensor& t) {
    return c10::GradMode::is_enabled() && t.has_value() && t->requires_grad();
  };
  TORCH_CHECK_VALUE(!tracked(pre) && !tracked(post),
                    "gradients for pre and post are not supported yet; pass .detach()");
  return AggregateFunction::apply(x, Aggregation{graph, weighted, pre, post, transposed});
}

std::string version() { return PLAIT_VERSION; }

}  // namespace

void register_graph_class() {
  static const auto graph =
      torch::class_<GraphHandle>("plait", "Graph")
          .def("num_nodes", [](const Graph& g) { return g->own(); })
          .def("num_edges", [](const Graph& g) { return static_cast<std::int64_t>(g->edges()); })
          .def("degree",
               [](const Graph& g) {
                 return with_python_errors([&] {
                   const std::lock_guard lock(operation_mutex());  // a batch's edges are summed
                   return g->degree();
                 });
               })
          .def("edge_counts", [](const Graph& g) { return g->edge_counts(); });
}

TORCH_LIBRARY(plait, m) {
  register_graph_class();
  register_partition_class();
  m.def("version() -> str", &version);
  m.def("built_with_cuda() -> bool", &built_with_cuda);
  // Lets tests check without GPUs how profiles are taken.
  m.def("take_measured_machine() -> ()", [] {
    with_python_errors([] {
      const std::lock_guard lock(operation_mutex());
      take_measured_machine(current_world());
    });
  });
  m.def("check_edges(Tensor edge_index, int num_nodes, Tensor? edge_weight=None) -> ()", &check);
  m.def(
      "graph_from_edges(Tensor edge_index, int num_nodes, Tensor? edge_weight=None, "
      "bool one_loop_each=False, float loop_weight=1.0, "
      "__torch__.torch.classes.plait.Partition? partition=None, Device? device=None, "
      "str strategy='auto', str wire='fp32') "
      "-> __torch__.torch.classes.plait.Graph",
      &graph_from_edges);
  m.def(
      "read_dataset(str path, int vertices=0, bool directed=False, str first_line='auto') -> "
      "(Dict(str, Tensor), str[])",
      &read);
  m.def(
      "aggregate(Tensor x, __torch__.torch.classes.plait.Graph graph, bool weighted=False, "
      "Tensor? pre=None, Tensor? post=None, bool transposed=False) -> Tensor");
}

// The kernel is registered for every device: which one it must be follows from the graph.
TORCH_LIBRARY_IMPL(plait, CompositeExplicitAutograd, m) { m.impl("aggregate", &run); }
TORCH_LIBRARY_IMPL(plait, Meta, m) { m.impl("aggregate", &run_meta); }
TORCH_LIBRARY_IMPL(plait, Autograd, m) { m.impl("aggregate", &run_with_autograd); }

}  // namespace plait
