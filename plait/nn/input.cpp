#include "plait/nn/input.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/kernels/spmm.h"
#include "plait/nn/linear_map.h"
#include "plait/placement/own_rows.h"

namespace plait {

Normalize parse_normalize(std::string_view name) {
  if (name == "auto") return Normalize::automatic;
  if (name == "rows") return Normalize::rows;
  if (name == "unit") return Normalize::unit;
  if (name == "none") return Normalize::none;
  throw UsageError(
      fmt::format("normalisation '{}' is unknown; use auto, rows, unit or none", name));
}

torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step) {
  if (!step.active()) return x;
  // Its own adjoint. The gradient draws the mask again rather than keeping it.
  const auto mask = [vertices, step](const torch::Tensor& t) {
    torch::Tensor y = t.clone();
    const auto width = static_cast<std::size_t>(y.size(1));
    float* const data = y.mutable_data_ptr<float>();
    parallel_blocks(vertices->size(), 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        step.dropout->apply((*vertices)[i], step.epoch, step.layer, {data + i * width, width});
    });
    return y;
  };
  return linear_map(x, mask, mask);
}

namespace {

// Rows of a sparse matrix times a dense one.
torch::Tensor product(const Csr32& matrix, const Buffer<float>& values, const torch::Tensor& x) {
  torch::Tensor y = torch::empty({static_cast<std::int64_t>(matrix.vertices()), x.size(1)});
  const auto width = static_cast<std::uint64_t>(x.size(1));
  spmm({.begin = matrix.offsets.span().first(matrix.vertices()),
        .end = matrix.offsets.span().subspan(1),
        .columns = matrix.neighbours.data(),
        .weights = values.data(),
        .x = {.base = x.const_data_ptr<float>(), .stride = width},
        .width = width,
        .y = y.mutable_data_ptr<float>(),
        .y_stride = width});
  return y;
}

// A matrix turned round: row c lists the rows of `matrix` that hold column c, and `entries` where
// in its arrays they do.
struct TurnedRound {
  Csr32 rows;
  Buffer<EdgeOffset> entries;
};

TurnedRound turned_round(const Csr32& matrix, std::uint64_t width) {
  Buffer<EdgeOffset> offsets(width + 1, 0), entries(matrix.edges());
  Buffer<std::uint32_t> rows(matrix.edges());
  for (const std::uint32_t column : matrix.neighbours) ++offsets[column + std::uint64_t{1}];
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<EdgeOffset> next(offsets.begin(), offsets.end() - 1);
  for (std::uint64_t i = 0; i < matrix.vertices(); ++i)
    for (EdgeOffset e = matrix.offsets[i]; e < matrix.offsets[i + 1]; ++e) {
      const EdgeOffset at = next[matrix.neighbours[e]]++;
      rows[at] = static_cast<std::uint32_t>(i);
      entries[at] = e;
    }
  return {{std::move(offsets), std::move(rows), {}}, std::move(entries)};
}

// Features that are not 0, of all vertices; nothing if these are no bags of words.
std::optional<std::uint64_t> words(const Features& features) {
  if (features.is_sparse()) return features.sparse.edges();
  const auto zero_or_one = [](float f) { return f == 0 || f == 1; };
  if (!std::ranges::all_of(features.f32, zero_or_one) ||
      !std::ranges::all_of(features.bf16, zero_or_one, to_float))
    return {};
  return std::ranges::count(features.f32, 1.0f) + std::ranges::count(features.bf16, 1.0f, to_float);
}

// Decided by the features of all vertices, so the same on every rank.
Normalize resolved(Normalize normalize, const Features& features) {
  if (normalize != Normalize::automatic) return normalize;
  const auto count = words(features);
  if (!count) return Normalize::none;
  return *count > 50 * features.rows ? Normalize::unit : Normalize::rows;
}

void normalize_row(std::span<float> row, Normalize normalize) {
  double sum = 0;
  for (const float value : row)
    sum += normalize == Normalize::unit ? double{value} * value : double{value};
  if (normalize == Normalize::unit) sum = std::sqrt(sum);
  const auto factor = static_cast<float>(sum == 0 ? 0.0 : 1 / sum);
  for (float& value : row) value *= factor;
}

Csr32 normalized(const Csr32& matrix, Normalize normalize) {
  Buffer<float> values(matrix.edges());
  std::ranges::copy(matrix.weights, values.begin());
  for (std::uint64_t i = 0; i < matrix.vertices(); ++i)
    normalize_row(values.span().subspan(matrix.offsets[i], matrix.degree(i)), normalize);
  return {matrix.offsets, matrix.neighbours, std::move(values)};
}

torch::Tensor dense_rows(const Features& features, const std::vector<std::uint64_t>& vertices) {
  const auto width = features.width;
  torch::Tensor x =
      torch::empty({static_cast<std::int64_t>(vertices.size()), static_cast<std::int64_t>(width)});
  float* const out = x.mutable_data_ptr<float>();
  parallel_blocks(vertices.size(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t from = vertices[i] * width + c;
        out[i * width + c] =
            features.f32.empty() ? to_float(features.bf16[from]) : features.f32[from];
      }
  });
  return x;
}

}  // namespace

// Own rows, and the same turned round, so that the gradient too is a sum over rows.
struct InputFeatures::Sparse {
  Csr32 rows;
  TurnedRound columns;

  // The values of `rows` after dropout.
  Buffer<float> dropped(const std::vector<std::uint64_t>& vertices, const DropoutStep& step) const {
    Buffer<float> values(rows.edges());
    std::ranges::copy(rows.weights, values.begin());
    if (!step.active()) return values;
    parallel_blocks(rows.vertices(), 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        step.dropout->apply(vertices[i], step.epoch, step.layer, rows.row(i),
                            {values.data() + rows.offsets[i], rows.degree(i)});
    });
    return values;
  }
  Buffer<float> by_column(const Buffer<float>& values) const {
    Buffer<float> turned(values.size());
    parallel_blocks(values.size(), std::size_t{1} << 14, [&](std::size_t begin, std::size_t end) {
      for (std::size_t e = begin; e < end; ++e) turned[e] = values[columns.entries[e]];
    });
    return turned;
  }
};

InputFeatures::InputFeatures(const Features& features, const Partition& partition, int rank,
                             Normalize normalize)
    : width_(static_cast<std::int64_t>(features.width)) {
  std::vector<std::uint64_t> vertices(partition.size(rank));
  for (std::uint64_t r = 0; r < vertices.size(); ++r) vertices[r] = partition.vertex(rank, r);
  normalize = resolved(normalize, features);
  if (features.is_sparse()) {
    Csr32 own = own_rows(features.sparse, partition, rank);
    if (normalize != Normalize::none) own = normalized(own, normalize);
    TurnedRound columns = turned_round(own, features.width);
    sparse_ = std::make_shared<const Sparse>(Sparse{std::move(own), std::move(columns)});
  } else {
    dense_ = dense_rows(features, vertices);
    if (normalize != Normalize::none)
      for (std::size_t i = 0; i < vertices.size(); ++i)
        normalize_row({dense_.mutable_data_ptr<float>() + i * features.width, features.width},
                      normalize);
  }
  vertices_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(vertices));
}

torch::Tensor InputFeatures::dense(const DropoutStep& step) const {
  return drop(dense_, vertices_, step);
}

torch::Tensor InputFeatures::times(const torch::Tensor& weight, const DropoutStep& step) const {
  if (!is_sparse()) return dense(step).matmul(weight.t());
  const auto values = std::make_shared<const Buffer<float>>(sparse_->dropped(*vertices_, step));
  const auto forward = [values, sparse = sparse_](const torch::Tensor& w) {
    return product(sparse->rows, *values, w);
  };
  const auto adjoint = [values, sparse = sparse_](const torch::Tensor& gradient) {
    return product(sparse->columns.rows, sparse->by_column(*values), gradient);
  };
  return linear_map(weight.t(), forward, adjoint);
}

}  // namespace plait
