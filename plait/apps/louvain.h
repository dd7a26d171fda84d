// Communities of high modularity by the Louvain method (Blondel, Guillaume, Lambiotte and Lefebvre,
// "Fast unfolding of communities in large networks", Journal of Statistical Mechanics, 2008).
//
// Vertices move to the community of a neighbour where modularity gains the most
// (communities/moves.h), communities become the vertices of a graph, whose vertices move in turn,
// and so on until no more merge. Then vertices move once more, from the communities that they are
// in now, and communities are merged again (Rotta and Noack, "Multilevel local search algorithms
// for modularity clustering", Journal of Experimental Algorithmics 16, 2011).
//
// Modularity is that of the matrix A of the graph, or of A + A' if it is directed: the sum, over
// communities, of inside / all - resolution (ends / all)^2, where `all` is the sum of the matrix,
// `inside` that of the entries between members, and `ends` that of the members' rows. Weights are
// whole numbers: all 1, or multiples of one power of two, small enough to keep all bits of most
// floats and large enough for sums of 51 bits. So the answer is the same in any order of additions.
//
// Rows are spread over ranks, and each rank knows the community of every vertex, 28 bytes per
// vertex: ranks share the moves that their vertices make. A graph of communities is spread over
// ranks, too (spread_quotient.h); the host moves the last ones, which are small, one vertex after
// the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plait/apps/app.h"
#include "plait/apps/spread_quotient.h"
#include "plait/apps/weak_components.h"
#include "plait/base/lower_bound.h"
#include "plait/communities/on_cpu.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/world/gather.h"

namespace plait {

// Collective. Puts values of own rows, which each rank gives, where their vertices' numbers are.
std::vector<std::uint64_t> by_number(World& world, const Partition& partition,
                                     const std::vector<std::uint64_t>& of_rows);
// Joins the trees of vertices of the same group that the entries begin .. end - 1 connect.
PLAIT_HOST_DEVICE inline void join_groups(const WeightedRows& rows, const std::uint32_t* group,
                                          std::uint32_t* parent, EdgeOffset begin, EdgeOffset end) {
  for (EdgeOffset e = begin; e < end;) {
    const std::uint64_t row = lower_bound(rows.end, 0, rows.rows, e + 1);
    const std::uint32_t v = rows.vertex(row);
    for (; e < end && e < rows.end[row]; ++e)
      if (group[v] == group[rows.neighbours[e]] && rows.draws(v, e))
        join_trees(parent, v, rows.neighbours[e]);
  }
}

// Moves the vertices of a graph in order, from the communities in `start`, or each alone, and
// merges these, level after level until no more merge. Returns the community of each vertex.
// `refine`: only connected parts of communities are merged, and those that are found are connected.
std::vector<std::uint32_t> merged_on_host(Quotient graph, std::vector<std::uint32_t> start,
                                          MoveRules rules, bool refine);

// Throws UsageError for settings that a graph does not allow.
void check_communities(const Dataset& dataset, const AppSettings& settings);
// Checks that each vertex has the least number of its community, that those without edges are
// alone, that modularity is as it is stated, and, if they have to be, that communities are
// connected. Throws MismatchError.
void verify_communities(const Dataset& dataset, const AppSettings& settings,
                        const AppResult& result, bool connected);
// The memory of apps that find communities, if hardly any vertices are together at first, so that
// the first graph of communities is as large as the graph: on a GPU, the keys of edges and their
// weights, twice while they are sorted, or that graph; on the CPU, two copies of it and one in
// vectors that grow. Of it, 4 bytes per edge are the vertices to which edges lead.
inline constexpr AppBytes kCommunityBytes{
    .per_slot = 150, .per_edge = 52, .per_thread_slot = 8, .per_edge_on_host = 48};
// The options of apps that find communities.
std::vector<AppOption> community_options();

// Returns the power of two by which a number may be multiplied so that it stays below 2^51.
inline double scale_to_51_bits(double most) {
  return most > 0 ? std::ldexp(1.0, 50 - std::ilogb(most)) : 1;
}

// A weight that is not negative as bits that ascend with it, and as a whole number. A zero may have
// the sign of a negative number.
PLAIT_HOST_DEVICE inline std::uint32_t weight_bits(float weight) {
  return __builtin_bit_cast(std::uint32_t, weight) & 0x7fffffffu;
}
PLAIT_HOST_DEVICE inline std::uint64_t whole_weight(float weight, double scale) {
  return static_cast<std::uint64_t>(weight * scale + 0.5);
}

// The rows of the vertices of a level that a rank moves, with the memory that they point to.
template <class Communities>
struct LouvainLevel {
  typename Communities::Graph graph;
  typename Communities::Labels vertices;
  WeightedRows rows;
};

template <class Operators>
class Louvain {
  using Communities = typename Operators::Communities;
  using Labels = typename Communities::Labels;
  using Level = LouvainLevel<Communities>;
  using Starts = typename Operators::template Values<std::uint32_t>;  // by vertex of a level
  template <class T>
  using Values = typename Operators::template Values<T>;

 public:
  // `refine`: merge only connected parts of communities (leiden.h).
  explicit Louvain(const Operators& on, bool refine = false)
      : on_(on),
        view_(on.view()),
        refine_(refine),
        count_(static_cast<std::uint32_t>(on.graph().vertices())),
        number_(on.template array<std::uint32_t>(view_.own, 0)),
        labels_(on.template array<std::uint32_t>(count_, 0)),
        least_(on.template array<std::uint64_t>(count_, 0)) {
    for_numbers();
  }

  void run(const AppSettings& settings) {
    resolution_ = settings.get<double>("resolution");
    weigh(settings.get<bool>("weighted"));
    if (total_ == 0) start_alone();
    if (total_ > 0) {
      constexpr int kPasses = 2;
      for (int pass = 0; pass < kPasses; ++pass) climb(pass > 0);
    }
    find_least();
    modularity_ = find_modularity();
  }

  std::vector<AppFact> facts() {
    const std::uint64_t* const least = least_.data();
    const std::uint64_t communities = on_.sum(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t label) {
      return std::uint64_t{least[label] != ~std::uint64_t{0}};
    });
    auto sizes = on_.template array<std::uint64_t>(count_, 0);
    std::uint64_t* const size = sizes.data();
    const std::uint32_t* const label = labels_.data();
    on_.for_rows(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      take_sum(size + label[v], std::uint64_t{1});
    });
    const std::uint64_t largest =
        on_.greatest(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t l) { return size[l]; });
    return {{"communities", communities}, {"largest", largest}, {"modularity", modularity_}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint32_t *const label = labels_.data(), *const number = number_.data();
    const std::uint64_t* const least = least_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return static_cast<std::int64_t>(least[label[number[row]]]);
    });
  }

  // Notes the numbers of own rows, and those to which edges lead where slots are not numbers.
  void for_numbers() {
    const GraphView view = view_;
    std::uint32_t* const number = number_.data();
    on_.for_rows(view.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      number[row] = static_cast<std::uint32_t>(view.number(row));
    });
    std::uint64_t edges = on_.sum(
        view.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return view.all.degree(row); });
    entries_ = edges;
    if (view.numbers == nullptr) return;
    neighbours_ = on_.template array<std::uint32_t>(edges, 0);
    std::uint32_t* const neighbour = neighbours_.data();
    on_.for_rows(edges, [=] PLAIT_HOST_DEVICE(std::uint64_t e) {
      neighbour[e] = static_cast<std::uint32_t>(view.number(view.all.slots[e]));
    });
  }

  // Finds the weights of edges and the edge ends at vertices.
  void weigh(bool weighted) {
    const SlotEdges edges = view_.all;
    auto ends = on_.template array<std::uint64_t>(view_.own, 0);
    std::uint64_t* const end = ends.data();
    if (!weighted) {
      weights_ = {};
      on_.for_rows(view_.own,
                   [=] PLAIT_HOST_DEVICE(std::uint64_t row) { end[row] = edges.degree(row); });
    } else {
      scale_weights();
      const std::uint64_t* const weight = weights_.data();
      on_.template sum_edges<std::uint64_t>(
          edges, [=] PLAIT_HOST_DEVICE(std::uint64_t, Slot, EdgeOffset e) { return weight[e]; },
          [=] PLAIT_HOST_DEVICE(std::uint64_t row, std::uint64_t sum) {
            end[row] = sum;
            return TwoSums{};
          });
    }
    total_ = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return end[row]; });
    all_entries_ = entries_;
    if (on_.world().size() > 1) {
      std::uint64_t sums[2] = {total_, all_entries_};
      on_.world().all_reduce_sum(std::span(sums));
      total_ = sums[0], all_entries_ = sums[1];
    }
    if (on_.graph().numbered_by_slot())
      degrees_ = std::move(ends);
    else
      degrees_ = on_.array(std::span<const std::uint64_t>(
          by_number(on_.world(), on_.graph().partition(), on_.first(ends, view_.own))));
  }

  // Multiplies weights by the greatest power of two with which their sum stays below 2^52: first by
  // one that is certain to do, and then by what the sum leaves. That is too little where most
  // weights are no more than a unit at first, and is done twice.
  void scale_weights() {
    const SlotEdges edges = view_.all;
    std::uint64_t most = on_.greatest(entries_, [=] PLAIT_HOST_DEVICE(std::uint64_t e) {
      return std::uint64_t{weight_bits(edges.weights[e])};
    });
    std::uint64_t all = entries_;
    on_.world().all_reduce_max(std::span(&most, 1));
    on_.world().all_reduce_sum(std::span(&all, 1));
    const auto heaviest = std::bit_cast<float>(static_cast<std::uint32_t>(most));
    double scale = scale_to_51_bits(heaviest * static_cast<double>(all));
    for (int times = 0; times < 2; ++times) {
      std::uint64_t sum = on_.sum(entries_, [=] PLAIT_HOST_DEVICE(std::uint64_t e) {
        const float weight = edges.weights[e];
        return weight > 0 ? static_cast<std::uint64_t>(weight * scale) + 1 : std::uint64_t{0};
      });
      on_.world().all_reduce_sum(std::span(&sum, 1));
      scale *= scale_to_51_bits(static_cast<double>(sum));
    }
    weights_ = on_.template array<std::uint64_t>(entries_, 0);
    std::uint64_t* const weight = weights_.data();
    on_.for_rows(entries_, [=] PLAIT_HOST_DEVICE(std::uint64_t e) {
      weight[e] = whole_weight(edges.weights[e], scale);
    });
  }

  void start_alone() {
    std::uint32_t* const label = labels_.data();
    on_.for_rows(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      label[v] = static_cast<std::uint32_t>(v);
    });
  }

  // The rows of this rank's vertices.
  WeightedRows vertex_rows() const {
    const bool by_slot = view_.numbers == nullptr;
    return {.begin = view_.all.begin,
            .end = view_.all.end,
            .neighbours = by_slot ? view_.all.slots : neighbours_.data(),
            .weights = weights_.size() > 0 ? weights_.data() : nullptr,
            .vertices = by_slot ? nullptr : number_.data(),
            .degrees = degrees_.data(),
            .rows = static_cast<std::uint32_t>(view_.own),
            .count = count_,
            .entries = entries_,
            .total = total_};
  }

  // Collective. Moves vertices, and then communities level after level until no more merge. Begins
  // with the communities that vertices are in, or each alone.
  void climb(bool together) {
    Level level;
    level.rows = vertex_rows();
    Starts start;  // of the level's vertices
    if (together) {
      start = std::move(labels_);
      labels_ = on_.template array<std::uint32_t>(count_, 0);
    }
    start_alone();
    bool is_first = true;
    for (EdgeOffset entries = all_entries_; entries >= kLargeQuotient; is_first = false) {
      MoveRules how = rules(true);
      how.movable = movable(level.rows);
      how.start = start.size() > 0 ? start.data() : nullptr;
      Labels groups = Communities::moves(level.rows, how);
      how.start = nullptr;
      how.within = groups.data();
      Labels merged = refine_ ? Communities::moves(level.rows, how) : std::move(groups);
      const std::uint32_t count = Communities::dense(merged);
      start = refine_ ? starts(groups, merged, count) : Starts{};
      take(merged);
      if (count == level.rows.count) {
        if (refine_) take(connected_parts(level.rows, groups));
        return;
      }
      entries = next_level(level, merged, count);
    }
    if (is_first) whole_ = whole_graph();
    finish(start.size() > 0 ? on_.first(start, start.size()) : std::vector<std::uint32_t>{});
  }

  // Collective. Returns the number of vertices that have a neighbour.
  std::uint64_t movable(const WeightedRows& rows) const {
    std::uint64_t count = on_.sum(rows.rows, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const std::uint32_t v = rows.vertex(row);
      EdgeOffset e = rows.begin[row];
      while (e < rows.end[row] && !rows.draws(v, e)) ++e;
      return std::uint64_t{e < rows.end[row]};
    });
    on_.world().all_reduce_sum(std::span(&count, 1));
    return count;
  }

  // Returns for each merged community the least that is in the same group: a label of the group.
  Starts starts(const Labels& groups, const Labels& merged, std::uint32_t count) const {
    auto group_of = on_.template array<std::uint32_t>(count, 0);
    auto leasts = on_.template array<std::uint32_t>(groups.size(), ~std::uint32_t{0});
    Starts found = on_.template array<std::uint32_t>(count, 0);
    std::uint32_t *const group_at = group_of.data(), *const least = leasts.data(),
                         *const start = found.data();
    const std::uint32_t *const group = groups.data(), *const to = merged.data();
    on_.for_rows(groups.size(), [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      store(group_at + to[v], group[v]);
      take_min(least + group[v], to[v]);
    });
    on_.for_rows(count, [=] PLAIT_HOST_DEVICE(std::uint64_t c) { start[c] = least[group_at[c]]; });
    on_.wait();
    return found;
  }

  // Collective. Returns the connected parts of groups of a level's vertices, by their least ones.
  Starts connected_parts(const WeightedRows& rows, const Labels& groups) const {
    Starts parents = on_.template array<std::uint32_t>(rows.count, 0);
    std::uint32_t* parent = parents.data();
    const std::uint32_t* const group = groups.data();
    on_.for_rows(rows.count, [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      parent[v] = static_cast<std::uint32_t>(v);
    });
    constexpr EdgeOffset kPiece = 64;  // entries that one thread looks at
    on_.for_rows((rows.entries + kPiece - 1) / kPiece, [=] PLAIT_HOST_DEVICE(std::uint64_t piece) {
      const EdgeOffset begin = piece * kPiece;
      const EdgeOffset end = begin + kPiece < rows.entries ? begin + kPiece : rows.entries;
      join_groups(rows, group, parent, begin, end);
    });
    if (on_.world().size() > 1) {
      const std::vector<std::uint32_t> all =
          joined_forest(on_.world(), on_.first(parents, rows.count));
      parents = on_.array(std::span<const std::uint32_t>(all));
      parent = parents.data();
    }
    on_.for_rows(rows.count, [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      shorten_path(parent, static_cast<std::uint32_t>(v));
    });
    return parents;
  }

  // Collective. Returns the graph of all vertices, each a community. It is small.
  Quotient whole_graph() const {
    std::vector<std::uint32_t> alone(count_);
    std::iota(alone.begin(), alone.end(), 0u);
    auto part = Communities::quotient(
        vertex_rows(), Communities::labels_of(std::span<const std::uint32_t>(alone)), count_);
    return whole_of(on_.world(), spread(on_.world(), Communities::to_host(std::move(part))));
  }

  // Does the rest of the levels on the host of each rank.
  void finish(const std::vector<std::uint32_t>& start) {
    const std::vector<std::uint32_t> found =
        merged_on_host(std::exchange(whole_, {}), start, rules(false), refine_);
    take(Communities::labels_of(std::span<const std::uint32_t>(found)));
  }

  // Puts vertices into communities, given those of the level's vertices.
  template <class OfLevel>
  void take(const OfLevel& labels) {
    std::uint32_t* const label = labels_.data();
    const std::uint32_t* const to = labels.data();
    on_.for_rows(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t v) { label[v] = to[label[v]]; });
    on_.wait();
  }

  // Collective. Makes the level of the communities. Returns the entries of all ranks.
  std::uint64_t next_level(Level& level, const Labels& labels, std::uint32_t count) {
    auto graph = Communities::quotient(level.rows, labels, count);
    World& world = on_.world();
    if (world.size() == 1 && graph.neighbours.size() >= kLargeQuotient) {
      level.graph = std::move(graph);
      level.rows = level.graph.rows();
      return level.rows.entries;
    }
    SpreadQuotient mine = spread(world, Communities::to_host(std::move(graph)));
    const EdgeOffset entries = mine.entries;
    if (entries < kLargeQuotient) {
      whole_ = whole_of(world, std::move(mine));
      return entries;
    }
    std::vector<std::uint32_t> own(mine.rows.offsets.size() - 1);
    std::iota(own.begin(), own.end(), mine.first);
    level.graph = Communities::from_host(std::move(mine.rows));
    level.vertices = Communities::labels_of(std::span<const std::uint32_t>(own));
    level.rows = level.graph.rows();
    level.rows.rows = static_cast<std::uint32_t>(own.size());
    level.rows.vertices = level.vertices.data();
    return entries;
  }

  MoveRules rules(bool at_once) const {
    MoveRules how;
    how.resolution = resolution_;
    how.at_once = at_once;
    how.only_woken = true;
    how.may_leave = true;
    World& world = on_.world();
    if (at_once && world.size() > 1)
      how.share = [&world](const std::vector<Move>& mine) { return gather_joined(world, mine); };
    return how;
  }

  // Finds the least number of a vertex in each community.
  void find_least() {
    on_.fill(least_, ~std::uint64_t{0});
    std::uint64_t* const least = least_.data();
    const std::uint32_t* const label = labels_.data();
    on_.for_rows(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t v) {
      if (v < load(least + label[v])) take_min(least + label[v], v);
    });
  }

  // Collective. Integers are added, so that their order does not matter: of edges by chance a
  // multiple that makes their sum one of 61 bits or more.
  double find_modularity() {
    if (total_ == 0) return 0;
    auto ends = on_.template array<std::uint64_t>(count_, 0);
    std::uint64_t* const end = ends.data();
    const std::uint64_t* const degree = degrees_.data();
    const std::uint32_t* const label = labels_.data();
    const WeightedRows rows = vertex_rows();
    on_.for_rows(count_,
                 [=] PLAIT_HOST_DEVICE(std::uint64_t v) { take_sum(end + label[v], degree[v]); });
    const double all = static_cast<double>(total_);
    double scale = 0x1p60;
    std::uint64_t by_chance = 0;
    for (int times = 0; times < 2; ++times) {
      if (times > 0)
        scale = std::ldexp(scale, 62 - static_cast<int>(std::bit_width(by_chance + count_)));
      by_chance = on_.sum(count_, [=] PLAIT_HOST_DEVICE(std::uint64_t l) {
        const double share = static_cast<double>(end[l]) / all;
        return static_cast<std::uint64_t>(share * share * scale);
      });
    }
    std::uint64_t inside = on_.template sum_edges<std::uint64_t>(
                                  view_.all,
                                  [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot, EdgeOffset e) {
                                    const bool same =
                                        label[rows.neighbours[e]] == label[rows.vertex(row)];
                                    return same ? rows.weight(e) : std::uint64_t{0};
                                  },
                                  [=] PLAIT_HOST_DEVICE(std::uint64_t, std::uint64_t sum) {
                                    return TwoSums{sum, 0};
                                  })
                               .first;
    on_.world().all_reduce_sum(std::span(&inside, 1));
    return static_cast<double>(inside) / all -
           resolution_ * (static_cast<double>(by_chance) / scale);
  }

 private:
  const Operators& on_;
  const GraphView view_;
  const bool refine_;
  const std::uint32_t count_;                    // vertices of all ranks
  Values<std::uint32_t> number_;                 // by own row
  Values<std::uint32_t> neighbours_;             // by edge; empty where slots are numbers
  Values<std::uint64_t> weights_;                // by edge; empty: all are 1
  Values<std::uint64_t> degrees_;                // edge ends, by number
  Values<std::uint32_t> labels_;                 // by number: the community
  Values<std::uint64_t> least_;                  // by label: the least number in the community
  std::uint64_t entries_ = 0, all_entries_ = 0;  // of own rows, and of all ranks
  std::uint64_t total_ = 0;
  double resolution_ = 1, modularity_ = 0;
  Quotient whole_;  // the level that is reached, where the host needs it
};

}  // namespace plait
