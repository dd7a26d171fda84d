// The first pass over chunks of the text counts edges and finds the largest id. Then there are two
// ways to make ids contiguous, chosen by what fits in twice the size of the file:
//
// - a bitmap of the ids in use, marked while the edges are filled, and counts of marks before each
//   word of it, with which the ids are then replaced in place;
// - where ids are too large for that: all ids sorted, repeats dropped, and the edges filled by
//   searching in the distinct ids. Ids below 2^32 and larger ones are kept apart, because the
//   former are short in the file (as little as 2 bytes each) and may take 4 bytes only.
//
// The memory is enough: a line of an edge has at least 4 bytes and takes 8 (6 and 12 with weight).
// A distinct id takes 8 more as an original id, which are paid for by its digits after the first
// from 5 digits on, and by the 1 MiB below.
#include "plait/io/edge_list_file.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/setting.h"
#include "plait/io/edge_list_measure.h"
#include "plait/io/npy.h"
#include "plait/io/text.h"

namespace plait {
namespace {

using edge_lines::Layout;
using edge_lines::Line;

constexpr std::size_t kGrain = std::size_t{1} << 18;

std::uint64_t as_it_is(std::uint64_t id) { return id; }

// Fills the edges with number(id) for each id of the text.
template <VertexId V, class Number>
EdgeList<V> fill(const TextInput& input, const Layout& layout, Number number) {
  EdgeList<V> list{0, Buffer<V>(layout.total), Buffer<V>(layout.total),
                   Buffer<float>(layout.weighted ? layout.total : 0)};
  for_each_chunk(layout.chunks, "reading", [&](std::size_t i) {
    std::uint64_t edge = layout.edges[i];
    for_each_line(input, layout, layout.chunks[i], [&](const Line& line) {
      list.source[edge] = static_cast<V>(number(line.source));
      list.target[edge] = static_cast<V>(number(line.target));
      if (layout.weighted) list.weight[edge] = line.weight;
      ++edge;
    });
  });
  return list;
}

// A set of ids below a bound, and the number of each among them.
class IdBitmap {
 public:
  explicit IdBitmap(std::uint64_t bound) : words_(bound / 64 + 1, 0), before_(words_.size()) {}
  static std::uint64_t bytes(std::uint64_t bound) {
    return (bound / 64 + 1) * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
  }

  // Any thread may call it. Most ids come many times, so that looking first saves most of the
  // writes to shared cache lines.
  void insert(std::uint64_t id) {
    const std::atomic_ref<std::uint64_t> word(words_[id / 64]);
    const std::uint64_t bit = std::uint64_t{1} << id % 64;
    if (!(word.load(std::memory_order_relaxed) & bit))
      word.fetch_or(bit, std::memory_order_relaxed);
  }
  // Counts the ids; after it, number() may be called.
  std::uint64_t finish() {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      before_[i] = static_cast<std::uint32_t>(count);
      count += static_cast<std::uint64_t>(std::popcount(words_[i]));
    }
    return count;
  }
  std::uint32_t number(std::uint64_t id) const {
    const std::uint64_t lower = words_[id / 64] & ((std::uint64_t{1} << id % 64) - 1);
    return before_[id / 64] + static_cast<std::uint32_t>(std::popcount(lower));
  }
  Buffer<std::uint64_t> ids(std::uint64_t count) const {
    Buffer<std::uint64_t> all(count);
    std::size_t i = 0;
    for (std::size_t word = 0; word < words_.size(); ++word)
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1)
        all[i++] = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
    return all;
  }

 private:
  Buffer<std::uint64_t> words_;
  Buffer<std::uint32_t> before_;  // ids in the words before
};

bool bitmap_fits(const TextInput& input, const Layout& layout) {
  if (layout.largest >= kMaxVertices32) return false;
  const std::uint64_t ids = std::min(layout.largest + 1, 2 * layout.total);
  const std::uint64_t an_edge = 8 + (layout.weighted ? 4 : 0);
  return an_edge * layout.total + 8 * ids + IdBitmap::bytes(layout.largest + 1) <=
         input.memory_limit();
}

ParsedEdgeList number_by_bitmap(const TextInput& input, const Layout& layout) {
  IdBitmap used(layout.largest + 1);
  auto list = fill<std::uint32_t>(input, layout, [&](std::uint64_t id) {
    used.insert(id);
    return id;
  });
  list.vertices = used.finish();
  if (list.vertices == layout.largest + 1) return {std::move(list), {}};
  for (Buffer<std::uint32_t>* ids : {&list.source, &list.target})
    parallel_blocks(ids->size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t e = begin; e < end; ++e) (*ids)[e] = used.number((*ids)[e]);
    });
  Buffer<std::uint64_t> original = used.ids(list.vertices);
  return {std::move(list), std::move(original)};
}

constexpr std::ptrdiff_t kSerialSort = 1 << 14;

// Quicksort in place; the parts are tasks of the threads. If it splits badly (`splits` is the depth
// that is left), std::sort takes over, which no input makes quadratic.
template <class T>
void sort_as_task(T* begin, T* end, int splits = 64) {
  if (end - begin <= kSerialSort || splits == 0) {
    std::sort(begin, end);
    return;
  }
  const T pivot = std::max(std::min(begin[0], end[-1]),
                           std::min(std::max(begin[0], end[-1]), begin[(end - begin) / 2]));
  T* const below = std::partition(begin, end, [=](T x) { return x < pivot; });
  T* const above = std::partition(below, end, [=](T x) { return x == pivot; });
#pragma omp task
  sort_as_task(begin, below, splits - 1);
  sort_as_task(above, end, splits - 1);
}

// Sorts and drops repeats, with all threads and without other memory.
template <class T>
void sort_distinct(Buffer<T>& values) {
#pragma omp parallel if (values.end() - values.begin() > kSerialSort)
#pragma omp single
  sort_as_task(values.begin(), values.end());
  values.truncate(
      static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin()));
}

// The distinct ids of the text, ascending.
Buffer<std::uint64_t> distinct_ids(const TextInput& input, const Layout& layout) {
  Buffer<std::uint32_t> small(layout.total_small);
  Buffer<std::uint64_t> large(2 * layout.total - layout.total_small);
  for_each_chunk(layout.chunks, "collecting ids", [&](std::size_t i) {
    std::uint64_t next_small = layout.small[i];
    std::uint64_t next_large = 2 * layout.edges[i] - next_small;
    const auto add = [&](std::uint64_t id) {
      if (id >> 32 == 0)
        small[next_small++] = static_cast<std::uint32_t>(id);
      else
        large[next_large++] = id;
    };
    for_each_line(input, layout, layout.chunks[i], [&](const Line& line) {
      add(line.source);
      add(line.target);
    });
  });
  sort_distinct(small);
  sort_distinct(large);
  Buffer<std::uint64_t> all(small.size() + large.size());
  std::copy(large.begin(), large.end(), std::copy(small.begin(), small.end(), all.begin()));
  return all;
}

// The number of an id among ascending ids: found by bisection among ids with the same upper bits,
// about 16 where ids are spread evenly.
class IdIndex {
 public:
  explicit IdIndex(std::span<const std::uint64_t> ids)
      : ids_(ids),
        shift_(std::max(0, bits_of(ids.back()) - bits_of(ids.size() / 16 | 1))),
        begins_((ids.back() >> shift_) + 2) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < ids.size(); ++i)
      while (next <= ids[i] >> shift_) begins_[next++] = i;
    begins_[next] = ids.size();
  }
  std::uint64_t number(std::uint64_t id) const {
    const std::uint64_t* const begin = ids_.data() + begins_[id >> shift_];
    const std::uint64_t* const end = ids_.data() + begins_[(id >> shift_) + 1];
    return static_cast<std::uint64_t>(std::lower_bound(begin, end, id) - ids_.data());
  }

 private:
  static int bits_of(std::uint64_t x) { return static_cast<int>(std::bit_width(x)); }
  std::span<const std::uint64_t> ids_;
  int shift_;
  Buffer<std::uint64_t> begins_;  // of the ids with given upper bits, and the end
};

template <VertexId V>
ParsedEdgeList number_by_search(const TextInput& input, const Layout& layout,
                                Buffer<std::uint64_t> ids) {
  const IdIndex index(ids.span());
  auto list = fill<V>(input, layout, [&](std::uint64_t id) { return index.number(id); });
  list.vertices = ids.size();
  if (ids.size() - 1 == layout.largest) return {std::move(list), {}};
  return {std::move(list), std::move(ids)};
}

// Ids are the vertices, or one more than they.
ParsedEdgeList as_vertices(const TextInput& input, const Layout& layout, std::uint64_t vertices) {
  const std::uint64_t first = layout.first_id;
  const auto filled = [&]<VertexId V>(EdgeList<V> list) -> ParsedEdgeList {
    list.vertices = vertices;
    Buffer<std::uint64_t> original(first > 0 ? vertices : 0);
    std::iota(original.begin(), original.end(), first);
    return {std::move(list), std::move(original)};
  };
  const auto number = [=](std::uint64_t id) { return id - first; };
  if (vertices <= kMaxVertices32) return filled(fill<std::uint32_t>(input, layout, number));
  return filled(fill<std::uint64_t>(input, layout, number));
}

ParsedEdgeList numbered(const TextInput& input, const Layout& layout,
                        const EdgeListOptions& options) {
  if (layout.vertices > 0) return as_vertices(input, layout, layout.vertices);
  if (options.vertices > 0) return as_vertices(input, layout, options.vertices);
  if (options.ids_are_vertices)
    return as_vertices(input, layout, vertices_of_ids(layout.largest, layout.total, input.file()));
  if (bitmap_fits(input, layout)) return number_by_bitmap(input, layout);
  Buffer<std::uint64_t> ids = distinct_ids(input, layout);
  if (ids.size() <= kMaxVertices32)
    return number_by_search<std::uint32_t>(input, layout, std::move(ids));
  return number_by_search<std::uint64_t>(input, layout, std::move(ids));
}

// A comment may count vertices that no edge names.
void note_vertices_without_edges(Layout& layout, const AnyEdgeList& edges) {
  const std::uint64_t named =
      std::visit([](const auto& list) { return std::uint64_t{list.vertices}; }, edges);
  const std::uint64_t said = layout.comment_vertices;
  if (said <= named) return;
  layout.notes.push_back(fmt::format(
      "{} says {} vertices, but the edges name {}{}", layout.comment, said, named,
      layout.largest < said ? "; " + setting("vertices", fmt::to_string(said)) + " adds the others"
                            : ""));
}

struct LineStyle {
  char separator = '\t';
  bool weighted = false;  // also where all weights are 1
};

template <class Name>
void write_lines(const Dataset& dataset, AtomicFile& file, LineStyle style, Name name) {
  std::visit(
      [&](const auto& graph) {
        write_edge_lines(graph, file, [&](std::string& text, std::uint64_t row, EdgeOffset e) {
          append_number(text, name(graph.neighbours[e]));
          append_number(text += style.separator, name(row));
          if (style.weighted) append_number(text += style.separator, graph.weight(e));
          text += '\n';
        });
      },
      dataset.graph);
}

}  // namespace

ParsedEdgeList parse_edge_list(std::string_view text, const std::string& file,
                               const EdgeListOptions& options) {
  const TextInput input(text, file);
  Layout layout = edge_lines::measure(input, options);
  ParsedEdgeList parsed = numbered(input, layout, options);
  if (options.vertices == 0) note_vertices_without_edges(layout, parsed.edges);
  parsed.undirected = std::move(layout.undirected);
  parsed.notes = std::move(layout.notes);
  return parsed;
}

void write_edge_list(const Dataset& dataset, AtomicFile& file) {
  file.write(fmt::format("# {} vertices, {} edges\n", dataset.vertices(), dataset.edges()));
  write_lines(dataset, file, {.weighted = is_weighted(dataset.graph)}, [&](std::uint64_t vertex) {
    return dataset.original_ids.empty() ? vertex : dataset.original_ids[vertex];
  });
}

void write_gap_text(const Dataset& dataset, AtomicFile& file) {
  require(!is_weighted(dataset.graph), "{}: .el holds no weights; use .wel or {}", file.path(),
          setting("no-weights"));
  write_lines(dataset, file, {.separator = ' '}, as_it_is);
}

void write_gap_weighted_text(const Dataset& dataset, AtomicFile& file) {
  write_lines(dataset, file, {.separator = ' ', .weighted = true}, as_it_is);
}

}  // namespace plait
