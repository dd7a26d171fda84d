// The first pass over chunks of the text counts edges and finds the largest id. Then there are two
// ways to make ids contiguous, chosen by what fits in twice the size of the file:
//
// - a bitmap of the ids in use, marked while the edges are filled, and counts of marks before each
//   word of it, by which the ids are then replaced in place;
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
#include <span>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/io/npy.h"
#include "plait/io/text.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 18;
constexpr std::uint64_t kMostIds = ~std::uint64_t{0};
constexpr std::string_view kNoData = "{}";  // how networkx ends the line of an edge without data

struct Layout {
  std::vector<std::string_view> chunks;
  bool weighted = false;
  std::uint64_t most = kMostIds;     // the largest id that is allowed
  std::vector<std::uint64_t> edges;  // per chunk; after the first pass: where each begins
  std::vector<std::uint64_t> small;  // ids below 2^32 per chunk, likewise
  std::uint64_t total = 0;           // edges
  std::uint64_t total_small = 0;     // ids below 2^32
  std::uint64_t largest = 0;         // id
};

struct Line {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  float weight = 1;
};

bool begins_comment(char c) { return c == '#' || c == '%'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::uint64_t as_it_is(std::uint64_t id) { return id; }

// Skips blanks, or one comma among blanks, between columns.
void skip_separator(Cursor& cursor) {
  cursor.skip_blanks();
  if (cursor.peek() == ',') cursor.advance();
  cursor.skip_blanks();
}

bool ends_without_data(Cursor& cursor) {
  skip_separator(cursor);
  return cursor.skip(kNoData) && cursor.end_line();
}

void read_id(const TextInput& input, Cursor& cursor, const char* what, std::uint64_t most,
             std::uint64_t& id) {
  const char* const at = cursor.at();
  if (!cursor.read(id) || id > most) [[unlikely]]
    input.fail_number(at, what, 0, most);
}

// Calls take(line) for every edge of a chunk, in order.
template <class Take>
void for_each_line(const TextInput& input, const Layout& layout, std::string_view chunk,
                   Take take) {
  for (Cursor cursor(chunk); cursor.next_line();) {
    if (begins_comment(cursor.peek())) {
      cursor.skip_line();
      continue;
    }
    const char* const begin = cursor.at();
    Line line;
    read_id(input, cursor, "source", layout.most, line.source);
    skip_separator(cursor);
    read_id(input, cursor, "target", layout.most, line.target);
    if (layout.weighted) {
      skip_separator(cursor);
      read_weight(input, cursor, line.weight);
    }
    if (!cursor.end_line() && (layout.weighted || !ends_without_data(cursor))) [[unlikely]]
      input.fail(begin,
                 fmt::format("{} has more than the {} columns of the first edge",
                             input.quote_line(begin), layout.weighted ? 3 : 2),
                 "give 'source target' or 'source target weight' on every line");
    take(line);
  }
}

// Skips to the first edge and looks at how many columns it has.
Layout find_edges(const TextInput& input) {
  Cursor cursor(input.text());
  while (cursor.next_line() && begins_comment(cursor.peek())) cursor.skip_line();
  if (is_letter(cursor.peek())) cursor.skip_line();
  Layout layout;
  layout.chunks = input.chunks(static_cast<std::size_t>(cursor.at() - input.text().data()));
  while (cursor.next_line() && begins_comment(cursor.peek())) cursor.skip_line();
  if (cursor.at_end())
    input.fail(cursor.at(), "there is no edge, and a graph of 0 vertices cannot be used",
               "give lines 'source target'");
  std::uint64_t id = 0;
  read_id(input, cursor, "source", kMostIds, id);
  skip_separator(cursor);
  read_id(input, cursor, "target", kMostIds, id);
  skip_separator(cursor);
  layout.weighted = !cursor.at_line_end() && !cursor.skip(kNoData);
  return layout;
}

// Makes the first pass.
Layout measure(const TextInput& input, const VertexIds& ids) {
  Layout layout = find_edges(input);
  layout.weighted |= ids.weighted;
  if (ids.vertices > 0) layout.most = ids.vertices - 1;
  std::vector<std::uint64_t> largest(layout.chunks.size());
  layout.edges.resize(layout.chunks.size());
  layout.small.resize(layout.chunks.size());
  for_each_chunk(layout.chunks, "counting", [&](std::size_t i) {
    std::uint64_t edges = 0, small = 0, most = 0;
    for_each_line(input, layout, layout.chunks[i], [&](const Line& line) {
      ++edges;
      small += (line.source >> 32 == 0) + (line.target >> 32 == 0);
      most = std::max({most, line.source, line.target});
    });
    layout.edges[i] = edges;
    layout.small[i] = small;
    largest[i] = most;
  });
  layout.total = exclusive_sum(layout.edges);
  layout.total_small = exclusive_sum(layout.small);
  layout.largest = *std::max_element(largest.begin(), largest.end());
  return layout;
}

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

ParsedEdgeList parse_edge_list(std::string_view text, const std::string& file) {
  const TextInput input(text, file);
  const Layout layout = measure(input, {});
  if (bitmap_fits(input, layout)) return number_by_bitmap(input, layout);
  Buffer<std::uint64_t> ids = distinct_ids(input, layout);
  if (ids.size() <= kMaxVertices32)
    return number_by_search<std::uint32_t>(input, layout, std::move(ids));
  return number_by_search<std::uint64_t>(input, layout, std::move(ids));
}

AnyEdgeList parse_edge_list(std::string_view text, const std::string& file, const VertexIds& ids) {
  const TextInput input(text, file);
  const Layout layout = measure(input, ids);
  const std::uint64_t vertices =
      ids.vertices > 0 ? ids.vertices : vertices_of_ids(layout.largest, layout.total, file);
  const auto filled = [&]<VertexId V>(EdgeList<V> list) -> AnyEdgeList {
    list.vertices = vertices;
    return list;
  };
  if (vertices <= kMaxVertices32) return filled(fill<std::uint32_t>(input, layout, as_it_is));
  return filled(fill<std::uint64_t>(input, layout, as_it_is));
}

void write_edge_list(const Dataset& dataset, AtomicFile& file) {
  file.write(fmt::format("# {} vertices, {} edges\n", dataset.vertices(), dataset.edges()));
  write_lines(dataset, file, {.weighted = is_weighted(dataset.graph)}, [&](std::uint64_t vertex) {
    return dataset.original_ids.empty() ? vertex : dataset.original_ids[vertex];
  });
}

void write_gap_text(const Dataset& dataset, AtomicFile& file) {
  require(!is_weighted(dataset.graph), "{}: .el holds no weights; use .wel or --no-weights",
          file.path());
  write_lines(dataset, file, {.separator = ' '}, as_it_is);
}

void write_gap_weighted_text(const Dataset& dataset, AtomicFile& file) {
  write_lines(dataset, file, {.separator = ' ', .weighted = true}, as_it_is);
}

}  // namespace plait
