// Shortest paths by weights: for every vertex the least sum of the weights of a path's edges from
// the source, and the vertex before it on such a path. No weight is negative.
//
// Rows whose distance is below a bound are near. In a step, near rows offer the rows at their
// outward edges a distance; near ones that have got a lesser one are in the next step. When no near
// rows are left, all distances below the bound are final, the bound grows, and rows between the old
// and the new one are near (Davidson, Baxter, Garland and Owens, "Work-efficient parallel GPU
// methods for single-source shortest paths", IPDPS 2014, section 4: near-far piles). Far rows need
// no pile: their distances tell them.
//
// Distances are sums in double precision, in the order of a path. Rounding keeps the order of
// numbers, so that the least sum of all paths to a vertex depends on nothing but the graph. They
// are kept as their bits, which order numbers that are not negative as unsigned integers.
//
// Parents are found when all distances are known. Of several vertices that a shortest path comes
// from, a vertex takes the one with the least number, among those that are nearer to the source. If
// there are none, because edges weigh 0 or too little to change a distance, it takes one of those
// at the same distance that come from a nearer one over the fewest such edges: so parents lead to
// the source.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "plait/apps/app.h"
#include "plait/apps/path_key.h"
#include "plait/frontier/operators.h"
#include "plait/world/together.h"

namespace plait {

// A distance as an integer of the same order.
PLAIT_HOST_DEVICE inline std::uint64_t distance_bits(double distance) {
  return __builtin_bit_cast(std::uint64_t, distance);
}
PLAIT_HOST_DEVICE inline double distance_of(std::uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
inline constexpr double kFar = std::numeric_limits<double>::infinity();  // of no path

// Returns the exponent of the weight of a row's first edge, as floats keep it; 0 if there is none.
PLAIT_HOST_DEVICE inline std::uint64_t weight_exponent(const SlotEdges& edges, std::uint64_t row) {
  if (edges.degree(row) == 0) return 0;
  return __builtin_bit_cast(std::uint32_t, edges.weight(edges.begin[row])) >> 23 & 0xff;
}

template <class Operators>
class Sssp {
 public:
  explicit Sssp(const Operators& on)
      : on_(on),
        view_(on.view()),
        path_(on.graph().vertices()),
        distances_(on.template slots<std::uint64_t>(distance_bits(kFar))),
        keys_(on.template slots<std::uint64_t>(PathKey::kNone)),
        near_(on.frontier(view_.out)),
        reached_(on.frontier(view_.in)) {}

  void run(const AppSettings& settings) {
    source_ = settings.get<std::uint64_t>("source");
    on_.fill(distances_, distance_bits(kFar));
    near_.clear();
    const auto row = on_.graph().row_of(source_);
    if (row) {
      on_.set(distances_, *row, distance_bits(0));
      near_.add(*row);
    }
    // To look for near rows costs as much as a few edges each: as long as they have fewer, buckets
    // get wider.
    constexpr std::uint64_t kRowsPerEdge = 8;
    double width = bucket_width();
    for (double bound = width;;) {
      std::uint64_t edges = 0;
      for (FrontierTotals all = near_.totals(); all.rows > 0; all = near_.totals()) {
        edges += all.edges;
        relax(bound);
      }
      if (edges < on_.graph().vertices() / kRowsPerEdge) width *= 2;
      const double least = least_from(bound);
      if (least == kFar) break;
      const double next = std::max(least + width, std::nextafter(least, kFar));
      take_near(bound, next);
      bound = next;
    }
    find_parents(row);
  }

  std::vector<AppFact> facts() const {
    const std::uint64_t *const distance = distances_.data(), *const key = keys_.data();
    std::uint64_t reached = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{key[row] != PathKey::kNone};
    });
    std::uint64_t farthest = on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return key[row] == PathKey::kNone ? 0 : distance[row];
    });
    on_.world().all_reduce_sum(std::span(&reached, 1));
    on_.world().all_reduce_max(std::span(&farthest, 1));
    return {{"source", source_}, {"reached", reached}, {"farthest", distance_of(farthest)}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint64_t *const distance = distances_.data(), *const key = keys_.data();
    const PathKey path = path_;
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return distance_of(distance[row]); });
    put(1, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return key[row] == PathKey::kNone ? -1 : static_cast<std::int64_t>(path.parent(key[row]));
    });
  }

  // Returns the width of the first bucket: the wider, the more edges a step has, and the more rows
  // are near too early. The paper takes 32 times mean weight / mean degree, which is too wide for
  // graphs with long rows. The mean of weights is the geometric one of the rows' first edges,
  // without their lower bits.
  double bucket_width() {
    constexpr double kMeanWeights = 8;
    const SlotEdges out = view_.out;
    std::uint64_t sums[2] = {
        on_.sum(view_.own,
                [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return weight_exponent(out, row); }),
        on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
          return std::uint64_t{weight_exponent(out, row) != 0};
        })};
    on_.world().all_reduce_sum(std::span(sums));
    const auto vertices = static_cast<double>(on_.graph().vertices());
    const double degree = static_cast<double>(on_.graph().edges()) / vertices;
    const double mean =
        static_cast<double>(sums[0]) / static_cast<double>(std::max(sums[1], std::uint64_t{1}));
    return kMeanWeights / std::max(degree, 1.0) * std::exp2(mean - 127);
  }

  // Near rows offer distances to the rows at their outward edges.
  void relax(double bound) {
    std::uint64_t* const distance = distances_.data();
    const SlotEdges out = view_.out;
    const std::uint64_t own = view_.own, far = distance_bits(bound);
    near_.advance(
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
          const std::uint64_t mine =
              distance_bits(distance_of(load(distance + row)) + out.weight(e));
          return mine < load(distance + slot) && mine < take_min(distance + slot, mine) &&
                 (mine < far || slot >= own);
        },
        distances_, Merge::min);
    if (on_.world().size() > 1)  // other ranks tell of far rows, too
      near_.fill(near_, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return distance[row] < far; });
  }

  // Returns the least distance of all ranks that is not below a bound.
  double least_from(double bound) {
    const std::uint64_t* const distance = distances_.data();
    const std::uint64_t from = distance_bits(bound);
    const std::uint64_t greatest =
        on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
          return distance[row] < from ? 0 : ~distance[row];
        });
    std::uint64_t least = std::min(~greatest, distance_bits(kFar));
    on_.world().all_reduce_min(std::span(&least, 1));
    return distance_of(least);
  }

  void take_near(double bound, double next) {
    const std::uint64_t* const distance = distances_.data();
    const std::uint64_t from = distance_bits(bound), to = distance_bits(next);
    near_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return distance[row] >= from && distance[row] < to;
    });
  }

  // Gives rows the vertices before them. `source`: the source's row, if it is this rank's.
  void find_parents(const std::optional<std::uint64_t>& source) {
    on_.pull(distances_);
    on_.fill(keys_, PathKey::kNone);
    if (source) on_.set(keys_, *source, path_.of(0, source_));
    const std::uint64_t* const distance = distances_.data();
    std::uint64_t* const key = keys_.data();
    const GraphView view = view_;
    const PathKey path = path_;
    const std::uint64_t none = distance_bits(kFar);
    reached_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t row) { return distance[row] != none; });
    reached_.for_edges([=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
      const std::uint64_t before = distance[slot], here = distance[row];
      if (before >= here || distance_bits(distance_of(before) + view.in.weight(e)) != here) return;
      const std::uint64_t mine = path.of(0, view.number(slot));
      if (mine < load(key + row)) take_min(key + row, mine);
    });
    std::uint64_t left = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{distance[row] != none && key[row] == PathKey::kNone};
    });
    on_.world().all_reduce_sum(std::span(&left, 1));
    if (left > 0) spread_parents();
  }

  // Rows at the same distance as a row before them take it, in steps from rows that have a parent.
  void spread_parents() {
    const std::uint64_t* const distance = distances_.data();
    std::uint64_t* const key = keys_.data();
    const GraphView view = view_;
    const PathKey path = path_;
    near_.clear();
    near_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t row) { return key[row] != PathKey::kNone; });
    while (near_.totals().rows > 0) {
      require_on_all(
          near_.step() + 1 < path_.depths(),
          "paths of more than {} edges that weigh nothing cannot be told apart in a graph of "
          "so many vertices",
          path_.depths() - 2);
      near_.advance(
          [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
            const std::uint64_t here = distance[row];
            return here == distance[slot] &&
                   distance_bits(distance_of(here) + view.out.weight(e)) == here &&
                   path.offer(key, row, view.number(row), slot);
          },
          keys_, Merge::min);
    }
  }

 private:
  const Operators& on_;
  const GraphView view_;
  const PathKey path_;
  typename Operators::template Values<std::uint64_t> distances_;  // by slot, as bits
  typename Operators::template Values<std::uint64_t> keys_;       // of PathKey, by slot
  typename Operators::Frontier near_, reached_;
  std::uint64_t source_ = 0;
};

}  // namespace plait
