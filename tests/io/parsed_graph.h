// Results of readers of graph files, as plain lists; random graphs to write by hand; and texts that
// are damaged in every way.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/graph/edge_list.h"
#include "tests/io/damage.h"
#include "tests/support/error_of.h"

namespace plait {

using Entry = std::tuple<std::uint64_t, std::uint64_t, float>;  // row, neighbour, weight

struct PlainGraph {
  std::uint64_t vertices = 0;
  bool weighted = false;
  std::vector<Entry> entries;  // sorted

  bool operator==(const PlainGraph&) const = default;
};

inline PlainGraph sorted(PlainGraph graph) {
  std::sort(graph.entries.begin(), graph.entries.end());
  return graph;
}

inline PlainGraph plain(const AnyCsr& any) {
  PlainGraph result;
  std::visit(
      [&](const auto& graph) {
        result = {graph.vertices(), graph.weighted(), {}};
        for (std::uint64_t i = 0; i < graph.vertices(); ++i)
          for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
            result.entries.emplace_back(i, graph.neighbours[e], graph.weight(e));
      },
      any);
  return sorted(result);
}

inline PlainGraph plain(const AnyEdgeList& any) {
  PlainGraph result;
  std::visit(
      [&](const auto& list) {
        result = {list.vertices, !list.weight.empty(), {}};
        for (std::uint64_t e = 0; e < list.edges(); ++e)
          result.entries.emplace_back(list.target[e], list.source[e],
                                      result.weighted ? list.weight[e] : 1.0f);
      },
      any);
  return sorted(result);
}

// Loops and parallel edges come up; every tenth vertex has no edges. Weights are whole.
inline PlainGraph random_plain(std::uint64_t vertices, std::size_t entries, bool weighted) {
  std::mt19937 random(static_cast<unsigned>(entries));
  const auto vertex = [&] {
    const std::uint64_t v = random() % vertices;
    return v % 10 == 9 ? v - 1 : v;
  };
  PlainGraph graph{vertices, weighted, {}};
  for (std::size_t i = 0; i < entries; ++i)
    graph.entries.emplace_back(vertex(), vertex(),
                               weighted ? static_cast<float>(1 + random() % 100) : 1.0f);
  return sorted(graph);
}

// Calls act() with 1, 2 and 5 threads.
template <class Act>
void with_threads(Act act) {
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 5}) {
    omp_set_num_threads(count);
    act();
  }
  omp_set_num_threads(threads);
}

// Whichever part of the text is missing or flipped, read(text, name) returns or throws an Error.
template <class Read>
void expect_damage_is_harmless(const std::string& good, Read read) {
  const auto bytes = to_bytes(good);
  const auto as_text = [&](const Buffer<std::byte>& damaged) {
    read(std::string_view(reinterpret_cast<const char*>(damaged.data()), damaged.size()));
  };
  EXPECT_TRUE(reads(bytes, as_text));
  for (std::size_t size = 0; size < good.size(); ++size)
    reads(first_bytes(bytes.span(), size), as_text);
  EXPECT_GT(count_refused_flips(bytes.span(), as_text), good.size());
}

// Each text must be refused with a line that holds the text beside it.
template <class Read>
void expect_errors(const std::vector<std::pair<std::string, std::string>>& cases, Read read) {
  for (const auto& [text, expected] : cases) {
    const std::string error = error_of([&, content = text] { read(content); });
    EXPECT_NE(error.find(expected), std::string::npos) << "expected: " << expected << "\n" << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace plait
