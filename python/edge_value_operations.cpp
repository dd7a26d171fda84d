// Values of edges (kernels/edge_values.h) as registered operations: torch.ops.plait.edge_*, on one
// process. They have no gradients of their own; plait/_edges/values.py makes these.
//
// An EdgeLists has the edges of each row, in the order of the rows' ends; values of edges are in
// the order of the tensors that it was made of.
#include <c10/core/DeviceGuard.h>

#include <array>
#include <limits>
#include <memory>

#include "plait/kernels/cuda/edge_values.h"
#include "plait/kernels/edge_term.h"
#include "plait/kernels/edge_values.h"
#include "plait/nn/operations/torch_device.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

class EdgeLists : public torch::CustomClassHolder {
 public:
  // `ends`: the row of each edge; `others`: the vertex at its other end, below `columns`; both
  // (E,), int64, of ids that were checked.
  EdgeLists(const Tensor& ends, const Tensor& others, std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_count_(columns) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    TORCH_CHECK_VALUE(ends.numel() <= kMost && rows < kMost && columns < kMost,
                      "values of edges are for fewer than 2^31 edges and nodes");
    check_ids(ends, "rows", rows);
    check_ids(others, "nodes at the other end", columns);
    if (ends.is_cuda()) {
      Tensor sorted, order;
      std::tie(sorted, order) = ends.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
      begin_ = offsets_of(sorted, rows);
      place_ = order.to(torch::kInt32);
      columns_ = others.index_select(0, order).to(torch::kInt32);
      const OnGpuOf gpu(ends.device());
      with_python_errors([&] {
        groups_ = std::make_unique<GpuEdgeGroups>(begin(), static_cast<std::uint64_t>(rows),
                                                  static_cast<EdgeOffset>(edges()),
                                                  current_stream(ends.device()));
      });
    } else {
      sort_on_cpu(ends.contiguous(), others.contiguous());
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_count_; }
  std::int64_t edges() const { return place_.numel(); }
  torch::Device device() const { return place_.device(); }
  const std::uint32_t* place() const {
    return reinterpret_cast<const std::uint32_t*>(place_.const_data_ptr<std::int32_t>());
  }
  const GpuEdgeGroups* groups() const { return groups_.get(); }  // null on the CPU
  // Returns the edges of all rows, which read rows of `width` floats at `x`.
  EdgeRows edge_rows(const float* x, std::int64_t width) const {
    const auto count = static_cast<std::size_t>(rows_);
    return {.begin = {begin(), count},
            .end = {begin() + 1, count},
            .columns = reinterpret_cast<const Slot*>(columns_.const_data_ptr<std::int32_t>()),
            .x = {.base = x, .stride = static_cast<std::uint64_t>(width)}};
  }

 private:
  static void check_ids(const Tensor& ids, const char* what, std::int64_t count) {
    TORCH_CHECK_VALUE(ids.dim() == 1 && ids.scalar_type() == torch::kInt64,
                      "ids of edges must be int64");
    if (ids.numel() == 0) return;
    const auto [least, most] = ids.aminmax();
    TORCH_CHECK_VALUE(least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < count,
                      "edge_index has ids from ", least.item<std::int64_t>(), " to ",
                      most.item<std::int64_t>(), ", but there are ", count, " ", what);
  }
  const EdgeOffset* begin() const {
    return reinterpret_cast<const EdgeOffset*>(begin_.const_data_ptr<std::int64_t>());
  }
  // Counts the edges of each row, and puts each edge at the next place of its row.
  void sort_on_cpu(const Tensor& ends, const Tensor& others) {
    const std::int64_t count = ends.numel();
    begin_ = torch::zeros(rows_ + 1, torch::kInt64);
    place_ = torch::empty(count, torch::kInt32);
    columns_ = torch::empty(count, torch::kInt32);
    auto* const begins = begin_.mutable_data_ptr<std::int64_t>();
    const auto* const row = ends.const_data_ptr<std::int64_t>();
    const auto* const other = others.const_data_ptr<std::int64_t>();
    for (std::int64_t e = 0; e < count; ++e) ++begins[row[e] + 1];
    for (std::int64_t i = 0; i < rows_; ++i) begins[i + 1] += begins[i];
    std::vector<std::int64_t> next(begins, begins + rows_);
    auto* const places = place_.mutable_data_ptr<std::int32_t>();
    auto* const columns = columns_.mutable_data_ptr<std::int32_t>();
    for (std::int64_t e = 0; e < count; ++e) {
      const std::int64_t at = next[static_cast<std::size_t>(row[e])]++;
      places[at] = static_cast<std::int32_t>(e);
      columns[at] = static_cast<std::int32_t>(other[e]);
    }
  }

  std::int64_t rows_, columns_count_;
  Tensor begin_, columns_, place_;
  std::unique_ptr<GpuEdgeGroups> groups_;
};
using Lists = c10::intrusive_ptr<EdgeLists>;

struct Name {
  std::string_view name;
  EdgeTerm term;
};
constexpr std::array kTerms{Name{"plus", EdgeTerm::plus},   Name{"product", EdgeTerm::product},
                            Name{"leaky", EdgeTerm::leaky}, Name{"slope", EdgeTerm::slope},
                            Name{"relu", EdgeTerm::relu},   Name{"gate", EdgeTerm::gate},
                            Name{"own", EdgeTerm::own},     Name{"edge", EdgeTerm::edge}};

EdgeTerm term_of_name(std::string_view name) {
  for (const Name& known : kTerms)
    if (known.name == name) return known.term;
  C10_THROW_ERROR(ValueError, "unknown term '" + std::string(name) + "'");
}

// The tensors of a call, contiguous, and the arguments that point to them.
struct Call {
  std::array<Tensor, 5> held;
  EdgeValues values;
};

// Returns the data of a tensor of `rows` rows of `width` floats; null without one.
const float* checked(const OptionalTensor& given, const char* name, std::int64_t rows,
                     std::int64_t width, const EdgeLists& lists, Tensor& held) {
  if (!given.has_value() || !given->defined()) return nullptr;
  check_dense(*given, name, lists.device(), "the list of edges");
  TORCH_CHECK_VALUE(given->dim() == 2 && given->size(0) == rows && given->size(1) == width, name,
                    " has shape ", given->sizes(), ", but must have ", rows, " rows of ", width);
  held = given->contiguous();
  return held.const_data_ptr<float>();
}

struct Arguments {
  const EdgeLists& lists;
  EdgeTerm term;
  const OptionalTensor &a, &b, &m, &factor, &weights;
  std::int64_t heads;
  double slope;
};

// Returns the floats of a row, from the first array that is given.
std::int64_t width_of(const OptionalTensor& a, const OptionalTensor& b, const OptionalTensor& m) {
  for (const OptionalTensor* given : {&a, &b, &m})
    if (given->has_value() && (*given)->defined()) {
      TORCH_CHECK_VALUE((*given)->dim() == 2, "rows have shape ", (*given)->sizes());
      return (*given)->size(1);
    }
  C10_THROW_ERROR(ValueError, "no rows are given");
}

Call call_of(const Arguments& given) {
  const EdgeLists& lists = given.lists;
  const std::int64_t width = width_of(given.a, given.b, given.m);
  TORCH_CHECK_VALUE(given.heads > 0 && width % given.heads == 0, "rows of ", width,
                    " floats do not have ", given.heads, " equal heads");
  Call call;
  EdgeValues& v = call.values;
  auto& [a, b, m, factor, weights] = call.held;
  v.a = checked(given.a, "a", lists.rows(), width, lists, a);
  const float* const x = checked(given.b, "b", lists.columns(), width, lists, b);
  v.m = checked(given.m, "m", lists.edges(), width, lists, m);
  v.factor = checked(given.factor, "factor", 1, width, lists, factor);
  v.weights = checked(given.weights, "weights", lists.edges(), given.heads, lists, weights);
  TORCH_CHECK_VALUE((!reads_a(given.term) || a.defined()) &&
                        (!reads_b(given.term) || b.defined()) &&
                        (!reads_factor(given.term) || factor.defined()) &&
                        (given.term != EdgeTerm::edge || m.defined()),
                    "the term lacks one of its arrays");
  v.edges = lists.edge_rows(x, x == nullptr ? 0 : width);
  v.place = lists.place();
  v.heads = static_cast<std::uint64_t>(given.heads);
  v.features = static_cast<std::uint64_t>(width / given.heads);
  v.term = given.term;
  v.slope = static_cast<float>(given.slope);
  return call;
}

float* data_of(Tensor& t) { return t.mutable_data_ptr<float>(); }

Tensor empty_on(const EdgeLists& lists, std::int64_t rows, std::int64_t width) {
  return torch::empty({rows, width}, torch::TensorOptions(torch::kFloat32).device(lists.device()));
}

Tensor scratch_on(const EdgeLists& lists, std::uint64_t floats) {
  return empty_on(lists, 1, static_cast<std::int64_t>(floats));
}

enum class Kind { scores, sums, rows };

// One of the operations that differ in their results alone.
template <Kind kKind>
Tensor apply(const Lists& lists, std::string_view term, const OptionalTensor& a,
             const OptionalTensor& b, const OptionalTensor& m, const OptionalTensor& factor,
             const OptionalTensor& weights, std::int64_t heads, double slope) {
  const std::int64_t width = width_of(a, b, m);
  Tensor out = empty_on(*lists, kKind == Kind::sums ? lists->rows() : lists->edges(),
                        kKind == Kind::scores ? heads : width);
  if (width == 0) return out.zero_();
  const Call call = call_of({*lists, term_of_name(term), a, b, m, factor, weights, heads, slope});
  const EdgeValues& v = call.values;
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    const OnGpuOf gpu(lists->device());
    const GpuEdgeGroups* const groups = lists->groups();
    void* const stream = groups ? current_stream(lists->device()) : nullptr;
    if constexpr (kKind == Kind::scores) {
      groups ? groups->scores(v, data_of(out), stream) : edge_scores(v, data_of(out));
    } else if constexpr (kKind == Kind::rows) {
      groups ? groups->rows(v, data_of(out), stream) : edge_rows(v, data_of(out));
    } else if (groups == nullptr) {
      edge_sums(v, data_of(out));
    } else {
      Tensor scratch = scratch_on(*lists, groups->scratch_of_sums(v.width()));
      groups->sums(v, data_of(out), data_of(scratch), stream);
    }
  });
  return out;
}

Tensor softmax(const Lists& lists, const Tensor& z, const OptionalTensor& dp) {
  TORCH_CHECK_VALUE(z.dim() == 2 && z.size(1) > 0, "scores have shape ", z.sizes(),
                    ", but must have one row per edge");
  std::array<Tensor, 2> held;
  EdgeSoftmax args{.edges = lists->edge_rows(nullptr, 0),
                   .place = lists->place(),
                   .heads = static_cast<std::uint64_t>(z.size(1))};
  args.z = checked(z, "scores", lists->edges(), z.size(1), *lists, held[0]);
  args.dp = checked(dp, "the gradient", lists->edges(), z.size(1), *lists, held[1]);
  Tensor p = empty_on(*lists, lists->edges(), z.size(1));
  with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    const OnGpuOf gpu(lists->device());
    if (lists->groups() == nullptr) return edge_softmax(args, data_of(p));
    Tensor scratch = scratch_on(*lists, lists->groups()->scratch_of_softmax(args.heads));
    lists->groups()->softmax(args, data_of(p), data_of(scratch), current_stream(lists->device()));
  });
  return p;
}

Lists edge_lists(const Tensor& ends, const Tensor& others, std::int64_t rows,
                 std::int64_t columns) {
  return c10::make_intrusive<EdgeLists>(ends, others, rows, columns);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  torch::class_<EdgeLists>("plait", "EdgeLists");
  m.def(
      "edge_lists(Tensor ends, Tensor others, int rows, int columns) -> "
      "__torch__.torch.classes.plait.EdgeLists",
      &edge_lists);
  const std::string values =
      "(__torch__.torch.classes.plait.EdgeLists lists, str term, Tensor? a=None, Tensor? b=None, "
      "Tensor? m=None, Tensor? factor=None, Tensor? weights=None, int heads=1, float slope=0.0) "
      "-> Tensor";
  m.def(("edge_scores" + values).c_str(), &apply<Kind::scores>);
  m.def(("edge_sums" + values).c_str(), &apply<Kind::sums>);
  m.def(("edge_rows" + values).c_str(), &apply<Kind::rows>);
  m.def(
      "edge_softmax(__torch__.torch.classes.plait.EdgeLists lists, Tensor z, Tensor? dp=None) -> "
      "Tensor",
      &softmax);
}

}  // namespace plait
