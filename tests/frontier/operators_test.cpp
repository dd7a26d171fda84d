// The operators of analytics apps on CPU ranks, against plain loops over the whole graph.
#include "plait/frontier/cpu/operators.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/frontier/lists.h"
#include "plait/frontier/simple_edges.h"
#include "plait/world/gather.h"
#include "tests/support/drawings.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// The other end of an edge, by its number.
struct End {
  std::uint64_t number;
  float weight;
  auto operator<=>(const End&) const = default;
};
using Ends = std::vector<std::vector<End>>;  // of each vertex, by its number; ascending

// The edges of a graph in each direction: GraphView's in, out and all.
struct PlainEdges {
  Ends in, out, all;

  explicit PlainEdges(const Dataset& dataset)
      : in(dataset.vertices()), out(dataset.vertices()), all(dataset.vertices()) {
    std::visit(
        [&](const auto& graph) {
          for (std::uint64_t v = 0; v < graph.vertices(); ++v)
            for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
              const std::uint64_t u = dataset.number(graph.neighbours[e]);
              in[dataset.number(v)].push_back({u, graph.weight(e)});
              out[u].push_back({dataset.number(v), graph.weight(e)});
            }
        },
        dataset.graph);
    for (std::uint64_t v = 0; v < all.size(); ++v) {
      std::ranges::sort(in[v]), std::ranges::sort(out[v]);
      all[v] = in[v];
      if (!dataset.symmetric) all[v].insert(all[v].end(), out[v].begin(), out[v].end());
    }
  }
};

// A number that depends on a vertex and a seed.
std::uint64_t drawn(std::uint64_t number, std::uint64_t seed) {
  return (number * 0x9e3779b97f4a7c15 + seed * 0xd1342543de82ef95) >> 40;
}

// The operators on one graph that is placed on ranks, and the same graph in plain lists.
class Checked {
 public:
  Checked(World& world, const Drawing& drawing, PartitionScheme scheme)
      : world_(world),
        dataset_(drawing.dataset()),
        partition_(make_partition(scheme, dataset_, world.size())),
        graph_(world, dataset_, partition_, false),
        on_(graph_),
        plain_(dataset_),
        where_(fmt::format("{}, partition {}, rank {} of {}", drawing.name, to_string(scheme),
                           world.rank(), world.size())) {}

  void check_all() {
    check_edges();
    check_values();
    check_pull<std::uint32_t>();
    check_pull<std::uint64_t>();
    check_pull<float>();
    check_pull<double>();
    const GraphView& view = on_.view();
    for (const auto& [edges, ends] :
         {std::pair(view.in, &plain_.in), std::pair(view.out, &plain_.out),
          std::pair(view.all, &plain_.all)}) {
      check_frontier(edges, *ends);
      check_meet(edges, *ends);
    }
    check_advance(view.out, plain_.out);
    check_advance(view.all, plain_.all);
    check_counts();
    check_bits();
    check_push();
    check_lend();
    check_intersect();
  }

 private:
  void require_that(bool condition, const std::string& text) const {
    expect(condition, where_ + ": " + text);
  }
  std::uint64_t number(std::uint64_t slot) const { return on_.view().number(slot); }

  // Collective. Returns the values of all vertices, by their numbers.
  std::vector<std::uint64_t> of_all(const std::vector<std::uint64_t>& own) const {
    std::vector<std::uint64_t> all(graph_.vertices());
    const auto parts = gather_vectors(world_, own);
    for (int rank = 0; rank < world_.size(); ++rank)
      for (std::uint64_t row = 0; row < partition_.size(rank); ++row)
        all[partition_.number(rank, row)] = parts[static_cast<std::size_t>(rank)][row];
    return all;
  }

  void check_edges() const {
    const GraphView& view = on_.view();
    require_that(view.own == partition_.size(world_.rank()), "own rows");
    require_that(graph_.edges() == dataset_.edges(), "edges");
    for (std::uint64_t row = 0; row < view.own; ++row) {
      require_that(number(row) == partition_.number(world_.rank(), row), "numbers");
      require_that(graph_.row_of(number(row)) == row, "rows of vertices");
      check_row(view.in, plain_.in, row, "in");
      check_row(view.out, plain_.out, row, "out");
      check_row(view.all, plain_.all, row, "all");
    }
    for (const std::uint64_t none : {graph_.vertices(), ~std::uint64_t{0}}) {
      try {
        static_cast<void>(graph_.row_of(none));
      } catch (const UsageError&) {
        continue;
      }
      require_that(false, "there is a row of a vertex that does not exist");
    }
  }
  void check_row(const SlotEdges& edges, const Ends& ends, std::uint64_t row,
                 const char* name) const {
    std::vector<End> found;
    for (EdgeOffset e = edges.begin[row]; e < edges.end[row]; ++e)
      found.push_back({number(edges.slots[e]), edges.weight(e)});
    const std::vector<End>& expected = ends[number(row)];
    require_that(found.size() == expected.size() && edges.degree(row) == found.size(),
                 fmt::format("degree of {} in {}", number(row), name));
    for (std::size_t k = 0; k < found.size(); ++k)  // parallel edges are in any order
      require_that(found[k].number == expected[k].number,
                   fmt::format("edge {} of vertex {} in {}", k, number(row), name));
    std::ranges::sort(found);
    std::vector<End> sorted = expected;
    std::ranges::sort(sorted);
    require_that(found == sorted, fmt::format("weights of {} in {}", number(row), name));
  }

  void check_values() const {
    const std::uint64_t own = on_.view().own, slots = on_.view().slots;
    auto values = on_.slots<std::uint32_t>(7);
    require_that(values.size() == slots, "one value per slot");
    on_.for_rows(slots, [&](std::uint64_t s) { values[s] += static_cast<std::uint32_t>(s); });
    const std::vector<std::uint32_t> some = on_.first(values, own);
    require_that(some.size() == own, "the first values");
    for (std::uint64_t s = 0; s < own; ++s) require_that(some[s] == 7 + s, "for_rows");
    const auto value = [&](std::uint64_t s) { return std::uint64_t{values[s]}; };
    require_that(on_.sum(slots, value) == 7 * slots + (slots == 0 ? 0 : slots * (slots - 1) / 2),
                 "sum");
    require_that(on_.greatest(slots, value) == (slots == 0 ? 0 : slots + 6), "greatest");
    require_that(on_.sum(0, value) == 0 && on_.greatest(0, value) == 0, "sum of nothing");
    on_.fill(values, 3u);
    if (slots > 0) on_.set(values, slots - 1, 9u);
    require_that(on_.sum(slots, value) == 3 * slots + (slots > 0 ? 6 : 0), "fill and set");
    require_that(slots == 0 || on_.get(values, slots - 1) == 9, "get");
    const std::vector<double> given{1.5, -2, 0};
    const auto copy = on_.array(std::span(given));
    require_that(on_.first(copy, copy.size()) == given, "a copy of an array");
    const auto array = on_.array<std::uint64_t>(10000, 5);
    require_that(array.size() == 10000 && on_.get(array, 9999) == 5, "an array");
  }

  template <class T>
  void check_pull() const {
    const std::uint64_t own = on_.view().own, slots = on_.view().slots;
    auto values = on_.slots<T>(T{});
    for (std::uint64_t turn = 1; turn < 3; ++turn) {
      const auto value = [&](std::uint64_t s) { return static_cast<T>(drawn(number(s), turn)); };
      on_.for_rows(own, [&](std::uint64_t row) { values[row] = value(row); });
      on_.pull(values);
      for (std::uint64_t s = 0; s < slots; ++s)
        require_that(values[s] == value(s), fmt::format("pull of {} bytes", sizeof(T)));
    }
  }

  // A vertex in the frontier of most tests.
  static bool is_in(std::uint64_t number, std::uint64_t seed) {
    return drawn(number, seed) % 3 == 0;
  }

  // Expects the totals of a frontier, and calls for each of its edges, of these vertices alone.
  void expect_frontier(const CpuOperators::Frontier& frontier, const SlotEdges& edges,
                       const Ends& ends, const std::vector<bool>& expected,
                       const std::string& what) const {
    std::uint64_t rows = 0, count = 0;
    for (std::uint64_t v = 0; v < expected.size(); ++v)
      if (expected[v]) ++rows, count += ends[v].size();
    const FrontierTotals totals = frontier.totals();
    require_that(totals.rows == rows && totals.edges == count,
                 fmt::format("{}: {} rows and {} edges in place of {} and {}", what, totals.rows,
                             totals.edges, rows, count));
    const std::uint64_t own = on_.view().own;
    std::vector<std::uint32_t> visits(own == 0 ? 0 : edges.end[own - 1]);
    frontier.for_edges([&](std::uint64_t row, Slot slot, EdgeOffset e) {
      if (e >= edges.begin[row] && e < edges.end[row] && edges.slots[e] == slot)
        take_sum(&visits[e], 1u);
    });
    for (std::uint64_t row = 0; row < own; ++row)
      for (EdgeOffset e = edges.begin[row]; e < edges.end[row]; ++e)
        require_that(visits[e] == (expected[number(row)] ? 1 : 0),
                     fmt::format("{}: visits of an edge of vertex {}", what, number(row)));
  }

  void check_frontier(const SlotEdges& edges, const Ends& ends) const {
    auto frontier = on_.frontier(edges);
    std::vector<bool> expected(graph_.vertices());
    expect_frontier(frontier, edges, ends, expected, "an empty frontier");
    for (const std::uint64_t seed : {1, 2}) {
      for (std::uint64_t v = 0; v < expected.size(); ++v) expected[v] = is_in(v, seed);
      frontier.fill([&](std::uint64_t row) { return is_in(number(row), seed); });
      expect_frontier(frontier, edges, ends, expected, "a filled frontier");
    }
    frontier.clear();
    std::fill(expected.begin(), expected.end(), false);
    expect_frontier(frontier, edges, ends, expected, "a cleared frontier");
    for (std::uint64_t v = 0; v < expected.size(); v += 7) {
      expected[v] = true;
      if (const auto row = graph_.row_of(v)) frontier.add(*row);
    }
    expect_frontier(frontier, edges, ends, expected, "added rows");
    require_that(frontier.step() == 0, "no step has been made");
  }

  // Rows give the least value that they have seen to others, as long as that changes anything.
  void check_advance(const SlotEdges& edges, const Ends& ends) const {
    const std::uint64_t own = on_.view().own, none = ~std::uint64_t{0};
    auto values = on_.slots<std::uint64_t>(none), before = on_.slots<std::uint64_t>(none);
    on_.for_rows(own, [&](std::uint64_t row) { values[row] = drawn(number(row), 3); });
    std::vector<std::uint64_t> expected(graph_.vertices());
    std::vector<bool> rows(graph_.vertices());
    for (std::uint64_t v = 0; v < expected.size(); ++v)
      expected[v] = drawn(v, 3), rows[v] = is_in(v, 4);
    auto frontier = on_.frontier(edges);
    frontier.fill([&](std::uint64_t row) { return is_in(number(row), 4); });
    for (std::uint64_t step = 1; frontier.totals().rows > 0 && step < 12; ++step) {
      on_.for_rows(own, [&](std::uint64_t row) { before[row] = values[row]; });
      frontier.advance(
          [&](std::uint64_t row, Slot slot, EdgeOffset) {
            return take_min(&values[slot], before[row]) > before[row];
          },
          values, Merge::min);
      std::vector<std::uint64_t> next = expected;
      for (std::uint64_t v = 0; v < expected.size(); ++v)
        if (rows[v])
          for (const End& end : ends[v]) next[end.number] = std::min(next[end.number], expected[v]);
      for (std::uint64_t v = 0; v < expected.size(); ++v) rows[v] = next[v] != expected[v];
      expected = std::move(next);
      require_that(of_all(on_.first(values, own)) == expected, fmt::format("step {}", step));
      require_that(frontier.step() == step, "the number of steps");
      expect_frontier(frontier, edges, ends, rows, fmt::format("after step {}", step));
    }
  }

  // Rows add 1 to the rows that read them.
  void check_counts() const {
    const SlotEdges out = on_.view().out;
    auto values = on_.slots<std::uint32_t>(0);
    auto frontier = on_.frontier(out);
    for (const std::uint64_t seed : {5, 6}) {
      on_.fill(values, 0u);
      frontier.fill([&](std::uint64_t row) { return is_in(number(row), seed); });
      frontier.advance(
          [&](std::uint64_t, Slot slot, EdgeOffset) { return take_sum(&values[slot], 1u), true; },
          values, Merge::add);
      std::vector<std::uint64_t> expected(graph_.vertices());
      std::vector<bool> rows(graph_.vertices());
      for (std::uint64_t v = 0; v < expected.size(); ++v)
        if (is_in(v, seed))
          for (const End& end : plain_.out[v]) ++expected[end.number], rows[end.number] = true;
      std::vector<std::uint64_t> own;
      for (const std::uint32_t value : on_.first(values, on_.view().own)) own.push_back(value);
      require_that(of_all(own) == expected, "sums");
      expect_frontier(frontier, out, plain_.out, rows, "after sums");
    }
  }

  // Rows give the bits that they have to the rows that read them.
  void check_bits() const {
    const std::uint64_t own = on_.view().own;
    auto values = on_.slots<std::uint32_t>(0);
    const auto bit = [](std::uint64_t v) { return std::uint32_t{1} << drawn(v, 7) % 32; };
    auto frontier = on_.frontier(on_.view().out);
    frontier.fill([](std::uint64_t) { return true; });
    frontier.advance(
        [&](std::uint64_t row, Slot slot, EdgeOffset) {
          const std::uint32_t mine = bit(number(row));
          return (std::atomic_ref(values[slot]).fetch_or(mine) & mine) == 0;
        },
        values, Merge::bit_or);
    for (std::uint64_t row = 0; row < own; ++row) {
      std::uint32_t expected = 0;
      for (const End& end : plain_.in[number(row)]) expected |= bit(end.number);
      require_that(values[row] == expected, "bits");
    }
  }

  // Some rows look for the first of their edges that leads into the frontier.
  void check_meet(const SlotEdges& edges, const Ends& ends) const {
    const std::uint64_t own = on_.view().own, none = ~std::uint64_t{0};
    const auto looks = [](std::uint64_t v) { return drawn(v, 8) % 2 == 0; };
    auto frontier = on_.frontier(edges);
    std::vector<bool> rows(graph_.vertices());
    for (std::uint64_t v = 0; v < rows.size(); ++v) rows[v] = drawn(v, 9) % 5 == 0;
    frontier.fill([&](std::uint64_t row) { return drawn(number(row), 9) % 5 == 0; });
    for (std::uint64_t step = 1; step < 4; ++step) {
      std::vector<std::uint64_t> found(own, none);
      std::vector<std::uint32_t> times(own);
      frontier.meet(
          edges, [&](std::uint64_t row) { return looks(number(row)); },
          [&](std::uint64_t row, Slot slot, EdgeOffset e) {
            if (edges.slots[e] == slot) found[row] = number(slot);
            ++times[row];
          });
      std::vector<std::uint64_t> expected(rows.size(), none);
      for (std::uint64_t v = 0; v < rows.size(); ++v)
        if (looks(v))
          for (const End& end : ends[v])
            if (rows[end.number] && expected[v] == none) expected[v] = end.number;
      require_that(of_all(found) == expected, "the first edges that lead into the frontier");
      for (std::uint64_t v = 0; v < rows.size(); ++v) rows[v] = expected[v] != none;
      for (std::uint64_t row = 0; row < own; ++row)
        require_that(times[row] == (rows[number(row)] ? 1 : 0), "one call for each row that meets");
      require_that(frontier.step() == step, "the number of steps");
      expect_frontier(frontier, edges, ends, rows, "after a meeting");
    }
  }

  // Ranks count for each slot what they know of it.
  void check_push() const {
    const std::uint64_t own = on_.view().own;
    auto values = on_.slots<std::uint64_t>(0);
    on_.for_rows(values.size(), [&](std::uint64_t s) { values[s] = 1 + drawn(number(s), 10); });
    on_.push(values, Merge::add);
    std::vector<std::uint64_t> slots(graph_.vertices());
    for (std::uint64_t s = 0; s < on_.view().slots; ++s) ++slots[number(s)];
    world_.all_reduce_sum(std::span(slots));
    for (std::uint64_t s = 0; s < on_.view().slots; ++s)
      require_that(values[s] == (s < own ? slots[number(s)] * (1 + drawn(number(s), 10)) : 0),
                   "sums that are pushed");
  }

  void check_lend() const {
    const auto size = [](int rank) {
      return rank == 1 ? 0u : 5000u * static_cast<unsigned>(rank + 1);
    };
    const auto value = [](int rank, std::size_t i) {
      return drawn(i, static_cast<unsigned>(rank));
    };
    auto values = on_.array<std::uint64_t>(size(world_.rank()), 0);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(world_.rank(), i);
    std::vector<int> met(static_cast<std::size_t>(world_.size()));
    on_.lend(values, [&](int rank, const std::uint64_t* data) {
      ++met[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < size(rank); ++i)
        require_that(data[i] == value(rank, i), "values that are lent");
    });
    require_that(std::ranges::count(met, 1) == world_.size(), "each rank lends once");
  }

  // Lists of some neighbours each, in either direction and both.
  void check_intersect() const {
    const GraphView& view = on_.view();
    const auto is_kept = [](std::uint64_t from, std::uint64_t to) {
      return from != to && drawn(from * 31 + to, 11) % 4 != 0;
    };
    Kept<CpuOperators> kept;
    for (int turn = 0; turn < 2; ++turn)  // the second takes the place of the first
      on_.keep(
          view.all,
          [&](std::uint64_t row, Slot slot, EdgeOffset e) {
            return is_kept(number(row), number(slot)) && is_simple_edge(view, row, slot, e);
          },
          kept);
    std::vector<std::vector<std::uint64_t>> lists(graph_.vertices());
    for (std::uint64_t v = 0; v < lists.size(); ++v) {
      for (const End& end : plain_.all[v])
        if (is_kept(v, end.number)) lists[v].push_back(end.number);
      std::ranges::sort(lists[v]);
      lists[v].erase(std::unique(lists[v].begin(), lists[v].end()), lists[v].end());
    }
    const auto sizes = gather_values(world_, std::uint64_t{kept.slots.size()});
    std::vector<std::uint64_t> firsts{0};
    for (const std::uint64_t size : sizes) firsts.push_back(firsts.back() + size);
    const std::uint64_t first = firsts[static_cast<std::size_t>(world_.rank())];
    auto places = on_.slots<ListPlace>({});
    for (std::uint64_t row = 0; row < view.own; ++row) {
      std::vector<std::uint64_t> found;
      for (std::uint64_t i = kept.begin[row]; i < kept.begin[row + 1]; ++i)
        found.push_back(number(kept.slots[i]));
      std::ranges::sort(found);
      require_that(found == lists[number(row)], "edges that are kept");
      places[row] = {first + kept.begin[row], kept.begin[row + 1] - kept.begin[row]};
    }
    on_.pull(places);
    auto numbers = on_.array<std::uint32_t>(kept.slots.size(), 0);
    for (std::uint64_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<std::uint32_t>(number(kept.slots[i]));
    auto counts = on_.slots<std::uint64_t>(0);
    on_.lend(numbers, [&](int rank, const std::uint32_t* data) {
      const auto r = static_cast<std::size_t>(rank);
      on_.intersect(
          SlotLists{places.data(), first, kept.slots.data(), numbers.data()},
          LentEntries{firsts[r], sizes[r], data},
          [&](std::uint64_t slot, std::uint64_t times) { take_sum(&counts[slot], times); });
    });
    on_.push(counts, Merge::add);
    std::vector<std::uint64_t> expected(lists.size());
    for (std::uint64_t u = 0; u < lists.size(); ++u)
      for (const std::uint64_t v : lists[u])
        for (const std::uint64_t w : lists[v])
          if (std::ranges::binary_search(lists[u], w)) ++expected[u], ++expected[v], ++expected[w];
    require_that(of_all(on_.first(counts, view.own)) == expected,
                 "entries that lists have in common");
  }

  World& world_;
  const Dataset dataset_;
  const Partition partition_;
  SpreadGraph graph_;
  const CpuOperators on_;
  const PlainEdges plain_;
  const std::string where_;
};

constexpr PartitionScheme kSchemes[] = {PartitionScheme::edges, PartitionScheme::vertices,
                                        PartitionScheme::hash, PartitionScheme::metis};

#ifdef PLAIT_SANITIZED
constexpr std::size_t kStride = 5;
constexpr std::uint64_t kLeaves = 5000;
#else
constexpr std::size_t kStride = 1;
constexpr std::uint64_t kLeaves = 20000;
#endif

const RankProgram operators("operators", [](World& world) {
  std::vector<Drawing> graphs = all_odd_drawings();
  for (unsigned seed = 0; seed < 40; ++seed) graphs.push_back(random_drawing(seed, 150));
  for (std::size_t k = 0; k < graphs.size(); k += kStride)
    Checked(world, graphs[k], kSchemes[k / kStride % 4]).check_all();
  const std::vector<Edge> star = star_edges(kLeaves + 1);
  Checked(world, {"a star of many leaves", kLeaves + 1, star}, PartitionScheme::edges).check_all();
  Checked(world, {"many leaves that lead to one", kLeaves + 1, turned_round(star)},
          PartitionScheme::hash)
      .check_all();
  Checked(world, {"a star both ways", kLeaves + 1, both_ways(star), true, false, 3},
          PartitionScheme::vertices)
      .check_all();
  Checked(world, {"a clique", 300, clique_edges(0, 300)}, PartitionScheme::hash).check_all();
  std::vector<Edge> cliques = clique_edges(0, 120);
  for (const Edge& edge : clique_edges(118, 122)) cliques.push_back(edge);
  for (std::uint64_t v = 0; v < 240; ++v) cliques.push_back({240, v, 1});
  Checked(world,
          {"two cliques that share an edge, and a hub", 241, both_ways(cliques), true, false, 6},
          PartitionScheme::edges)
      .check_all();
  Checked(world, {"many rows", kLeaves / 2, random_edges(kLeaves / 2, 3 * kLeaves, 1)},
          PartitionScheme::hash)
      .check_all();
});

class Operators : public testing::TestWithParam<int> {};

TEST_P(Operators, DoAsPlainLoopsDo) {
  const Outcome outcome =
      run_job({.program = "operators", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

INSTANTIATE_TEST_SUITE_P(Ranks, Operators, testing::Values(1, 2, 3, 4));

const RankProgram late("operators with delays", [](World& world) {
  for (unsigned seed = 100; seed < 106; ++seed) {
    switch_delays(10 * seed + static_cast<std::uint64_t>(world.rank()),
                  std::chrono::microseconds(500));
    Checked(world, random_drawing(seed, 60), kSchemes[seed % 4]).check_all();
  }
});

TEST(OperatorsOnRanks, NeedNoLuckInTime) {
  const Outcome outcome = run_job({.program = "operators with delays", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
