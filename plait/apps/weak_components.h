// Weakly connected components: for every vertex the least number of a vertex that it is connected
// with, whichever way edges lead.
//
// Each rank first joins the slots that its edges connect, by trees of slots whose roots are hooked
// to lesser ones (Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation
// via subgraph sampling", IPDPS 2018, section 4: Afforest). Two edges of each row join most of the
// slots that will be joined; then rows of the largest tree need not look at their other edges to
// own rows, whose other end looks at them.
//
// Then ranks compare the labels that they give to the same vertices. Pairs that differ are few, as
// most vertices of a rank are in one tree by now. All ranks join them in the same way. So a search
// takes one exchange of values and one of pairs, however long the paths between ranks are.
#pragma once

#include <algorithm>
#include <utility>

#include "plait/apps/app.h"
#include "plait/base/lower_bound.h"
#include "plait/base/random.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/world/gather.h"

namespace plait {

// Joins the trees of two slots. Parents have lesser numbers.
PLAIT_HOST_DEVICE inline void join_trees(std::uint32_t* parent, std::uint32_t a, std::uint32_t b) {
  std::uint32_t one = load(parent + a), other = load(parent + b);
  while (one != other) {
    const std::uint32_t high = one > other ? one : other, low = one > other ? other : one;
    const std::uint32_t above = load(parent + high);
    if (above == low) return;
    if (above == high && replace_if(parent + high, high, low) == high) return;
    one = load(parent + load(parent + high));
    other = load(parent + low);
  }
}

// Makes the slot a child of its root. Threads shorten the paths that others go.
PLAIT_HOST_DEVICE inline void shorten_path(std::uint32_t* parent, std::uint32_t slot) {
  std::uint32_t above = load(parent + slot);
  for (std::uint32_t next = load(parent + above); next != above; next = load(parent + above)) {
    store(parent + slot, next);
    above = next;
  }
}

// The sizes of some components, by their least vertices.
class ComponentSizes {
 public:
  // A number of vertices of one component.
  struct Part {
    std::uint64_t label, size;
  };

  // Begins a component. Call all_begun() after the last.
  void begin(std::uint64_t label) { labels_.push_back(label); }
  void all_begun() {
    std::ranges::sort(labels_);
    sizes_.resize(labels_.size());
  }
  // Adds vertices. Tells whether the component has been begun.
  bool add(const Part& part) {
    const auto found = std::ranges::lower_bound(labels_, part.label);
    if (found == labels_.end() || *found != part.label) return false;
    sizes_[static_cast<std::size_t>(found - labels_.begin())] += part.size;
    return true;
  }
  std::uint64_t count() const { return labels_.size(); }
  std::uint64_t largest() const { return sizes_.empty() ? 0 : std::ranges::max(sizes_); }

 private:
  std::vector<std::uint64_t> labels_, sizes_;
};

// Two labels that stand for the same component.
struct LabelPair {
  std::uint64_t a, b;
  friend bool operator==(const LabelPair&, const LabelPair&) = default;
};

// Labels that stand for the same component on different ranks: the least for each of them.
class JoinedLabels {
 public:
  explicit JoinedLabels(const std::vector<LabelPair>& pairs);

  // All labels of the pairs, ascending, and the least that each is joined with.
  std::vector<std::uint64_t> labels, least;
};

template <class Operators>
class WeakComponents {
 public:
  explicit WeakComponents(const Operators& on)
      : on_(on),
        view_(on.view()),
        parents_(on.template slots<std::uint32_t>(0)),
        labels_(on.template slots<std::uint64_t>(0)),
        sizes_(on.template slots<std::uint64_t>(0)),
        rest_(on.frontier(view_.all)) {}

  void run() {
    join_own();
    label_trees();
    if (on_.world().size() > 1) join_ranks();
  }

  std::vector<AppFact> facts() {
    count_sizes();
    const GraphView view = view_;
    const std::uint64_t *const label = labels_.data(), *const size = sizes_.data();
    std::uint64_t count = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{label[row] == view.number(row)};
    });
    on_.world().all_reduce_sum(std::span(&count, 1));
    std::uint64_t largest = 0;
    if (on_.world().size() == 1)
      largest =
          on_.greatest(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t s) { return size[s]; });
    else
      largest = largest_of_ranks();
    return {{"components", count}, {"largest", largest}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint64_t* const label = labels_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return static_cast<std::int64_t>(label[row]);
    });
  }

  // Counts the own rows of each tree, by its root. Most are in one tree, whose rows are the others.
  void count_sizes() {
    on_.fill(sizes_, std::uint64_t{0});
    const std::uint32_t* const parent = parents_.data();
    std::uint64_t* const size = sizes_.data();
    if (view_.own == 0) return;
    const std::uint32_t most = on_.get(parents_, frequent_);  // another tree may have taken it in
    const std::uint64_t rest = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (parent[row] == most) return std::uint64_t{0};
      take_sum(size + parent[row], std::uint64_t{1});
      return std::uint64_t{1};
    });
    on_.set(sizes_, most, view_.own - rest);
  }

  // Collective. A component belongs to the owner of its least vertex, which other ranks tell of
  // their vertices.
  std::uint64_t largest_of_ranks() {
    const std::vector<std::uint64_t> labels = on_.first(labels_, view_.slots);
    const std::vector<std::uint64_t> sizes = on_.first(sizes_, view_.slots);
    ComponentSizes mine;
    for (std::size_t row = 0; row < view_.own; ++row)
      if (labels[row] == on_.graph().partition().number(on_.world().rank(), row))
        mine.begin(labels[row]);
    mine.all_begun();
    std::vector<ComponentSizes::Part> others;
    for (std::size_t root = 0; root < sizes.size(); ++root)
      if (sizes[root] > 0 && !mine.add({labels[root], sizes[root]}))
        others.push_back({labels[root], sizes[root]});
    for (const auto& parts : gather_vectors(on_.world(), others))
      for (const ComponentSizes::Part& part : parts) mine.add(part);
    std::uint64_t largest = mine.largest();
    on_.world().all_reduce_max(std::span(&largest, 1));
    return largest;
  }

  // Joins slots by the edges of own rows, and makes all slots children of their roots.
  void join_own() {
    constexpr std::uint64_t kFirstEdges = 2;
    std::uint32_t* const parent = parents_.data();
    const SlotEdges edges = view_.all;
    on_.for_rows(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t s) {
      parent[s] = static_cast<std::uint32_t>(s);
    });
    for (std::uint64_t k = 0; k < kFirstEdges; ++k) {
      on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
        if (edges.degree(row) > k)
          join_trees(parent, static_cast<std::uint32_t>(row), edges.slots[edges.begin[row] + k]);
      });
      shorten_paths();
    }
    const std::uint32_t most = frequent_ = frequent_root();
    const std::uint64_t own = view_.own;
    const bool alone = on_.world().size() == 1;
    rest_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return edges.degree(row) > kFirstEdges && (!alone || parent[row] != most);
    });
    rest_.for_edges([=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset) {
      if (slot < own && !alone && load(parent + row) == most) return;
      join_trees(parent, static_cast<std::uint32_t>(row), slot);
    });
    shorten_paths();
  }

  // Gives each slot the least number of its tree.
  void label_trees() {
    const std::uint32_t* const parent = parents_.data();
    const GraphView view = view_;
    std::uint64_t* const least = sizes_.data();
    std::uint64_t* const label = labels_.data();
    on_.fill(sizes_, ~std::uint64_t{0});
    on_.for_rows(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t s) {
      const std::uint64_t number = view.number(s);
      if (number < load(least + parent[s])) take_min(least + parent[s], number);
    });
    on_.for_rows(view_.slots,
                 [=] PLAIT_HOST_DEVICE(std::uint64_t s) { label[s] = least[parent[s]]; });
  }

  // Joins labels that ranks give to the same vertices.
  void join_ranks() {
    const std::uint64_t own = view_.own, halo = view_.slots - own;
    std::uint64_t* const label = labels_.data();
    auto theirs = on_.template slots<std::uint64_t>(0);
    std::uint64_t* const owners = theirs.data();
    on_.for_rows(own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { owners[row] = label[row]; });
    on_.pull(theirs);

    // Most pairs have been listed before: a slot that has the same pair and is listed is kept by
    // its pair's hash.
    constexpr std::uint64_t kListed = 1 << 16, kNone = ~std::uint64_t{0};
    auto listed = on_.template array<std::uint64_t>(kListed, kNone);
    auto found = on_.template array<std::uint64_t>(2 * halo + 1, 0);
    std::uint64_t *const slot_of = listed.data(), *const pairs = found.data();
    const std::uint32_t* const parent = parents_.data();
    on_.for_rows(halo, [=] PLAIT_HOST_DEVICE(std::uint64_t h) {
      // A slot that an edge reads is in a tree of an own row. On GPUs others may have come along.
      if (parent[own + h] >= own) return;
      const std::uint64_t a = label[own + h], b = owners[own + h];
      if (a == b) return;
      std::uint64_t* const place = slot_of + (a * 31 + b) % kListed;
      const std::uint64_t same = load(place);
      if (same != kNone && label[own + same] == a && owners[own + same] == b) return;
      store(place, h);
      const std::uint64_t at = take_sum(pairs + 2 * halo, std::uint64_t{1});
      pairs[2 * at] = a, pairs[2 * at + 1] = b;
    });
    const std::uint64_t count = on_.get(found, 2 * halo);
    const std::vector<std::uint64_t> listed_pairs = on_.first(found, 2 * count);
    std::vector<LabelPair> mine;
    for (std::size_t k = 0; k < 2 * count; k += 2)
      mine.push_back({listed_pairs[k], listed_pairs[k + 1]});
    std::ranges::sort(mine, {}, [](const LabelPair& pair) { return std::pair(pair.a, pair.b); });
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    relabel(JoinedLabels(gather_joined(on_.world(), mine)));
  }

  void relabel(const JoinedLabels& joined) {
    const auto from = on_.array(std::span<const std::uint64_t>(joined.labels));
    const auto to = on_.array(std::span<const std::uint64_t>(joined.least));
    const std::uint64_t *const before = from.data(), *const after = to.data();
    const std::uint64_t count = joined.labels.size();
    std::uint64_t* const label = labels_.data();
    on_.for_rows(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const std::uint64_t at = lower_bound(before, 0, count, label[row]);
      if (at < count && before[at] == label[row]) label[row] = after[at];
    });
  }

  void shorten_paths() {
    std::uint32_t* const parent = parents_.data();
    on_.for_rows(view_.slots, [=] PLAIT_HOST_DEVICE(std::uint64_t s) {
      shorten_path(parent, static_cast<std::uint32_t>(s));
    });
  }

  // Returns the root that most of some rows have.
  std::uint32_t frequent_root() {
    constexpr std::uint64_t kSample = 1024;
    if (view_.own == 0) return 0;
    auto sample = on_.template array<std::uint32_t>(kSample, 0);
    std::uint32_t* const to = sample.data();
    const std::uint32_t* const parent = parents_.data();
    const std::uint64_t own = view_.own;
    on_.for_rows(kSample,
                 [=] PLAIT_HOST_DEVICE(std::uint64_t i) { to[i] = parent[Philox(0)(i)[0] % own]; });
    std::vector<std::uint32_t> roots = on_.first(sample, kSample);
    std::ranges::sort(roots);
    std::uint32_t most = roots[0];
    std::size_t times = 0;
    for (std::size_t i = 0; i < roots.size();) {
      const auto end =
          static_cast<std::size_t>(std::ranges::upper_bound(roots, roots[i]) - roots.begin());
      if (end - i > times) times = end - i, most = roots[i];
      i = end;
    }
    return most;
  }

 private:
  const Operators& on_;
  const GraphView view_;
  typename Operators::template Values<std::uint32_t> parents_;  // by slot
  typename Operators::template Values<std::uint64_t> labels_;   // by slot
  // By root: the least number of its tree while labels are found, then its own rows.
  typename Operators::template Values<std::uint64_t> sizes_;
  typename Operators::Frontier rest_;
  std::uint32_t frequent_ = 0;  // a slot of a tree that has most of some rows
};

}  // namespace plait
