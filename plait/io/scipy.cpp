#include "plait/io/scipy.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "plait/base/error.h"
#include "plait/graph/build.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/npy.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

const CsrKeys kKeys{"indptr", "indices", "data"};

std::string format_of(const NpzArchive& archive) {
  const NpzMember format = archive.get("format");
  archive.mention("_is_array");  // tells scipy's arrays from its matrices
  const std::string_view code(reinterpret_cast<const char*>(format.array.data.data()),
                              format.array.data.size());
  for (const std::string_view known : {"csr", "csc", "coo", "bsr"})
    if (format.array.type.kind == 'S' && code == known) return std::string(known);
  archive.fail("format", "it is not csr, csc, coo or bsr",
               "convert the matrix with .tocsr() before scipy.sparse.save_npz");
}

template <VertexId V>
Buffer<V> read_ids(const NpzArchive& archive, const char* key, std::uint64_t bound) {
  const NpzMember ids = archive.get(key);
  archive.require_shape(key, ids, ids.rank() == 1 && (bound > 0 || ids.array.size() == 0),
                        "(number of entries,)");
  return npy_integers<V>(ids.array, NpyRange{0, bound == 0 ? 0 : bound - 1});
}

// The values of the entries, which a list owns.
template <VertexId V>
void take_values(EdgeList<V>& list, const Array<float>& values) {
  list.weight = Buffer<float>(values.size());
  std::copy(values.begin(), values.end(), list.weight.begin());
}

template <VertexId V>
EdgeList<V> read_coo(const NpzArchive& archive, MatrixShape shape, std::uint64_t told) {
  EdgeList<V> list{shape.rows, {}, read_ids<V>(archive, "row", shape.rows), {}};
  require_vertices(shape.rows, list.target.size(), told, archive.file(), "array shape");
  list.source = read_ids<V>(archive, "col", shape.columns);
  const NpzMember data = archive.get("data");
  const std::uint64_t entries = list.target.size();
  if (list.source.size() != entries)
    archive.fail("col",
                 fmt::format("it has {} elements beside {} of row", list.source.size(), entries),
                 "write the archive anew");
  archive.require_shape("data", data, data.is_vector(entries), vector_text(entries));
  take_values(list, npy_floats(data.array, data.owner));
  return list;
}

// A csr of the columns.
template <VertexId V>
EdgeList<V> read_csc(const NpzArchive& archive, MatrixShape shape) {
  EdgeList<V> list = edges_of(read_csr<V>(archive, kKeys, {shape.columns, shape.rows}));
  std::swap(list.source, list.target);
  list.vertices = shape.rows;
  return list;
}

template <VertexId V>
EdgeList<V> read_bsr(const NpzArchive& archive, MatrixShape shape, std::uint64_t told) {
  const NpzMember data = archive.get("data");
  const auto& extents = data.array.shape;
  const bool blocks = data.rank() == 3 && !data.array.fortran_order && extents[1] > 0 &&
                      extents[2] > 0 && shape.rows % extents[1] == 0 &&
                      shape.columns % extents[2] == 0;
  archive.require_shape("data", data, blocks, "(blocks, height, width), in the order of C,");
  const std::uint64_t height = extents[1], width = extents[2];
  const Csr<V> pattern =
      read_pattern<V>(archive, kKeys, {shape.rows / height, shape.columns / width});
  archive.require_shape("data", data, extents[0] == pattern.edges(),
                        fmt::format("({}, {}, {})", pattern.edges(), height, width));
  const Array<float> values = npy_floats(data.array, data.owner);
  const auto entries = static_cast<std::uint64_t>(values.end() - values.begin() -
                                                  std::count(values.begin(), values.end(), 0.0f));
  require_vertices(shape.rows, entries, told, archive.file(), "array shape");
  EdgeList<V> list{shape.rows, Buffer<V>(entries), Buffer<V>(entries), Buffer<float>(entries)};
  std::uint64_t out = 0;
  for (std::uint64_t row = 0; row < pattern.vertices(); ++row)
    for (EdgeOffset b = pattern.offsets[row]; b < pattern.offsets[row + 1]; ++b)
      for (std::uint64_t i = 0; i < height * width; ++i) {
        const float value = values[b * height * width + i];
        if (value == 0) continue;
        list.target[out] = static_cast<V>(row * height + i / width);
        list.source[out] = static_cast<V>(pattern.neighbours[b] * width + i % width);
        list.weight[out++] = value;
      }
  return list;
}

}  // namespace

template <VertexId V>
EdgeList<V> read_scipy_entries(const NpzArchive& archive, MatrixShape shape, std::uint64_t told) {
  const std::string format = format_of(archive);
  if (format == "csr") return edges_of(read_csr<V>(archive, kKeys, shape));
  if (format == "csc") return read_csc<V>(archive, shape);
  return format == "coo" ? read_coo<V>(archive, shape, told) : read_bsr<V>(archive, shape, told);
}

template EdgeList<std::uint32_t> read_scipy_entries(const NpzArchive&, MatrixShape, std::uint64_t);
template EdgeList<std::uint64_t> read_scipy_entries(const NpzArchive&, MatrixShape, std::uint64_t);

Csr32 read_scipy_features(const NpzArchive& archive, MatrixShape shape) {
  if (format_of(archive) == "csr") return read_csr<std::uint32_t>(archive, kKeys, shape);
  if (shape.rows > kMaxVertices32)
    archive.fail("shape", fmt::format("{} rows are more than {}", shape.rows, kMaxVertices32),
                 "convert the matrix with .tocsr() before scipy.sparse.save_npz");
  auto entries = read_scipy_entries<std::uint32_t>(archive, shape, shape.rows);
  return build_csr(std::move(entries));
}

}  // namespace plait
