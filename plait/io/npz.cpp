// Reading .npz archives.
#include "plait/io/npz.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "plait/base/error.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/npy.h"
#include "plait/io/zip_archive.h"

namespace plait {
namespace {

// A member, unpacked, and the memory it lies in.
struct Member {
  std::shared_ptr<const Buffer<std::byte>> owner;
  NpyArray array;

  std::uint64_t rank() const { return array.rank(); }
  // The first and the last extent; 0 for an array without elements, since nothing in the file then
  // backs what the shape promises.
  std::uint64_t rows() const { return backed() ? array.shape.front() : 0; }
  std::uint64_t columns() const { return backed() ? array.shape.back() : 0; }
  bool is_vector(std::uint64_t size) const { return rank() == 1 && array.shape[0] == size; }

 private:
  bool backed() const { return rank() > 0 && array.size() > 0; }
};

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, const std::string& file)
      : zip_(bytes, file), file_(file) {}

  bool has(const std::string& key) const { return zip_.members().contains(key + ".npy"); }

  Member get(const std::string& key) const {
    const auto found = zip_.members().find(key + ".npy");
    if (found == zip_.members().end())
      fail(key, "it is missing", "write the archive with all of its arrays");
    auto bytes = std::make_shared<const Buffer<std::byte>>(zip_.inflate(found->second));
    return {bytes, parse_npy(bytes->span(), fmt::format("{}: array {}", file_, key))};
  }

  std::optional<Member> find(const std::string& key) const {
    return has(key) ? std::optional(get(key)) : std::nullopt;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& problem,
                         const std::string& remedy) const {
    throw InputError(file_, "array " + key, problem, remedy);
  }

  void require_shape(const std::string& key, const Member& member, bool right,
                     const std::string& wanted) const {
    if (!right)
      fail(key, fmt::format("shape {} where {} belongs", member.array.shape_text(), wanted),
           "write the array with that shape");
  }

 private:
  ZipReader zip_;
  const std::string& file_;
};

std::string vector_text(std::uint64_t size) { return fmt::format("({},)", size); }

struct Shape {
  std::uint64_t rows, columns;
};

Shape read_shape(const Archive& archive, const std::string& key) {
  const Member member = archive.get(key);
  archive.require_shape(key, member, member.is_vector(2), "(2,)");
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto shape = npy_integers<std::uint64_t>(member.array, NpyRange{0, kLargest});
  return {shape[0], shape[1]};
}

struct CsrKeys {
  std::string indptr, indices, data;
};

// Three arrays that are a sparse matrix, all of it checked.
template <VertexId V>
Csr<V> read_csr(const Archive& archive, const CsrKeys& keys, Shape shape) {
  Csr<V> csr;
  {
    const Member indices = archive.get(keys.indices);
    archive.require_shape(keys.indices, indices, indices.rank() == 1, "(number of entries,)");
    if (shape.columns == 0 && indices.array.size() > 0)
      archive.fail(keys.indices, "it has entries though the matrix has no columns",
                   "correct the shape");
    const std::uint64_t largest = shape.columns == 0 ? 0 : shape.columns - 1;
    csr.neighbours = npy_integers<V>(indices.array, NpyRange{0, largest});
  }
  const Member data = archive.get(keys.data);
  archive.require_shape(keys.data, data, data.is_vector(csr.edges()), vector_text(csr.edges()));
  csr.weights = npy_floats(data.array, data.owner);
  const Member indptr = archive.get(keys.indptr);
  archive.require_shape(keys.indptr, indptr, indptr.is_vector(shape.rows + 1),
                        vector_text(shape.rows + 1));
  csr.offsets = npy_integers<EdgeOffset>(indptr.array, NpyRange{0, csr.edges()});
  if (csr.offsets[0] != 0 || csr.offsets.back() != csr.edges() ||
      !std::is_sorted(csr.offsets.begin(), csr.offsets.end()))
    archive.fail(keys.indptr,
                 fmt::format("it does not rise from 0 to the number of entries, {}", csr.edges()),
                 "write the archive anew");
  return csr;
}

// --- a SciPy matrix ---

// Weights that are all 1 are no weights.
template <VertexId V>
EdgeList<V> edges_of_matrix(Csr<V> csr) {
  if (std::all_of(csr.weights.begin(), csr.weights.end(), [](float w) { return w == 1.0f; }))
    csr.weights = {};
  return edges_of(csr);
}

ParsedNpz parse_scipy(const Archive& archive) {
  const Member format = archive.get("format");
  const std::string_view code(reinterpret_cast<const char*>(format.array.data.data()),
                              format.array.data.size());
  if (format.array.type.kind != 'S' || code != "csr")
    archive.fail("format", "it says something other than csr",
                 "convert the matrix with .tocsr() before scipy.sparse.save_npz");
  const Shape shape = read_shape(archive, "shape");
  if (shape.rows != shape.columns)
    archive.fail("shape", fmt::format("{} x {} is not square", shape.rows, shape.columns),
                 "give an adjacency matrix, with a row and a column a vertex");
  const CsrKeys keys{"indptr", "indices", "data"};
  ParsedNpz parsed;
  if (shape.rows <= kMaxVertices32)
    parsed.edges = edges_of_matrix(read_csr<std::uint32_t>(archive, keys, shape));
  else
    parsed.edges = edges_of_matrix(read_csr<std::uint64_t>(archive, keys, shape));
  return parsed;
}

// --- a graph archive ---

class GraphArchive {
 public:
  explicit GraphArchive(const Archive& archive) : archive_(archive) {}

  ParsedNpz parse() {
    read_features();
    read_edges();
    if (vertices_ == 0)
      archive_.fail("edge_index", "the graph has no vertices", "give at least one edge");
    read_labels();
    if (!read_masks()) read_id_lists();
    read_original_ids();
    return std::move(parsed_);
  }

 private:
  void read_features() {
    Features& features = parsed_.dataset.features;
    if (const auto x = archive_.find("x")) {
      if (x->array.size() == 0) return warn("x has no elements and is left out");
      archive_.require_shape("x", *x, x->rank() == 2, "(vertices, width)");
      NpyMatrix matrix = npy_matrix(x->array, x->owner);
      features.rows = matrix.rows;
      features.width = matrix.width;
      features.f32 = std::move(matrix.values);
    } else if (archive_.has("x_shape")) {
      const Shape shape = read_shape(archive_, "x_shape");
      if (shape.columns == 0) return warn("x has no columns and is left out");
      if (shape.columns > kMaxVertices32)
        archive_.fail("x_shape",
                      fmt::format("{} columns are outside 1..{}", shape.columns, kMaxVertices32),
                      "drop columns that are not used");
      features.rows = shape.rows;
      features.width = shape.columns;
      features.sparse =
          read_csr<std::uint32_t>(archive_, {"x_indptr", "x_indices", "x_data"}, shape);
    }
  }

  // How many vertices the arrays beside the edges promise, 0 if none is long enough.
  std::uint64_t promised_vertices(std::uint64_t needed) const {
    if (!parsed_.dataset.features.empty()) return parsed_.dataset.features.rows;
    const auto enough = [&](std::uint64_t count) { return count > 0 && count >= needed; };
    for (const char* key : {"train_masks", "val_masks", "test_masks"})
      if (const auto masks = archive_.find(key); masks && enough(masks->columns()))
        return masks->columns();
    for (const char* key : {"graph_id", "original_ids", "y"})
      if (const auto array = archive_.find(key); array && enough(array->rows()))
        return array->rows();
    return 0;
  }

  void read_edges() {
    {
      const Member index = archive_.get("edge_index");
      const std::uint64_t needed = index.array.size() == 0 ? 0 : npy_largest_id(index.array) + 1;
      parsed_.edges = npy_edges(index.array, promised_vertices(needed));
    }
    std::visit(
        [&](auto& edges) {
          vertices_ = edges.vertices;
          const auto weight = archive_.find("edge_weight");
          if (!weight) return;
          archive_.require_shape("edge_weight", *weight, weight->is_vector(edges.edges()),
                                 vector_text(edges.edges()));
          const Array<float> values = npy_floats(weight->array, weight->owner);
          edges.weight = Buffer<float>(values.size());
          std::copy(values.begin(), values.end(), edges.weight.begin());
        },
        parsed_.edges);
  }

  void read_labels() {
    const auto y = archive_.find("y");
    if (!y) return;
    if (y->rank() == 2) return warn("y has several labels a vertex and is left out");
    if (!y->is_vector(vertices_))
      return warn(
          fmt::format("y has shape {}, which is not a label for each of {} vertices, and "
                      "is left out",
                      y->array.shape_text(), vertices_));
    if (!y->array.type.is_integer()) return warn("y does not hold integers and is left out");
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max() - 1;
    Buffer<std::int32_t> labels = npy_integers<std::int32_t>(y->array, NpyRange{-1, kLargest});
    const std::int32_t largest = *std::max_element(labels.begin(), labels.end());
    if (largest < 0) return;  // y tells the number of vertices alone
    parsed_.dataset.classes = largest + 1;
    parsed_.dataset.labels = std::move(labels);
  }

  bool read_masks() {
    for (const auto& [part, split] : kNpzSplits) {
      const std::string key = fmt::format("{}_masks", part);
      const auto masks = archive_.find(key);
      if (!masks) continue;
      const std::uint64_t count = masks->array.size() / vertices_;
      archive_.require_shape(key, *masks,
                             (masks->rank() == 1 || masks->rank() == 2) &&
                                 masks->columns() == vertices_ &&
                                 (splits_.empty() || masks->array.size() == splits_.size()),
                             fmt::format("(splits, {})", vertices_));
      if (splits_.empty()) splits_ = Buffer<Split>(count * vertices_, Split::none);
      const auto chosen = npy_integers<std::uint8_t>(masks->array, NpyRange{0, 1});
      for (std::uint64_t i = 0; i < chosen.size(); ++i) {
        // In Fortran order the splits of a vertex lie together.
        const bool turned = masks->array.fortran_order;
        if (chosen[i]) mark(turned ? i % count * vertices_ + i / count : i, split, key);
      }
    }
    return store_splits();
  }

  void read_id_lists() {
    for (const auto& [key, split] : kNpzSplits) {
      const auto ids = archive_.find(key);
      if (!ids) continue;
      archive_.require_shape(key, *ids, ids->rank() == 1, "(number of vertices in it,)");
      if (splits_.empty()) splits_ = Buffer<Split>(vertices_, Split::none);
      const NpyRange range{0, vertices_ - 1};
      for (const std::uint64_t id : npy_integers<std::uint64_t>(ids->array, range))
        mark(id, split, key);
    }
    store_splits();
  }

  // Entry i of the splits belongs to one part at most.
  void mark(std::uint64_t i, Split part, const std::string& key) {
    if (splits_[i] != Split::none && splits_[i] != part)
      archive_.fail(key,
                    fmt::format("vertex {} is in another part of the split too", i % vertices_),
                    "put each vertex in one of train, val and test");
    splits_[i] = part;
  }

  bool store_splits() {
    if (splits_.empty()) return false;
    const std::uint64_t count = splits_.size() / vertices_;
    if (count > std::numeric_limits<std::uint32_t>::max())
      archive_.fail("train_masks", fmt::format("{} splits are too many", count),
                    "keep fewer splits");
    parsed_.dataset.split_count = static_cast<std::uint32_t>(count);
    parsed_.dataset.splits = std::move(splits_);
    return true;
  }

  void read_original_ids() {
    const auto ids = archive_.find("original_ids");
    if (!ids) return;
    archive_.require_shape("original_ids", *ids, ids->is_vector(vertices_), vector_text(vertices_));
    parsed_.dataset.original_ids = npy_integers<std::uint64_t>(ids->array, NpyRange{});
  }

  void warn(const std::string& text) { parsed_.warnings.push_back(text); }

  const Archive& archive_;
  ParsedNpz parsed_;
  Buffer<Split> splits_;
  std::uint64_t vertices_ = 0;
};

}  // namespace

ParsedNpz parse_npz(std::span<const std::byte> bytes, const std::string& file) {
  const Archive archive(bytes, file);
  if (archive.has("edge_index")) return GraphArchive(archive).parse();
  if (archive.has("format")) return parse_scipy(archive);
  throw InputError(file, "archive", "it holds neither edge_index nor a SciPy matrix",
                   "write the edges as edge_index, or use scipy.sparse.save_npz");
}

}  // namespace plait
