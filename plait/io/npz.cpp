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
#include "plait/io/edge_ends.h"
#include "plait/io/gnnadvisor.h"
#include "plait/io/npy.h"
#include "plait/io/npz_archive.h"
#include "plait/io/scipy.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

// --- a SciPy matrix ---

// Weights that are all 1 are no weights.
template <VertexId V>
EdgeList<V> edges_of_matrix(EdgeList<V> list) {
  if (std::all_of(list.weight.begin(), list.weight.end(), [](float w) { return w == 1.0f; }))
    list.weight = {};
  return list;
}

ParsedDataset parse_scipy(const NpzArchive& archive, std::uint64_t told) {
  const MatrixShape shape = read_shape(archive, "shape");
  if (shape.rows != shape.columns)
    archive.fail("shape", fmt::format("{} x {} is not square", shape.rows, shape.columns),
                 "give an adjacency matrix, with one row and one column per vertex");
  ParsedDataset parsed;
  if (shape.rows <= kMaxVertices32)
    parsed.edges = edges_of_matrix(read_scipy_entries<std::uint32_t>(archive, shape, told));
  else
    parsed.edges = edges_of_matrix(read_scipy_entries<std::uint64_t>(archive, shape, told));
  return parsed;
}

// --- a graph archive ---

// A form of the masks of splits: the end of their keys, and the order of their axes.
struct MaskForm {
  const char* ending;
  bool splits_last;  // (examples, splits), where (examples) stands for all splits
};
constexpr MaskForm kMasks{"_masks", false}, kPygMasks{"_mask", true};

std::vector<std::string> with_endings(const std::vector<std::string>& parts,
                                      std::initializer_list<const char*> endings) {
  std::vector<std::string> keys;
  for (const char* ending : endings)
    for (const std::string& part : parts) keys.push_back(part + ending);
  return keys;
}

// The words for a part of a split.
std::vector<std::string> synonyms_of(const std::string& part) {
  return part == "val" ? std::vector<std::string>{"val", "valid"} : std::vector{part};
}

std::vector<std::string> mask_keys(const std::string& part, const MaskForm& form) {
  return with_endings(synonyms_of(part), {form.ending});
}

bool is_column(const NpzMember& member, std::uint64_t size) {
  return member.is_vector(size) ||
         (member.rank() == 2 && member.array.shape[0] == size && member.array.shape[1] == 1);
}

// Other names for the same array, by PyTorch Geometric, OGB, DGL and others. The first that is
// there is read.
const std::vector<std::string> kVertices{"num_nodes", "num_vertices"};
const std::vector<std::string> kLabels{"y", "labels", "label", "node_labels", "node_label"};
const std::vector<std::string> kGraphIds{"graph_id", "batch"};

class GraphArchive {
 public:
  GraphArchive(const NpzArchive& archive, std::uint64_t told) : archive_(archive), told_(told) {}

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
    std::string key;
    if (const auto x = archive_.find_first(kFeatureKeys, key)) {
      if (x->array.size() == 0) return warn(key + " has no elements and is left out");
      archive_.require_shape(key, *x, x->rank() == 2, "(vertices, width)");
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
    std::string key;
    if (!parsed_.dataset.features.empty()) return parsed_.dataset.features.rows;
    const auto enough = [&](std::uint64_t count) { return count > 0 && count >= needed; };
    const bool of_graphs = archive_.find_first(kGraphIds, key).has_value();
    for (const MaskForm& form : {kMasks, kPygMasks})
      for (const auto& [part, split] : kNpzSplits)
        if (const auto masks = archive_.find_first(mask_keys(part, form), key);
            masks && !of_graphs) {
          const std::uint64_t count = form.splits_last ? masks->rows() : masks->columns();
          if (enough(count)) return count;
        }
    const std::vector<std::vector<std::string>> others{
        kGraphIds, {"original_ids"}, kLabels, {"label_sets"}};
    for (const std::vector<std::string>& keys : others)
      if (const auto array = archive_.find_first(keys, key); array && enough(array->rows()))
        return array->rows();
    return 0;
  }

  // Returns the number of vertices for edges with ids below `needed`; 0: the edges tell it.
  std::uint64_t find_vertices(std::uint64_t needed) {
    std::string key;
    if (archive_.find_first(kVertices, key)) {
      stated_by_ = key;
      const std::uint64_t stated = read_count(archive_, key);
      if (stated == 0) archive_.fail(key, "the graph has no vertices", "give at least one vertex");
      return stated;
    }
    const std::uint64_t promised = promised_vertices(needed);
    return promised == 0 ? told_ : promised;
  }

  void read_edges() {
    if (archive_.has("edge_index")) {
      const NpzMember index = archive_.get("edge_index");
      const std::uint64_t needed = index.array.size() == 0 ? 0 : npy_largest_id(index.array) + 1;
      parsed_.edges = npy_edges(index.array, find_vertices(needed));
    } else {
      const EndKeys keys = ends_of(archive_).value();
      if (keys.doubtful)
        warn(fmt::format("{} is read as the sources of edges, and {} as their targets", keys.source,
                         keys.target));
      parsed_.edges = edges_of_ends(archive_, keys, find_vertices(count_named(archive_, keys)));
    }
    std::visit(
        [&](auto& edges) {
          vertices_ = edges.vertices;
          read_weights(edges.edges(), edges.weight);
          if (!stated_by_.empty())
            require_vertices(vertices_, edges.edges(), told_, archive_.file(),
                             "array " + stated_by_);
        },
        parsed_.edges);
    const Features& features = parsed_.dataset.features;
    if (!features.empty() && features.rows != vertices_)
      archive_.fail(
          stated_by_,
          fmt::format("it is {}, but the features have {} rows", vertices_, features.rows),
          "give one row per vertex");
  }

  // Arrays of other names than edge_weight may hold something else.
  void read_weights(std::uint64_t edges, Buffer<float>& weights) {
    std::string key;
    auto found = archive_.find_first(kWeightKeys, key);
    if (!found) found = archive_.find(key = "edge_attr");
    if (!found) return;
    if (key == kWeightKeys[0])
      archive_.require_shape(key, *found, is_column(*found, edges), vector_text(edges));
    else if (!is_column(*found, edges) || !found->array.type.is_number())
      return warn(fmt::format(
          "{} has shape {}, which is not one number for each of {} edges, and is left out", key,
          found->array.shape_text(), edges));
    if (key == "edge_attr") warn("edge_attr is read as the weights of the edges");
    const Array<float> values = npy_floats(found->array, found->owner);
    weights = Buffer<float>(values.size());
    std::copy(values.begin(), values.end(), weights.begin());
  }

  // One graph id per vertex makes a set of graphs, unless labels are of the vertices.
  void read_graph_ids() {
    std::string key;
    const auto ids = archive_.find_first(kGraphIds, key);
    if (!ids) return;
    archive_.require_shape(key, *ids, ids->is_vector(vertices_), vector_text(vertices_));
    Buffer<std::uint32_t> graph = npy_integers<std::uint32_t>(
        ids->array, NpyRange{0, std::min(vertices_, kMaxVertices32) - 1});
    const std::uint32_t graphs = *std::max_element(graph.begin(), graph.end()) + 1;
    std::string labels;
    const auto y = archive_.find_first(kLabels, labels);
    if (y && is_column(*y, vertices_) && graphs != vertices_ && y->array.type.is_integer())
      return warn(fmt::format("{} is left out: {} has a label for each vertex", key, labels));
    parsed_.dataset.graphs = graphs;
    parsed_.dataset.graph_ids = std::move(graph);
  }

  void read_labels() {
    if (const auto sets = archive_.find("label_sets")) return read_label_sets("label_sets", *sets);
    std::string key;
    const auto y = archive_.find_first(kLabels, key);
    if (!y) return;
    const Dataset& dataset = parsed_.dataset;
    const bool column = is_column(*y, examples_);
    if (y->rank() == 2 && !column) return read_label_sets(key, *y);
    if (!y->array.type.is_integer()) return warn(key + " does not hold integers and is left out");
    if (!column)
      return warn(fmt::format(
          "{} has shape {}, which is not a label for each of {} vertices{}, and is left out", key,
          y->array.shape_text(), vertices_,
          dataset.is_set_of_graphs() ? fmt::format(" or {} graphs", dataset.graphs) : ""));
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max() - 1;
    Buffer<std::int32_t> labels = npy_integers<std::int32_t>(y->array, NpyRange{-1, kLargest});
    const std::int32_t largest = *std::max_element(labels.begin(), labels.end());
    if (largest < 0) return;  // y tells the number of vertices alone
    parsed_.dataset.classes = largest + 1;
    parsed_.dataset.labels = std::move(labels);
  }

  void read_label_sets(const std::string& key, const NpzMember& y) {
    const char* const problem = parsed_.dataset.is_set_of_graphs() ? "in a set of graphs"
                                : y.rank() != 2              ? "that are not in two dimensions"
                                : !y.array.type.is_integer() ? "that are not integers"
                                : y.rows() != vertices_      ? "that are not one row per vertex"
                                                             : nullptr;
    if (problem)
      return warn(fmt::format("{} has several labels per vertex {} and is left out", key, problem));
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
      std::string key;
      const auto found = archive_.find_first(mask_keys(part, form), key);
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
      for (const std::string& key : mask_keys(part, kPygMasks))
        if (archive_.has(key)) {
          archive_.mention(key);
          warn(fmt::format("{} is passed over, because the archive has other splits", key));
        }
  }

  bool read_id_lists() {
    for (const auto& [part, split] : kNpzSplits) {
      std::string key;
      std::vector<std::string> keys = with_endings(synonyms_of(part), {"", "_idx", "_index"});
      keys.push_back(std::string("idx_") + part);
      const auto ids = archive_.find_first(keys, key);
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
  std::uint64_t told_;     // number of vertices; 0: none is told
  std::string stated_by_;  // the array that states the number of vertices
  ParsedDataset parsed_;
  Buffer<Split> splits_;
  std::uint64_t vertices_ = 0;
  std::uint64_t examples_ = 0;  // vertices, or graphs of a set
};

}  // namespace

ParsedDataset parse_npz(std::span<const std::byte> bytes, const std::string& file,
                        std::uint64_t told) {
  const NpzArchive archive(bytes, file);
  ParsedDataset parsed;
  if (archive.has("edge_index"))
    parsed = GraphArchive(archive, told).parse();
  else if (archive.has("format"))
    parsed = parse_scipy(archive, told);
  else if (archive.has("src_li"))
    parsed.edges = parse_gnnadvisor(archive, told);
  else if (ends_of(archive))
    parsed = GraphArchive(archive, told).parse();
  else if (archive.keys().empty())
    throw InputError(file, "archive", "it holds no array", "write the file again");
  else
    throw InputError(file, "archive",
                     fmt::format("it holds neither edge_index nor a SciPy matrix, but {}",
                                 listed(archive.keys())),
                     "write the edges as edge_index, or use scipy.sparse.save_npz");
  if (const std::string names = archive.unread(); !names.empty())
    parsed.warnings.push_back("arrays that are not read are left out: " + names);
  return parsed;
}

}  // namespace plait
