// Reading .npz archives.
#include "plait/io/npz.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/made_features.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/gnnadvisor.h"
#include "plait/io/npy.h"
#include "plait/io/npz_archive.h"

namespace plait {
namespace {

// --- a SciPy matrix ---

// Weights that are all 1 are no weights.
template <VertexId V>
EdgeList<V> edges_of_matrix(Csr<V> csr) {
  if (std::all_of(csr.weights.begin(), csr.weights.end(), [](float w) { return w == 1.0f; }))
    csr.weights = {};
  return edges_of(csr);
}

ParsedDataset parse_scipy(const NpzArchive& archive) {
  require_scipy_csr(archive);
  const MatrixShape shape = read_shape(archive, "shape");
  if (shape.rows != shape.columns)
    archive.fail("shape", fmt::format("{} x {} is not square", shape.rows, shape.columns),
                 "give an adjacency matrix, with one row and one column per vertex");
  const CsrKeys keys{"indptr", "indices", "data"};
  ParsedDataset parsed;
  if (shape.rows <= kMaxVertices32)
    parsed.edges = edges_of_matrix(read_csr<std::uint32_t>(archive, keys, shape));
  else
    parsed.edges = edges_of_matrix(read_csr<std::uint64_t>(archive, keys, shape));
  return parsed;
}

// --- a graph archive ---

// A form of the masks of splits: the end of their keys, and the order of their axes.
struct MaskForm {
  const char* ending;
  bool splits_last;  // (examples, splits), where (examples) stands for all splits
};
constexpr MaskForm kMasks{"_masks", false}, kPygMasks{"_mask", true};

std::string key_of(const char* part, const MaskForm& form) {
  return std::string(part) + form.ending;
}

class GraphArchive {
 public:
  explicit GraphArchive(const NpzArchive& archive) : archive_(archive) {}

  ParsedDataset parse() {
    read_features();
    read_edges();
    if (vertices_ == 0)
      archive_.fail("edge_index", "the graph has no vertices", "give at least one edge");
    read_graph_ids();
    examples_ = parsed_.dataset.is_set_of_graphs() ? parsed_.dataset.graphs : vertices_;
    read_labels();
    if (read_masks(kMasks) || read_id_lists())
      pass_over_pyg_masks();
    else
      read_masks(kPygMasks);
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
      const MatrixShape shape = read_shape(archive_, "x_shape");
      if (shape.columns == 0) return warn("x has no columns and is left out");
      if (shape.columns > kMaxVertices32)
        archive_.fail("x_shape",
                      fmt::format("{} columns are outside 1..{}", shape.columns, kMaxVertices32),
                      "drop columns that are not used");
      features.rows = shape.rows;
      features.width = shape.columns;
      features.sparse =
          read_csr<std::uint32_t>(archive_, {"x_indptr", "x_indices", "x_data"}, shape);
    } else if (const auto tag = archive_.find("tag"); tag && tag->rows() > 0) {
      archive_.require_shape("tag", *tag, tag->rank() == 1, "(vertices,)");
      features = one_hot(npy_integers<std::uint32_t>(tag->array, NpyRange{0, kMaxVertices32 - 1}));
    }
  }

  // Returns how many vertices the arrays beside the edges promise, 0 if none is long enough.
  std::uint64_t promised_vertices(std::uint64_t needed) const {
    if (!parsed_.dataset.features.empty()) return parsed_.dataset.features.rows;
    const auto enough = [&](std::uint64_t count) { return count > 0 && count >= needed; };
    const bool of_graphs = archive_.has("graph_id");
    for (const MaskForm& form : {kMasks, kPygMasks})
      for (const auto& [part, split] : kNpzSplits)
        if (const auto masks = archive_.find(key_of(part, form)); masks && !of_graphs) {
          const std::uint64_t count = form.splits_last ? masks->rows() : masks->columns();
          if (enough(count)) return count;
        }
    for (const char* key : {"graph_id", "original_ids", "y"})
      if (const auto array = archive_.find(key); array && enough(array->rows()))
        return array->rows();
    return 0;
  }

  void read_edges() {
    {
      const NpzMember index = archive_.get("edge_index");
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

  // One graph id per vertex makes a set of graphs, unless labels are of the vertices.
  void read_graph_ids() {
    const auto ids = archive_.find("graph_id");
    if (!ids) return;
    archive_.require_shape("graph_id", *ids, ids->is_vector(vertices_), vector_text(vertices_));
    Buffer<std::uint32_t> graph = npy_integers<std::uint32_t>(
        ids->array, NpyRange{0, std::min(vertices_, kMaxVertices32) - 1});
    const std::uint32_t graphs = *std::max_element(graph.begin(), graph.end()) + 1;
    const auto y = archive_.find("y");
    if (y && y->is_vector(vertices_) && graphs != vertices_ && y->array.type.is_integer())
      return warn("graph_id is left out: y has a label for each vertex");
    parsed_.dataset.graphs = graphs;
    parsed_.dataset.graph_ids = std::move(graph);
  }

  void read_labels() {
    const auto y = archive_.find("y");
    if (!y) return;
    const Dataset& dataset = parsed_.dataset;
    if (y->rank() == 2) return read_label_sets(*y);
    if (!y->array.type.is_integer()) return warn("y does not hold integers and is left out");
    if (!y->is_vector(examples_))
      return warn(fmt::format(
          "y has shape {}, which is not a label for each of {} vertices{}, and is left out",
          y->array.shape_text(), vertices_,
          dataset.is_set_of_graphs() ? fmt::format(" or {} graphs", dataset.graphs) : ""));
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max() - 1;
    Buffer<std::int32_t> labels = npy_integers<std::int32_t>(y->array, NpyRange{-1, kLargest});
    const std::int32_t largest = *std::max_element(labels.begin(), labels.end());
    if (largest < 0) return;  // y tells the number of vertices alone
    parsed_.dataset.classes = largest + 1;
    parsed_.dataset.labels = std::move(labels);
  }

  void read_label_sets(const NpzMember& y) {
    const char* const problem = parsed_.dataset.is_set_of_graphs() ? "in a set of graphs"
                                : !y.array.type.is_integer()       ? "that are not integers"
                                : y.rows() != vertices_ ? "that are not one row per vertex"
                                                        : nullptr;
    if (problem)
      return warn(fmt::format("y has several labels per vertex {} and is left out", problem));
    const std::uint64_t classes = y.columns();
    const auto stored = npy_integers<std::uint8_t>(y.array, NpyRange{0, 1});
    Buffer<std::uint8_t> sets(stored.size());
    for (std::uint64_t i = 0; i < stored.size(); ++i)
      sets[y.array.fortran_order ? i % vertices_ * classes + i / vertices_ : i] = stored[i];
    parsed_.dataset.classes = static_cast<std::int32_t>(classes);
    parsed_.dataset.label_sets = std::move(sets);
  }

  // The masks of one part of the splits.
  struct Masks {
    Split part;
    std::string key;
    NpzMember member;
    std::uint64_t splits;
  };

  std::vector<Masks> masks_of(const MaskForm& form) const {
    std::vector<Masks> all;
    for (const auto& [part, split] : kNpzSplits) {
      const std::string key = key_of(part, form);
      const auto found = archive_.find(key);
      if (!found) continue;
      const std::uint64_t examples = form.splits_last ? found->rows() : found->columns();
      archive_.require_shape(key, *found,
                             (found->rank() == 1 || found->rank() == 2) && examples == examples_,
                             form.splits_last ? fmt::format("({}, splits)", examples_)
                                              : fmt::format("(splits, {})", examples_));
      all.push_back({split, key, *found, found->array.size() / examples_});
    }
    return all;
  }

  bool read_masks(const MaskForm& form) {
    const std::vector<Masks> all = masks_of(form);
    if (all.empty()) return false;
    const std::uint64_t most = std::ranges::max(all, {}, &Masks::splits).splits;
    splits_ = Buffer<Split>(most * examples_, Split::none);
    for (const Masks& masks : all) {
      const bool of_all = form.splits_last && masks.splits == 1;  // one mask for all splits
      archive_.require_shape(masks.key, masks.member, masks.splits == most || of_all,
                             form.splits_last ? fmt::format("({}, {})", examples_, most)
                                              : fmt::format("({}, {})", most, examples_));
      const auto chosen = npy_integers<std::uint8_t>(masks.member.array, NpyRange{0, 1});
      // The splits of an example lie together in one of the two orders of the array.
      const bool turned = masks.member.array.fortran_order != form.splits_last;
      for (std::uint64_t i = 0; i < chosen.size(); ++i) {
        if (!chosen[i]) continue;
        const std::uint64_t at = turned ? i % masks.splits * examples_ + i / masks.splits : i;
        for (std::uint64_t s = 0; s < (of_all ? most : 1); ++s)
          mark(s * examples_ + at, masks.part, masks.key);
      }
    }
    return store_splits();
  }

  void pass_over_pyg_masks() {
    for (const auto& [part, split] : kNpzSplits)
      if (const std::string key = key_of(part, kPygMasks); archive_.has(key))
        warn(fmt::format("{} is passed over, because the archive has other splits", key));
  }

  bool read_id_lists() {
    for (const auto& [key, split] : kNpzSplits) {
      const auto ids = archive_.find(key);
      if (!ids) continue;
      archive_.require_shape(key, *ids, ids->rank() == 1, "(number in it,)");
      if (splits_.empty()) splits_ = Buffer<Split>(examples_, Split::none);
      const NpyRange range{0, examples_ - 1};
      for (const std::uint64_t id : npy_integers<std::uint64_t>(ids->array, range))
        mark(id, split, key);
    }
    return store_splits();
  }

  // Entry i of the splits belongs to one part at most.
  void mark(std::uint64_t i, Split part, const std::string& key) {
    if (splits_[i] != Split::none && splits_[i] != part)
      archive_.fail(
          key,
          fmt::format("{} {} is in another part of the split too",
                      parsed_.dataset.is_set_of_graphs() ? "graph" : "vertex", i % examples_),
          "put each in one of train, val and test");
    splits_[i] = part;
  }

  bool store_splits() {
    if (splits_.empty()) return false;
    const std::uint64_t count = splits_.size() / examples_;
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

  const NpzArchive& archive_;
  ParsedDataset parsed_;
  Buffer<Split> splits_;
  std::uint64_t vertices_ = 0;
  std::uint64_t examples_ = 0;  // vertices, or graphs of a set
};

}  // namespace

ParsedDataset parse_npz(std::span<const std::byte> bytes, const std::string& file) {
  const NpzArchive archive(bytes, file);
  if (archive.has("edge_index")) return GraphArchive(archive).parse();
  if (archive.has("format")) return parse_scipy(archive);
  if (archive.has("src_li")) return {parse_gnnadvisor(archive), {}, {}};
  throw InputError(file, "archive", "it holds neither edge_index nor a SciPy matrix",
                   "write the edges as edge_index, or use scipy.sparse.save_npz");
}

}  // namespace plait
