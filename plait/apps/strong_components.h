// Strongly connected components: for every vertex the least number of a vertex that it reaches
// along edges and that reaches it.
//
// Rows that have no component yet are live. They are in parts, which no component crosses; edges
// between parts are not followed. In a round, some live rows bid. Each row takes the least bid of a
// row of its part that reaches it, and the least of one that it reaches. If both are the same, it
// is in the component of that bidder; all other rows are divided by the two bids, as rows of a
// component have the same (Coppersmith, Fleischer, Hendrickson and Pinar, "A divide-and-conquer
// algorithm for identifying strongly connected components", 2003, with a pivot in each part).
//
// In the first round one row of high degree bids: most graphs have one large component, and many
// rows around it. Then more and more rows bid in each round, chosen and numbered as if at random,
// so that parts have few bidders each and are likely to be cut in their middle, whatever order
// vertices have (Blelloch, Gu, Shun and Sun, "Parallelism in randomized incremental algorithms",
// JACM 67, 2020, section 6.2). Before each round, rows that no edge of their part leads to, or that
// none leaves, are trimmed, one after the other along chains (McLendon, Hendrickson, Plimpton and
// Rauchwerger, "Finding strongly connected components in distributed graphs", JPDC 65, 2005).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plait/apps/app.h"
#include "plait/base/lower_bound.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/world/gather.h"

namespace plait {

// Encoding of the part of a row: of a live row, any number below 2^62; two parts may happen to have
// the same, which costs time alone. Of a row that has a component, kDone and the component's bid;
// of a component of one row that was trimmed, also kTrimmed.
struct PartKey {
  static constexpr std::uint64_t kDone = std::uint64_t{1} << 63, kTrimmed = std::uint64_t{1} << 62,
                                 kMask = kTrimmed - 1;
  static constexpr std::uint64_t kNoBid = ~std::uint64_t{0};

  // Returns another number below 2^62, by a one-to-one map.
  PLAIT_HOST_DEVICE static std::uint64_t mixed(std::uint64_t number) {
    number = ((number ^ 0x2545F4914F6CDD1Du) * 0x9E3779B97F4A7C15u) & kMask;
    number = ((number ^ number >> 31) * 0xD1342543DE82EF95u) & kMask;
    return number ^ number >> 29;
  }
  // Returns the bid of the vertex with this number, which is below 2^62.
  PLAIT_HOST_DEVICE static std::uint64_t bid(std::uint64_t number) { return mixed(number); }
  // Returns the part of rows of a part that have these two bids.
  PLAIT_HOST_DEVICE static std::uint64_t part(std::uint64_t old, std::uint64_t from,
                                              std::uint64_t to) {
    return mixed((mixed((mixed(old) + from) & kMask) + to) & kMask);
  }
  PLAIT_HOST_DEVICE static bool is_live(std::uint64_t part) { return (part & kDone) == 0; }
};

// The vertices of a component that a rank owns.
struct ComponentPart {
  std::uint64_t part, least, size;  // least: their least number
};

// Returns the components of all ranks' vertices, ascending by `part`.
std::vector<ComponentPart> joined_parts(World& world, std::vector<ComponentPart> mine);

template <class Operators>
class StrongComponents {
 public:
  explicit StrongComponents(const Operators& on)
      : on_(on),
        view_(on.view()),
        parts_(on.template slots<std::uint64_t>(0)),
        from_(on.template slots<std::uint64_t>(0)),
        to_(on.template slots<std::uint64_t>(0)),
        left_(on.template slots<std::uint64_t>(0)),
        live_(on.frontier(view_.all)),
        trimmed_(on.frontier(view_.all)),
        reached_(on.frontier(view_.out)),
        reaching_(on.frontier(view_.in)) {}

  void run() {
    on_.fill(parts_, std::uint64_t{0});
    trimmed_.clear(), reached_.clear(), reaching_.clear();
    live_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t) { return true; });
    trim();
    const std::uint64_t first = bid_of_one();
    spread_bids();
    divide();
    constexpr std::uint64_t kMore = 16;  // bidders in each round
    std::uint64_t bidders = kMore;
    for (std::uint64_t live; (live = live_.totals().rows) > 0;
         bidders = std::min(bidders, live) * kMore) {
      trim();
      bid_of_some(bidders < live ? PartKey::kMask / live * bidders : PartKey::kMask);
      spread_bids();
      divide();
    }
    name(first);
  }

  std::vector<AppFact> facts() const { return {{"components", count_}, {"largest", largest_}}; }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint64_t* const label = to_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return static_cast<std::int64_t>(label[row]);
    });
  }

  // Takes live rows out that have no live edge inwards or none outwards, until there are none.
  void trim() {
    count_edges();
    take_trimmed(live_);
    while (trimmed_.totals().rows > 0) {
      take_edges();
      if (on_.world().size() > 1) take_trimmed(trimmed_);
    }
    const GraphView view = view_;
    const std::uint64_t* const taken = from_.data();
    std::uint64_t* const part = parts_.data();
    live_.fill(live_, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (taken[row] == 0) return true;
      part[row] = PartKey::kDone | PartKey::kTrimmed | PartKey::bid(view.number(row));
      return false;
    });
    on_.pull(parts_);
  }

  // Counts the live edges of live rows: inward ones in the lower half of left_, outward ones in the
  // upper half. Halo slots hold what their owners are still to be told. from_ tells whether an own
  // row is trimmed.
  void count_edges() {
    on_.fill(left_, std::uint64_t{0});
    on_.fill(from_, std::uint64_t{0});
    const GraphView view = view_;
    const std::uint64_t* const part = parts_.data();
    std::uint64_t* const left = left_.data();
    live_.for_edges([=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
      if (slot != row && part[slot] == part[row])
        take_sum(left + row, e < view.in.end[row] ? std::uint64_t{1} : std::uint64_t{1} << 32);
    });
  }

  void take_trimmed(const typename Operators::Frontier& some) {
    const std::uint64_t* const left = left_.data();
    const std::uint64_t* const part = parts_.data();
    std::uint64_t* const taken = from_.data();
    trimmed_.fill(some, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const bool ends = static_cast<std::uint32_t>(left[row]) == 0 || left[row] >> 32 == 0;
      if (!ends || taken[row] != 0 || !PartKey::is_live(part[row])) return false;
      taken[row] = 1;
      return true;
    });
  }

  // Takes the edges of trimmed rows from the rows at their other ends. Those that are to be trimmed
  // next are taken.
  void take_edges() {
    const GraphView view = view_;
    const std::uint64_t own = view_.own;
    const bool alone = on_.world().size() == 1;
    const std::uint64_t* const part = parts_.data();
    std::uint64_t *const left = left_.data(), *const taken = from_.data();
    trimmed_.advance(
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
          if (slot == row || part[slot] != part[row]) return false;
          // The row's inward edge is an outward one of the other.
          const std::uint64_t one = std::uint64_t{1} << (e < view.in.end[row] ? 32 : 0);
          const std::uint64_t before = take_sum(left + slot, ~one + 1);
          if (slot >= own) return true;
          // The row ends with its last edge of a kind, unless those of the other kind went before.
          const std::uint64_t after = before - one;
          const bool ended = static_cast<std::uint32_t>(before) == 0 || before >> 32 == 0;
          if (ended || (static_cast<std::uint32_t>(after) != 0 && after >> 32 != 0)) return false;
          if (alone) taken[slot] = 1;
          return true;
        },
        left_, Merge::add);
  }

  // Collective. Lets a live row bid that has many live edges both ways. Returns its bid, or kNoBid
  // if no row is live.
  std::uint64_t bid_of_one() {
    on_.fill(from_, PartKey::kNoBid);
    on_.fill(to_, PartKey::kNoBid);
    const std::uint64_t *const left = left_.data(), *const part = parts_.data();
    const std::uint64_t best = on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (!PartKey::is_live(part[row])) return std::uint64_t{0};
      const std::uint64_t in = static_cast<std::uint32_t>(left[row]), out = left[row] >> 32;
      return (in < out ? in : out) << 32 | row;  // a live row has both
    });
    const std::vector<std::uint64_t> degrees = gather_values(on_.world(), best >> 32);
    const auto rank = std::ranges::max_element(degrees) - degrees.begin();
    std::uint64_t bid = PartKey::kNoBid;
    if (on_.world().rank() == rank && best > 0) {
      const auto row = static_cast<std::uint32_t>(best);
      bid = PartKey::bid(on_.graph().partition().number(on_.world().rank(), row));
      on_.set(from_, row, bid);
      on_.set(to_, row, bid);
      reached_.add(row), reaching_.add(row);
    }
    on_.world().all_reduce_min(std::span(&bid, 1));
    return bid;
  }

  // Lets live rows bid whose bids are not above the limit.
  void bid_of_some(std::uint64_t limit) {
    const GraphView view = view_;
    std::uint64_t *const from = from_.data(), *const to = to_.data();
    on_.for_rows(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t slot) {
      const std::uint64_t bid = PartKey::bid(view.number(slot));
      from[slot] = to[slot] = bid <= limit ? bid : PartKey::kNoBid;
    });
    const auto bids = [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return from[row] != PartKey::kNoBid;
    };
    reached_.fill(live_, bids);
    reaching_.fill(live_, bids);
  }

  // Spreads bids within parts, along edges and against them.
  void spread_bids() {
    spread(reached_, from_);
    spread(reaching_, to_);
  }
  void spread(typename Operators::Frontier& frontier,
              typename Operators::template Values<std::uint64_t>& bids) {
    const std::uint64_t* const part = parts_.data();
    std::uint64_t* const bid = bids.data();
    while (frontier.totals().rows > 0)
      frontier.advance(
          [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset) {
            if (part[slot] != part[row]) return false;
            const std::uint64_t mine = load(bid + row);
            return mine < load(bid + slot) && mine < take_min(bid + slot, mine);
          },
          bids, Merge::min);
  }

  // Takes the rows out that have the same bid both ways, and divides the others.
  void divide() {
    std::uint64_t* const part = parts_.data();
    const std::uint64_t *const from = from_.data(), *const to = to_.data();
    live_.fill(live_, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const bool found = from[row] == to[row] && from[row] != PartKey::kNoBid;
      part[row] = found ? PartKey::kDone | from[row] : PartKey::part(part[row], from[row], to[row]);
      return !found;
    });
    on_.pull(parts_);
  }

  // Collective. Gives rows the least numbers of their components, in to_, and counts these.
  // `first`: the bid of the first round, whose component may be large.
  void name(std::uint64_t first) {
    const GraphView view = view_;
    const std::uint64_t large = PartKey::kDone | first;
    const std::uint64_t* const part = parts_.data();
    std::uint64_t* const label = to_.data();
    std::uint64_t sums[2];  // rows that were trimmed, and those of the large component
    sums[0] = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{(part[row] & PartKey::kTrimmed) != 0};
    });
    sums[1] = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{part[row] == large};
    });
    std::uint64_t least = ~on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return part[row] == large ? ~view.number(row) : std::uint64_t{0};
    });
    const std::uint64_t others = view_.own - sums[0] - sums[1];
    on_.world().all_reduce_sum(std::span(sums));
    on_.world().all_reduce_min(std::span(&least, 1));
    on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      label[row] = part[row] == large ? least : view.number(row);
    });
    const std::vector<ComponentPart> named = name_others(large, others);
    count_ = sums[0] + (sums[1] > 0) + named.size();
    largest_ = std::max<std::uint64_t>(sums[1], sums[0] > 0);
    for (const ComponentPart& component : named) largest_ = std::max(largest_, component.size);
  }

  // Collective. Names all components but the large one and those that were trimmed, which have
  // `count` own rows. Returns them.
  std::vector<ComponentPart> name_others(std::uint64_t large, std::uint64_t count) {
    auto listed = on_.template array<std::uint64_t>(2 * count + 1, 0);
    const GraphView view = view_;
    const std::uint64_t* const part = parts_.data();
    std::uint64_t *const list = listed.data(), *const label = to_.data();
    on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (part[row] == large || (part[row] & PartKey::kTrimmed) != 0) return;
      const std::uint64_t at = take_sum(list + 2 * count, std::uint64_t{1});
      list[2 * at] = part[row], list[2 * at + 1] = view.number(row);
    });
    const std::vector<std::uint64_t> pairs = on_.first(listed, 2 * count);
    std::vector<ComponentPart> mine;
    for (std::size_t k = 0; k < pairs.size(); k += 2) mine.push_back({pairs[k], pairs[k + 1], 1});
    std::vector<ComponentPart> all = joined_parts(on_.world(), std::move(mine));
    std::vector<std::uint64_t> keys, names;
    for (const ComponentPart& component : all)
      keys.push_back(component.part), names.push_back(component.least);
    const auto by_key = on_.array(std::span<const std::uint64_t>(keys));
    const auto of_key = on_.array(std::span<const std::uint64_t>(names));
    const std::uint64_t *const key = by_key.data(), *const least = of_key.data();
    const std::uint64_t size = keys.size();
    on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const std::uint64_t at = lower_bound(key, 0, size, part[row]);
      if (at < size && key[at] == part[row]) label[row] = least[at];
    });
    return all;
  }

 private:
  const Operators& on_;
  const GraphView view_;
  typename Operators::template Values<std::uint64_t> parts_;  // of PartKey, by slot
  // By slot: the least bid that reaches the row, and the least that it reaches. Between rounds,
  // from_ tells which rows are trimmed. At the end, to_ has the labels of own rows.
  typename Operators::template Values<std::uint64_t> from_, to_;
  typename Operators::template Values<std::uint64_t> left_;  // live edges, while rows are trimmed
  typename Operators::Frontier live_, trimmed_, reached_, reaching_;
  std::uint64_t count_ = 0, largest_ = 0;
};

}  // namespace plait
