// PageRank: for every vertex the chance that a walker is there, who follows a random edge with the
// chance `damping`, and else begins anew at any vertex, or at the source if there is one (Page,
// Brin, Motwani and Winograd, "The PageRank citation ranking", 1999). From vertices without outward
// edges the walker begins anew, too. Parallel edges count as often as they are; edges may be
// followed in proportion to their weights.
//
// In an iteration each row adds what the rows at its inward edges give, and says what it gives:
// its rank over the number of its outward edges, or the sum of their weights. Ranks are sums in
// double precision, but what rows give is read in single precision, of half the bytes: that is a
// relative error of 2^-24 in a step, and of 2^-24 damping / (1 - damping) in the end. Where this is
// too much, and where edges are weighted, as floats have no room for all quotients by weights, it
// is read in double precision.
//
// Ranks are the same bits whatever the partition is: rows add in the order of sum_edges(), and
// numbers that all rows share are added as integers.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "plait/apps/app.h"
#include "plait/frontier/operators.h"

namespace plait {

// A number between 0 and 2 with so many bits behind the point, and back: sums of these are exact.
inline constexpr double kShareOne = 0x1p60;
PLAIT_HOST_DEVICE inline std::uint64_t share_bits(double share) {
  return static_cast<std::uint64_t>(share * kShareOne);
}
inline double share_of(std::uint64_t bits) { return static_cast<double>(bits) / kShareOne; }

template <class Operators>
class Pagerank {
 public:
  explicit Pagerank(const Operators& on)
      : on_(on),
        view_(on.view()),
        ranks_(on.template array<double>(view_.own, 0)),
        outward_(on.template array<double>(view_.own, 0)) {}

  void run(const AppSettings& settings) {
    weighted_ = settings.get<bool>("weighted");
    damping_ = settings.get<double>("damping");
    tolerance_ = settings.get<double>("tolerance");
    most_ = settings.get<std::uint64_t>("iterations");
    personal_ = settings.get<std::optional<std::uint64_t>>("source").has_value();
    source_ = kNone;
    if (personal_)
      source_ =
          on_.graph().row_of(*settings.get<std::optional<std::uint64_t>>("source")).value_or(kNone);
    add_outward();
    // For floats: the error is at most 4.4e-7 then, and changes below the tolerance can be told.
    constexpr double kMostDamping = 0.88, kLeastTolerance = 1e-6;
    weighted_ || damping_ > kMostDamping || tolerance_ < kLeastTolerance ? iterate<double>()
                                                                         : iterate<float>();
  }

  std::vector<AppFact> facts() const {
    const GraphView view = view_;
    const double* const rank = ranks_.data();
    // Ranks are not negative, so that their bits are in their order.
    std::uint64_t most = on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return __builtin_bit_cast(std::uint64_t, rank[row]);
    });
    on_.world().all_reduce_max(std::span(&most, 1));
    const std::uint64_t of_all = most;
    std::uint64_t top = ~on_.greatest(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return __builtin_bit_cast(std::uint64_t, rank[row]) == of_all ? ~view.number(row) : 0;
    });
    on_.world().all_reduce_min(std::span(&top, 1));
    return {{"iterations", iterations_}, {"change", change_}, {"top", top}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const double* const rank = ranks_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return rank[row]; });
  }

  // Finds for each row the number of its outward edges, or the sum of their weights.
  void add_outward() {
    const SlotEdges out = view_.out;
    double* const outward = outward_.data();
    if (!weighted_)
      return on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
        outward[row] = static_cast<double>(out.degree(row));
      });
    on_.template sum_edges<double>(
        out,
        [=] PLAIT_HOST_DEVICE(std::uint64_t, Slot, EdgeOffset e) { return double{out.weight(e)}; },
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, double sum) {
          outward[row] = sum;
          return TwoSums{};
        });
  }

  // Iterates until ranks hardly change. Shares are what rows give, of type Share.
  template <class Share>
  void iterate() {
    auto given = on_.template slots<Share>(0), next = on_.template slots<Share>(0);
    double lost = begin(given);
    iterations_ = 0;
    change_ = std::numeric_limits<double>::infinity();
    while (iterations_ < most_ && change_ >= tolerance_) {
      on_.pull(given);
      const TwoSums sums = follow(given, next, lost);
      std::uint64_t of_all[2] = {sums.first, sums.second};
      on_.world().all_reduce_sum(std::span(of_all));
      change_ = share_of(of_all[0]), lost = share_of(of_all[1]);
      std::swap(given, next);
      ++iterations_;
    }
  }

  // Gives all rows the same rank. Returns the share of all ranks' rows without outward edges.
  template <class Share>
  double begin(typename Operators::template Values<Share>& given) {
    const double first = 1 / static_cast<double>(on_.graph().vertices());
    double* const rank = ranks_.data();
    const double* const outward = outward_.data();
    Share* const to = given.data();
    std::uint64_t lost = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      rank[row] = first;
      to[row] = outward[row] > 0 ? static_cast<Share>(first / outward[row]) : Share{0};
      return outward[row] > 0 ? 0 : share_bits(first);
    });
    on_.world().all_reduce_sum(std::span(&lost, 1));
    return share_of(lost);
  }

  // Follows all edges once. Returns by how much ranks have changed, and the ranks of rows without
  // outward edges, as share_bits().
  template <class Share>
  TwoSums follow(const typename Operators::template Values<Share>& given,
                 typename Operators::template Values<Share>& next, double lost) {
    const SlotEdges in = view_.in;
    const Share* const from = given.data();
    Share* const to = next.data();
    double* const rank = ranks_.data();
    const double* const outward = outward_.data();
    const double damping = damping_, anew = 1 - damping + damping * lost;
    const double everywhere = personal_ ? 0 : anew / static_cast<double>(on_.graph().vertices());
    const double at_source = personal_ ? anew : 0;
    const std::uint64_t source = source_;
    const bool weighted = weighted_;
    return on_.template sum_edges<double>(
        in,
        [=] PLAIT_HOST_DEVICE(std::uint64_t, Slot slot, EdgeOffset e) {
          return weighted ? from[slot] * double{in.weight(e)} : double{from[slot]};
        },
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, double sum) {
          const double now = damping * sum + everywhere + (row == source ? at_source : 0);
          const double before = rank[row];
          rank[row] = now;
          const bool leads = outward[row] > 0;
          to[row] = leads ? static_cast<Share>(now / outward[row]) : Share{0};
          return TwoSums{share_bits(now > before ? now - before : before - now),
                         leads ? 0 : share_bits(now)};
        });
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  const Operators& on_;
  const GraphView view_;
  typename Operators::template Values<double> ranks_, outward_;  // of own rows
  double damping_ = 0, tolerance_ = 0;
  std::uint64_t most_ = 0;
  bool weighted_ = false, personal_ = false;
  std::uint64_t source_ = kNone;  // the row where walks begin, if this rank has it
  std::uint64_t iterations_ = 0;
  double change_ = 0;  // of all ranks together, in the last iteration
};

}  // namespace plait
