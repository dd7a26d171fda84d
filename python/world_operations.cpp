// The collective operations of ranks as Python sees them, and the owners of nodes. The ranks are
// joined in current_world.cpp.
//
// Collectives take dense tensors without gradients, on the CPU or, to be summed, on a GPU;
// Python makes differentiable operations of them. Every rank calls the same ones in the same order.
// Calls are compared: all ranks throw the same ValueError if theirs differ. A sum of a tensor is
// compared when one of its kind and length is first taken.
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "plait/aggregate/shared_order.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/exchange/cuda/all_reduce.h"
#include "plait/graph/build.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "plait/kernels/word_hash.h"
#include "plait/nn/layers/dropout.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/difference.h"
#include "plait/world/launch.h"
#include "plait/world/watched_wait.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {

using torch::Tensor;

void wait_for(const Tensor& values) { wait_for(values, current_world()); }

void wait_for(const Tensor& values, World& world) {
  if (!values.is_cuda() || world.size() == 1) return;
  c10::Event there(torch::kCUDA);
  there.record(current_torch_stream(values.device()));
  watched_wait(world, [&] { return there.query(); });
}

namespace {

std::span<std::byte> bytes_of(const Tensor& contiguous) {
  return {static_cast<std::byte*>(contiguous.mutable_data_ptr()), contiguous.nbytes()};
}

void check_contiguous(const Tensor& t) {
  TORCH_CHECK_VALUE(t.device().is_cpu() && t.layout() == torch::kStrided && t.is_contiguous(),
                    "ranks exchange contiguous tensors on the CPU only, but this one is on ",
                    t.device());
}

// --- collectives ---

// Sums on a GPU, enqueued in order with this thread's current stream. One for each GPU of the
// process, made at the first use and, as the world, never destroyed.
class SumsOnGpu {
 public:
  // `world`: the world of several ranks. A process has one such world.
  static SumsOnGpu& of(const torch::Device& device, World& world) {
    static auto& made = *new std::map<c10::DeviceIndex, SumsOnGpu>;
    return made.try_emplace(device.index(), device, world).first->second;
  }
  SumsOnGpu(const torch::Device& device, World& world) : stream_(work_stream(device)) {
    use_gpu(device.index());
    sums_ = make_gpu_all_reduce(world, stream_.native_handle());
  }
  template <class T>
  void sum(std::span<T> values) {
    const StreamOrder order(stream_);
    sums_->sum(values.data(), values.size());
  }

 private:
  c10::Stream stream_;
  std::unique_ptr<GpuAllReduce> sums_;
};

// Calls agree() the first time that this rank makes a call. The barrier is for a rank that does not
// compare, as it has made its call before: the watch over ranks tells it from that call.
void agree_once(World& world, const std::string& call) {
  static std::set<std::string> agreed;
  if (agreed.contains(call)) return;
  world.barrier();
  agree(world, call);
  agreed.insert(call);
}

template <class T>
void all_reduce(const Tensor& values, const std::string& what) {
  const std::span all(values.mutable_data_ptr<T>(), static_cast<std::size_t>(values.numel()));
  World& world = current_world();
  if (world.size() == 1) return;
  const OnGpuOf gpu(values.device());
  const bool on_gpus = values.is_cuda() && built_with_cuda() && world.one_host();
  if (!what.empty())
    agree_once(world, fmt::format("the sum of {} {} numbers on {}: {}", all.size(),
                                  c10::toString(values.scalar_type()),
                                  c10::DeviceTypeName(values.device().type(), true), what));
  if (on_gpus) return SumsOnGpu::of(values.device(), world).sum(all);
  if (values.is_cpu()) return world.all_reduce_sum(all);
  wait_for(values, world);
  const Tensor on_host = values.cpu();
  world.all_reduce_sum(std::span(on_host.mutable_data_ptr<T>(), all.size()));
  values.copy_(on_host);
}

// `what`: the use of the sum, which ranks compare; empty if they have compared it already.
void all_reduce_sum(const Tensor& values, const std::string& what) {
  TORCH_CHECK_VALUE((values.is_cpu() || values.is_cuda()) && values.layout() == torch::kStrided &&
                        values.is_contiguous(),
                    "ranks sum contiguous tensors on the CPU or a GPU only");
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    values.scalar_type() == torch::kFloat64 ? all_reduce<double>(values, what)
                                            : all_reduce<float>(values, what);
  });
}

// Collective. Agrees on the call; returns the counts, int64, and the sums that ranks give.
std::tuple<std::vector<std::int64_t>, std::vector<double>> agree_on_call(const std::string& call,
                                                                         std::int64_t count,
                                                                         double sum) {
  return with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    std::tuple<std::vector<std::int64_t>, std::vector<double>> all;
    for (const Given& given :
         agree(current_world(), call, {static_cast<std::uint64_t>(count), sum})) {
      std::get<0>(all).push_back(static_cast<std::int64_t>(given.count));
      std::get<1>(all).push_back(given.sum);
    }
    return all;
  });
}

void broadcast(const Tensor& values, std::int64_t root) {
  check_contiguous(values);
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    current_world().broadcast(bytes_of(values), static_cast<int>(root));
  });
}

// Collective. Calls first_difference() with facts whose keys and values are given.
std::string first_difference_of(const std::vector<std::string>& keys,
                                const std::vector<std::string>& values) {
  return with_python_errors([&] {
    require<UsageError>(keys.size() == values.size(), "{} keys have {} values", keys.size(),
                        values.size());
    Facts facts;
    for (std::size_t i = 0; i < keys.size(); ++i) facts.emplace_back(keys[i], values[i]);
    const std::lock_guard lock(operation_mutex());
    return first_difference(current_world(), facts);
  });
}

// Returns a text that is equal for tensors of equal elements, whatever their strides or device.
std::string fingerprint(const Tensor& t) {
  return with_python_errors([&] {
    Tensor contiguous = t.resolve_conj().resolve_neg().contiguous();
    wait_for(contiguous);
    if (!built_with_cuda() || !contiguous.is_cuda()) contiguous = contiguous.cpu();
    WordHash hash;
    if (contiguous.is_cuda()) {
      if (reinterpret_cast<std::uintptr_t>(contiguous.data_ptr()) % 8 != 0)
        contiguous = contiguous.clone();
      const OnGpuOf gpu(contiguous.device());
      hash = gpu_hash_words(bytes_of(contiguous), current_stream(contiguous.device()));
    } else {
      const ThreadCount threads(thread_share());
      hash = hash_words(bytes_of(contiguous));
    }
    return fmt::format("{:016x}{:016x}", hash.high, hash.low);
  });
}

// --- owners of nodes ---

void check_partition(const std::string& scheme) {
  with_python_errors([&] { parsed("partition", scheme, parse_partition_scheme); });
}

void check_reorder(const std::string& method) {
  with_python_errors([&] { parsed("reorder", method, parse_reorder_method); });
}

// Collective. If there is a method, the graph is renumbered by it: the numbers of the partition's
// vertices are then the ids of the nodes.
PartitionRef partition_of_edges(const Tensor& edge_index, std::int64_t num_nodes,
                                const OptionalTensor& edge_weight, const std::string& scheme,
                                const std::string& reorder) {
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    const PartitionScheme cut = parsed("partition", scheme, parse_partition_scheme);
    const ReorderMethod method = parsed("reorder", reorder, parse_reorder_method);
    World& world = current_world();
    AnyCsr csr;
    bool symmetric = false;
    const auto build = [&] {
      csr = build_csr(edge_list_of({edge_index, num_nodes, edge_weight}));
      symmetric = method != ReorderMethod::none && is_symmetric(csr);
    };
    Buffer<std::uint64_t> order;
    std::optional<Partition> partition;
    std::optional<BuiltGraph> built;
    const auto divide = [&] {
      if (!order.empty()) csr = renumbered({.graph = std::move(csr)}, order.span()).graph;
      partition = make_partition(cut, csr, world.size());
      partition->set_numbers(std::move(order));
      // The graph is kept if it takes little of the free memory.
      constexpr std::uint64_t kMostOfAnEdge = 12, kOfAVertex = 8;  // bytes
      if (edge_count(csr) * kMostOfAnEdge + vertex_count(csr) * kOfAVertex < available_memory() / 8)
        built = BuiltGraph{TensorState(edge_index), TensorState(edge_weight), std::move(csr)};
    };
    const std::lock_guard lock(operation_mutex());
    prepare_on_all(world, build);
    order = shared_order(world, method, {csr, symmetric});
    prepare_on_all(world, divide);
    return c10::make_intrusive<PartitionHandle>(world, std::move(*partition), std::move(built));
  });
}

// Returns the partition in which rank r owns the nodes starts[r] .. starts[r + 1] - 1; int64, on
// the CPU, ascending from 0.
PartitionRef partition_of_ranges(const Tensor& starts) {
  check_contiguous(starts);
  const auto* const values = starts.const_data_ptr<std::int64_t>();
  std::vector<std::uint64_t> bounds(values, values + starts.numel());
  return with_python_errors([&] {
    World& world = current_world();
    require<UsageError>(bounds.size() == static_cast<std::size_t>(world.size()) + 1 &&
                            bounds[0] == 0 && std::ranges::is_sorted(bounds),
                        "the bounds of the ranks' nodes are not ascending from 0");
    return c10::make_intrusive<PartitionHandle>(world, Partition::contiguous(std::move(bounds)),
                                                std::nullopt);
  });
}

// Returns the global ids of this rank's nodes, in the order of their rows: int64, ascending unless
// the graph is renumbered.
Tensor own_vertices(const PartitionRef& handle) {
  const Partition& partition = handle->partition;
  const int rank = handle->world.rank();
  const auto count = static_cast<std::int64_t>(partition.size(rank));
  Tensor ids = torch::empty({count}, torch::kInt64);
  auto* const id = ids.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < count; ++row)
    id[row] = static_cast<std::int64_t>(partition.number(rank, static_cast<std::uint64_t>(row)));
  return ids;
}

// Returns the rows of all nodes by global id, on every rank; `rows`: the rows of this rank's nodes.
Tensor rows_of_all_ranks(const Tensor& rows, const PartitionRef& handle) {
  check_contiguous(rows);
  const Partition& partition = handle->partition;
  const auto own = static_cast<std::int64_t>(partition.size(handle->world.rank()));
  TORCH_CHECK_VALUE(rows.dim() >= 1 && rows.size(0) == own, "rows have shape ", rows.sizes(),
                    ", but must be ", own, ", one for each of this rank's nodes");
  auto shape = rows.sizes().vec();
  shape[0] = static_cast<std::int64_t>(partition.vertices());
  const Tensor all = torch::empty(shape, rows.options());
  const auto row_bytes =
      static_cast<std::size_t>(c10::multiply_integers(rows.sizes().slice(1))) * rows.itemsize();
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    World& world = require_here(handle->world, "the nodes were divided");
    agree(world, fmt::format("Graph.gather of rows of {} numbers of {}, shape {}",
                             c10::multiply_integers(rows.sizes().slice(1)),
                             c10::toString(rows.scalar_type()), c10::str(rows.sizes().slice(1))));
    const auto parts = world.all_gather(bytes_of(rows));
    if (row_bytes > 0) partition.gather_rows(parts, row_bytes, bytes_of(all));
  });
  return all;
}

// --- dropout by global ids ---

// Returns x, own x width, times a mask that is drawn by (seed, step, call, node, column). step:
// int32, where x is; the gradient reads it again.
Tensor drop_by_vertex(const Tensor& x, const Tensor& vertices, std::int64_t seed, double p,
                      const Tensor& step, std::int64_t call) {
  check_dense(x, "x", vertices.device());
  check_shape(x, vertices.size(0));
  const Step at(step, x.device());
  return with_python_errors([&] {
    const Dropout dropout(static_cast<std::uint64_t>(seed), static_cast<float>(p));
    const auto mask = [=](const Tensor& t) {
      return mask_rows(t, vertices, at.dropout_step(dropout, static_cast<std::uint32_t>(call)));
    };
    return linear_map(x, mask, mask);
  });
}

}  // namespace

void register_partition_class() {
  static const auto partition =
      torch::class_<PartitionHandle>("plait", "Partition").def("own_vertices", &own_vertices);
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  register_partition_class();
  m.def("all_reduce_sum_(Tensor(a!) values, str what) -> ()", &all_reduce_sum);
  m.def("first_failure(str failure) -> str", [](const std::string& failure) {
    return with_python_errors([&] {
      const std::lock_guard lock(operation_mutex());
      return first_failure(current_world(), failure);
    });
  });
  m.def("agree(str call, int count, float sum) -> (int[], float[])", &agree_on_call);
  m.def("broadcast_(Tensor(a!) values, int root) -> ()", &broadcast);
  m.def("wait_for(Tensor values) -> ()",
        [](const Tensor& values) { with_python_errors([&] { wait_for(values); }); });
  m.def("first_difference(str[] keys, str[] values) -> str", &first_difference_of);
  m.def("fingerprint(Tensor t) -> str", &fingerprint);
  m.def("check_partition(str scheme) -> ()", &check_partition);
  m.def("check_reorder(str method) -> ()", &check_reorder);
  m.def(
      "partition_of_edges(Tensor edge_index, int num_nodes, Tensor? edge_weight, str scheme, "
      "str reorder='none') -> __torch__.torch.classes.plait.Partition",
      &partition_of_edges);
  m.def("partition_of_ranges", &partition_of_ranges);
  m.def("gather_rows", &rows_of_all_ranks);
  m.def("drop_by_vertex", &drop_by_vertex);
}

}  // namespace plait
