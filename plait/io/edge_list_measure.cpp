#include "plait/io/edge_list_measure.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/io/vertex_count.h"

namespace plait::edge_lines {
namespace {

// Tells whether the edge of a line has a weight.
bool has_weight(const TextInput& input, const char* line, bool swapped) {
  Cursor cursor(input.text().substr(static_cast<std::size_t>(line - input.text().data())));
  Line ends;
  read_ends(input, cursor, {.swapped = swapped}, ends);
  skip_separator(cursor);
  return !cursor.at_line_end() && !cursor.skip(kNoData);
}

// Counts the edges and ids in the chunks from `begin` to `end`.
void count(const TextInput& input, Layout& layout, std::size_t begin, std::size_t end) {
  const auto first = layout.chunks.begin();
  const std::vector<std::string_view> chunks(first + static_cast<std::ptrdiff_t>(begin),
                                             first + static_cast<std::ptrdiff_t>(end));
  std::vector<std::uint64_t> largest(chunks.size());
  layout.edges.resize(layout.chunks.size());
  layout.small.resize(layout.chunks.size());
  for_each_chunk(chunks, "counting", [&](std::size_t i) {
    std::uint64_t edges = 0, small = 0, most = 0;
    for_each_line(input, layout, chunks[i], [&](const Line& line) {
      ++edges;
      small += (line.source >> 32 == 0) + (line.target >> 32 == 0);
      most = std::max({most, line.source, line.target});
    });
    layout.edges[begin + i] = edges;
    layout.small[begin + i] = small;
    largest[i] = most;
  });
  for (const std::uint64_t most : largest) layout.largest = std::max(layout.largest, most);
}

// Tells whether vertex 0 stands in a line behind the first chunk, which is the first line's.
bool names_vertex_0(const TextInput& input, const Layout& layout) {
  const std::vector<std::string_view> others(layout.chunks.begin() + 1, layout.chunks.end());
  std::atomic<bool> found{false};
  for_each_chunk(others, "counting", [&](std::size_t i) {
    bool here = false;
    for_each_line(input, layout, others[i],
                  [&](const Line& line) { here |= line.source == 0 || line.target == 0; });
    if (here) found = true;
  });
  return found;
}

class Measuring {
 public:
  Measuring(const TextInput& input, const EdgeListOptions& options)
      : input_(input),
        options_(options),
        head_(read_edge_list_head(input, options.first_line)),
        end_(input.text().data() + input.text().size()) {
    layout_.swapped = head_.columns.order == ColumnOrder::swapped;
    if (options.first_line == FirstLine::skip || options.first_line == FirstLine::edge)
      head_.counts.reset();
    if (options.vertices > 0) layout_.most = options.vertices - 1;
  }

  Layout run() {
    if (head_.first == end_)
      input_.fail(end_, "there is no edge, and a graph of 0 vertices cannot be used",
                  "give lines 'source target'");
    const bool follows = head_.counts && head_.second != end_;
    if (options_.first_line == FirstLine::counts && !follows)
      input_.fail(head_.first,
                  input_.quote_line(head_.first) + " is not two or three counts before edges",
                  "leave out " + setting("first-line"));
    if (!follows || !measure_apart()) measure_all();
    if (head_.names != nullptr) tell_columns();
    layout_.total = exclusive_sum(layout_.edges);
    layout_.total_small = exclusive_sum(layout_.small);
    compare_with_comment();
    layout_.notes = std::move(head_.notes);
    if (head_.undirected != nullptr) layout_.undirected = quoted(head_.undirected);
    return std::move(layout_);
  }

 private:
  // Returns "line 1 '5 4'".
  std::string quoted(const char* at) const {
    return input_.line_of(at) + " " + input_.quote_line(at);
  }
  void note(const char* at, const std::string& text) {
    head_.notes.push_back(quoted(at) + " " + text);
  }
  std::size_t place_of(const char* at) const {
    return static_cast<std::size_t>(at - input_.text().data());
  }

  void measure_all() {
    layout_.weighted = options_.weighted || has_weight(input_, head_.first, layout_.swapped);
    layout_.chunks = input_.chunks(place_of(head_.first));
    layout_.largest = 0;
    count(input_, layout_, 0, layout_.chunks.size());
  }

  // Measures the other lines first, and then the first line if it is an edge. Returns false if it
  // is an edge and measure_all() finds what is wrong.
  bool measure_apart() {
    // Ids are 1 .. n if they are counted so.
    const bool same = options_.vertices == head_.counts->vertices;
    if (same) layout_.most = options_.vertices;
    const bool first_weighted = has_weight(input_, head_.first, layout_.swapped);
    const bool weighted = has_weight(input_, head_.second, layout_.swapped);
    layout_.weighted = options_.weighted || weighted;
    layout_.chunks = input_.chunks(place_of(head_.second));
    layout_.chunks.insert(layout_.chunks.begin(),
                          input_.text().substr(place_of(head_.first),
                                               place_of(head_.second) - place_of(head_.first)));
    count(input_, layout_, 1, layout_.chunks.size());
    if (takes_counts()) {
      layout_.chunks.erase(layout_.chunks.begin());
      layout_.edges.erase(layout_.edges.begin());
      layout_.small.erase(layout_.small.begin());
      return true;
    }
    if (same) layout_.most = options_.vertices - 1;
    if (first_weighted != weighted && !options_.weighted) {
      if (first_weighted || sum(layout_.edges) > 1) fail_first_line();
      return false;  // of "1 2" and one line of three columns, either may be the wrong one
    }
    if (layout_.largest > layout_.most) return false;
    count(input_, layout_, 0, 1);
    return true;
  }

  // Decides whether the first line holds counts of the others.
  bool takes_counts() {
    const StatedCounts& counts = *head_.counts;
    const std::uint64_t edges = sum(layout_.edges), largest = layout_.largest;
    const bool told_others = options_.vertices != 0 && options_.vertices != counts.vertices;
    const bool below = counts.edges == edges && counts.vertices > largest;
    const bool from_one = counts.edges == edges && counts.vertices == largest && largest > 0 &&
                          !names_vertex_0(input_, layout_);
    if (options_.first_line == FirstLine::counts) {
      if (!below && !from_one)
        input_.fail(counts.at,
                    fmt::format("it states {} vertices and {} edges, but {} edges follow, with "
                                "ids up to {}",
                                counts.vertices, counts.edges, edges, largest),
                    "correct it, or give " + setting("first-line", "skip"));
    } else if (told_others || (!below && !from_one)) {
      warn_of_counts(counts, edges, largest);
      return false;
    }
    const std::string doubt = doubt_of_vertices(counts.vertices, edges, options_.vertices);
    if (!doubt.empty())
      input_.fail(counts.at, doubt, remedy_of_vertices(counts.vertices, options_.vertices));
    layout_.vertices = counts.vertices;
    layout_.first_id = from_one;
    if (options_.first_line == FirstLine::guess)
      note(counts.at,
           fmt::format("is read as the counts of {} vertices, {} to {}, and {} edges; "
                       "{} reads it as an edge",
                       counts.vertices, layout_.first_id, counts.vertices - 1 + layout_.first_id,
                       edges, setting("first-line", "edge")));
    return true;
  }

  // Warns if the first line could be counts, although something does not fit: no other edge has its
  // ids, or it counts the edges.
  void warn_of_counts(const StatedCounts& counts, std::uint64_t edges, std::uint64_t largest) {
    const bool beyond = counts.vertices >= largest && counts.edges > largest;
    if (counts.edges == edges || beyond)
      note(counts.at, "is read as an edge; if it holds counts, give " +
                          setting("first-line", {"counts", "skip"}));
  }

  [[noreturn]] void fail_first_line() const {
    input_.fail(head_.first,
                fmt::format("{} has not the columns of the edges after it, nor does it count them: "
                            "there are {}, with ids up to {}",
                            input_.quote_line(head_.first), sum(layout_.edges), layout_.largest),
                "correct it, or give " + setting("first-line", "skip"));
  }

  void tell_columns() {
    if (layout_.weighted && head_.columns.ends_alone)
      input_.fail(head_.names,
                  input_.quote_line(head_.names) + " names two columns, but lines have three",
                  "name all columns, or read them as source, target and weight with " +
                      setting("first-line", "skip"));
    note(head_.names,
         fmt::format("is read as the names of columns: the first is the {}, the second the {}{}",
                     layout_.swapped ? "target" : "source", layout_.swapped ? "source" : "target",
                     layout_.weighted ? ", the third the weight" : ""));
  }

  void compare_with_comment() {
    if (!head_.comment) return;
    const StatedCounts& said = *head_.comment;
    layout_.comment = quoted(said.at);
    layout_.comment_vertices = said.vertices;
    if (said.edges != layout_.total)
      note(said.at, fmt::format("says {} edges, but the file holds {}", said.edges, layout_.total));
  }

  static std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
    std::uint64_t all = 0;
    for (const std::uint64_t n : counts) all += n;
    return all;
  }

  const TextInput& input_;
  const EdgeListOptions& options_;
  EdgeListHead head_;
  const char* end_;
  Layout layout_;
};

}  // namespace

Layout measure(const TextInput& input, const EdgeListOptions& options) {
  return Measuring(input, options).run();
}

}  // namespace plait::edge_lines
