#include "plait/nn/layers/input.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/exact_sums.h"
#include "plait/nn/operations/sparse_matrix.h"
#include "plait/placement/own_rows.h"
#include "plait/table/table_layout.h"

namespace plait {
namespace {

// A matrix turned round: row c lists the rows of `matrix` that hold column c, and `entries` (int64)
// where in its arrays they do.
struct TurnedRound {
  Csr32 rows;
  torch::Tensor entries;
};

TurnedRound turned_round(const Csr32& matrix, std::uint64_t width) {
  Buffer<EdgeOffset> offsets(width + 1, 0);
  Buffer<std::uint32_t> rows(matrix.edges());
  torch::Tensor entries = torch::empty({static_cast<std::int64_t>(matrix.edges())}, torch::kInt64);
  auto* const entry = entries.mutable_data_ptr<std::int64_t>();
  for (const std::uint32_t column : matrix.neighbours) ++offsets[column + std::uint64_t{1}];
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<EdgeOffset> next(offsets.begin(), offsets.end() - 1);
  for (std::uint64_t i = 0; i < matrix.vertices(); ++i)
    for (EdgeOffset e = matrix.offsets[i]; e < matrix.offsets[i + 1]; ++e) {
      const EdgeOffset at = next[matrix.neighbours[e]]++;
      rows[at] = static_cast<std::uint32_t>(i);
      entry[at] = static_cast<std::int64_t>(e);
    }
  return {{std::move(offsets), std::move(rows), {}}, entries};
}

// Returns the number of features that are not 0, of all vertices; nothing if they are no bags of
// words, or have no values because they are made when they are read.
std::optional<std::uint64_t> words(const Features& features) {
  if (features.is_sparse()) return features.sparse.edges();
  if (features.f32.empty() && features.bf16.empty()) return {};
  const auto zero_or_one = [](float f) { return f == 0 || f == 1; };
  if (!std::ranges::all_of(features.f32, zero_or_one) ||
      !std::ranges::all_of(features.bf16, zero_or_one, to_float))
    return {};
  return std::ranges::count(features.f32, 1.0f) + std::ranges::count(features.bf16, 1.0f, to_float);
}

}  // namespace

Normalize resolved(Normalize normalize, const Features& features) {
  if (normalize != Normalize::automatic) return normalize;
  const auto count = words(features);
  if (!count) return Normalize::none;
  return *count > 50 * features.rows ? Normalize::unit : Normalize::rows;
}

namespace {

void normalize_row(std::span<float> row, Normalize normalize) {
  double sum = 0;
  for (const float value : row)
    sum += normalize == Normalize::unit ? double{value} * value : double{value};
  if (normalize == Normalize::unit) sum = std::sqrt(sum);
  const auto factor = static_cast<float>(sum == 0 ? 0.0 : 1 / sum);
  for (float& value : row) value *= factor;
}

// The values of a sparse matrix' entries, float32.
torch::Tensor entry_values(const Csr32& matrix, Normalize normalize) {
  torch::Tensor values = torch::empty({static_cast<std::int64_t>(matrix.edges())});
  float* const data = values.mutable_data_ptr<float>();
  std::ranges::copy(matrix.weights, data);
  if (normalize != Normalize::none)
    for (std::uint64_t i = 0; i < matrix.vertices(); ++i)
      normalize_row({data + matrix.offsets[i], matrix.degree(i)}, normalize);
  return values;
}

// Returns a number of each own row.
template <class Number>
torch::Tensor list_of_rows(std::uint64_t rows, Number number) {
  torch::Tensor list = torch::empty({static_cast<std::int64_t>(rows)}, torch::kInt64);
  auto* const data = list.mutable_data_ptr<std::int64_t>();
  for (std::uint64_t r = 0; r < rows; ++r) data[r] = static_cast<std::int64_t>(number(r));
  return list;
}

// Writes rows of dense features, normalised, by all threads.
void write_rows(const TableSource& source, std::span<const std::uint64_t> ids, std::uint64_t width,
                Normalize normalize, float* out) {
  parallel_blocks(ids.size(), 64, [&](std::size_t begin, std::size_t end) {
    float* const rows = out + begin * width;
    source(ids.subspan(begin, end - begin), reinterpret_cast<std::byte*>(rows));
    if (normalize == Normalize::none) return;
    for (std::size_t i = 0; i < end - begin; ++i)
      normalize_row({rows + i * width, width}, normalize);
  });
}

torch::Tensor dense_rows(const FeatureSource& source, const VertexList& vertices,
                         Normalize normalize, const torch::Device& device) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 20;
  const Features& features = source.features;
  require(
      source.made || features.f32.size() + features.bf16.size() >= features.rows * features.width,
      "features of {} rows have no values", features.rows);
  const TableSource rows = source.made ? source.made : rows_of(features);
  const auto width = static_cast<std::int64_t>(features.width), all = vertices.size(0);
  const std::span ids(ids_of(vertices), static_cast<std::size_t>(all));
  torch::Tensor x = torch::empty({all, width}, device);
  if (device.is_cpu()) {
    write_rows(rows, ids, features.width, normalize, x.mutable_data_ptr<float>());
    return x;
  }
  const auto most = static_cast<std::int64_t>(std::max<std::uint64_t>(
      1, kBlockBytes / (sizeof(float) * std::max(features.width, std::uint64_t{1}))));
  const torch::Tensor block = torch::empty({std::min(most, all), width});
  for (std::int64_t begin = 0; begin < all; begin += most) {
    const std::int64_t count = std::min(most, all - begin);
    write_rows(rows, ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
               features.width, normalize, block.mutable_data_ptr<float>());
    x.narrow(0, begin, count).copy_(block.narrow(0, 0, count));  // waits
  }
  return x;
}

}  // namespace

// Own rows, and the same matrix turned round, so that the gradient too is a sum over rows.
struct InputFeatures::Sparse {
  SparseMatrix rows;
  torch::Tensor values;  // of the entries of `rows`
  std::optional<SparseMatrix> columns;
  torch::Tensor entries;  // the place in `values` of each entry of `columns`

  // Returns the transposed matrix times `gradient` over the vertices of all ranks, by columns that
  // are made dense, some at a time.
  torch::Tensor exact_products(const torch::Tensor& some, const torch::Tensor& gradient,
                               const GraphRef& graph) const {
    constexpr std::int64_t kColumns = 256;
    const auto width = static_cast<std::int64_t>(rows.columns());
    std::vector<torch::Tensor> products;
    for (std::int64_t begin = 0; begin < width; begin += kColumns) {
      const std::int64_t count = std::min(kColumns, width - begin);
      torch::Tensor chosen = torch::zeros({width, count}, gradient.options());
      chosen.narrow(0, begin, count).fill_diagonal_(1);
      products.push_back(exact_column_products(rows.times(some, chosen), gradient, *graph));
    }
    return torch::cat(products);
  }
};

TableSource input_rows(const Features& features, Normalize normalize) {
  const TableSource rows = rows_of(features);
  normalize = resolved(normalize, features);
  if (normalize == Normalize::none) return rows;
  return [rows, normalize, width = features.width](std::span<const std::uint64_t> ids,
                                                   std::byte* out) {
    rows(ids, out);
    for (std::size_t i = 0; i < ids.size(); ++i)
      normalize_row({reinterpret_cast<float*>(out) + i * width, width}, normalize);
  };
}

InputVertices input_vertices(const Partition& partition, int rank) {
  const std::uint64_t rows = partition.size(rank);
  const VertexList ids =
      list_of_rows(rows, [&](std::uint64_t r) { return partition.vertex(rank, r); });
  if (partition.numbers().empty()) return {ids, ids};
  return {ids, list_of_rows(rows, [&](std::uint64_t r) { return partition.number(rank, r); })};
}

InputFeatures::InputFeatures(const FeatureSource& source, InputVertices vertices,
                             Normalize normalize, const torch::Device& device, bool gradient)
    : vertices_(vertices.ids.to(device)),
      numbers_(vertices.numbers.is_same(vertices.ids) ? vertices_ : vertices.numbers.to(device)),
      width_(static_cast<std::int64_t>(source.features.width)) {
  const Features& features = source.features;
  normalize = resolved(normalize, features);
  const auto rows = static_cast<std::size_t>(vertices.ids.numel());
  if (features.is_sparse()) {
    Csr32 own = rows_of(features.sparse, {ids_of(vertices.ids), rows});
    const torch::Tensor values = entry_values(own, normalize).to(device);
    std::optional<SparseMatrix> columns;
    torch::Tensor entries;
    if (gradient) {
      TurnedRound turned = turned_round(own, features.width);
      columns.emplace(std::move(turned.rows), rows, device);
      entries = turned.entries.to(device);
    }
    sparse_ = std::make_shared<const Sparse>(Sparse{
        SparseMatrix(std::move(own), features.width, device), values, std::move(columns), entries});
  } else {
    dense_ = dense_rows(source, vertices.ids, normalize, device);
  }
}

InputFeatures::InputFeatures(torch::Tensor rows, InputVertices vertices, const DropoutStep& dropped)
    : vertices_(std::move(vertices.ids)),
      numbers_(std::move(vertices.numbers)),
      width_(rows.size(1)),
      dense_(std::move(rows)),
      dropped_(dropped) {}

void InputFeatures::also_used_on(const c10::Stream& stream) const {
  std::vector<torch::Tensor> all{vertices_, numbers_, dense_};
  if (sparse_) all.insert(all.end(), {sparse_->values, sparse_->entries});
  for (const torch::Tensor& t : all)
    if (t.defined() && t.numel() > 0) t.record_stream(stream);
}

torch::Tensor InputFeatures::dense(const DropoutStep& step) const {
  if (is_sparse()) return times(torch::eye(width_, sparse_->values.options()), step);
  if (!dropped_.active()) return drop(dense_, numbers_, step);
  require(step.active() && step.epoch == dropped_.epoch && step.layer == dropped_.layer,
          "features after dropout {} of layer {} are read for {} of layer {}", dropped_.epoch,
          dropped_.layer, step.epoch, step.layer);
  return dense_;
}

torch::Tensor InputFeatures::times(const torch::Tensor& weight, const DropoutStep& step,
                                   const GraphRef& graph) const {
  if (!is_sparse()) return linear(dense(step), weight, {}, graph);
  const torch::Tensor values = sparse_->rows.dropped(sparse_->values, numbers_, step);
  const auto forward = [values, sparse = sparse_, graph](const torch::Tensor& w) {
    return sparse->rows.times(values, w, is_exact(graph));
  };
  const auto adjoint = [values, sparse = sparse_, graph](const torch::Tensor& gradient) {
    return is_exact(graph) ? on_rank_0(sparse->exact_products(values, gradient, graph), graph)
                           : sparse->columns->times(values.take(sparse->entries), gradient);
  };
  return linear_map(weight.t(), forward, adjoint);
}

}  // namespace plait
