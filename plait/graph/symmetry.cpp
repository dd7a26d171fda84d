// Decides whether a graph is symmetric, by a comparison of multisets that no graph can be made to
// fool.
//
// An edge between i and j, i < j, stands for the number r + a i + j + b weight + c k modulo the
// prime 2^61 - 1, where it is the k-th of parallel edges and r, a, b and c are drawn at random. A
// graph is symmetric if its entries below the diagonal and those above it are the same multiset of
// edges. Then the products of their numbers are equal. Else the products are different polynomials
// in the random numbers (polynomials have one factorisation, and different edges are different
// factors), and such polynomials agree in at most degree / prime of all places (Schwartz and
// Zippel).
//
// Products are taken in any order, so neither blocks nor threads change the result.
#include <algorithm>
#include <atomic>
#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/row_grain.h"
#include "plait/graph/validate.h"

namespace plait {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

// Numbers modulo kPrime need not be below it. reduced() gives at most kPrime + 7, and takes any
// number, or a product of one that it gave and another below 2^62.
std::uint64_t reduced(std::uint64_t x) { return (x & kPrime) + (x >> 61); }
std::uint64_t times(std::uint64_t x, std::uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return reduced((static_cast<std::uint64_t>(product) & kPrime) +
                 static_cast<std::uint64_t>(product >> 61));
}

// Keeps two products and multiplies them by turns, so that a multiplication need not wait for the
// one before it.
class Product {
 public:
  void multiply(std::uint64_t factor) {
    here_ = times(here_, factor);
    std::swap(here_, there_);
  }
  std::uint64_t value() const { return times(here_, there_) % kPrime; }

 private:
  std::uint64_t here_ = 1, there_ = 1;
};

// Tells whether as many entries are below the diagonal as above it; products of different numbers
// of factors need not be compared. Entries count as SymmetryCheck takes them.
template <VertexId V>
bool is_balanced(const Csr<V>& graph) {
  std::atomic<std::int64_t> more_below{0};
  parallel_blocks(graph.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::int64_t more = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = graph.row(i);
      const auto rest = std::ranges::find_if(row, [i](V j) { return j >= i; });
      const auto above = std::find_if(rest, row.end(), [i](V j) { return j != i; });
      more += (rest - row.begin()) - (row.end() - above);
    }
    more_below += more;
  });
  return more_below == 0;
}

class SymmetryCheck {
 public:
  SymmetryCheck() {
    std::random_device random;
    for (std::uint64_t* key : {&free_, &low_, &weight_, &parallel_})
      *key = (std::uint64_t{random()} << 32 | random()) % kPrime;
  }

  template <VertexId V>
  bool operator()(const Csr<V>& graph) const {
    if (!is_balanced(graph)) return false;
    const std::size_t blocks = (graph.vertices() + kRowGrain - 1) / kRowGrain;
    std::vector<std::uint64_t> below(blocks), above(blocks);
    parallel_blocks(graph.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
      Product lower, upper;
      for (std::size_t i = begin; i < end; ++i) multiply_row(graph, i, lower, upper);
      below[begin / kRowGrain] = lower.value();
      above[begin / kRowGrain] = upper.value();
    });
    Product lower, upper;
    for (const std::uint64_t value : below) lower.multiply(value);
    for (const std::uint64_t value : above) upper.multiply(value);
    return lower.value() == upper.value();
  }

 private:
  // The entries of a row that are below the diagonal come first. In a row that is not sorted,
  // entries after one above the diagonal count as above it, too.
  template <VertexId V>
  void multiply_row(const Csr<V>& graph, std::uint64_t i, Product& lower, Product& upper) const {
    const V* const neighbours = graph.neighbours.data();
    const EdgeOffset end = graph.offsets[i + 1];
    const std::uint64_t as_high = free_ + i, as_low = reduced(free_ + times(low_, i));
    EdgeOffset e = graph.offsets[i];
    std::uint64_t k = 0;
    const auto with_weight = [&](std::uint64_t number) {
      if (!graph.weighted()) return number;
      k = e > graph.offsets[i] && neighbours[e - 1] == neighbours[e] ? k + 1 : 0;
      const float weight = graph.weights[e] + 0.0f;  // turns -0 into 0, which is equal to it
      return reduced(number + times(weight_, std::bit_cast<std::uint32_t>(weight)) +
                     times(parallel_, k));
    };
    for (; e < end && neighbours[e] < i; ++e)
      lower.multiply(with_weight(reduced(as_high + times(low_, neighbours[e]))));
    while (e < end && neighbours[e] == i) ++e;
    for (; e < end; ++e) upper.multiply(with_weight(as_low + neighbours[e]));
  }

  std::uint64_t free_, low_, weight_, parallel_;  // r, a, b and c
};

}  // namespace

bool is_symmetric(const AnyCsr& any) {
  const Timed timed("check symmetry");
  return std::visit(SymmetryCheck(), any);
}

std::optional<RowEntry> find_one_way_edge(const AnyCsr& any) {
  if (is_symmetric(any)) return std::nullopt;
  return std::visit(
      [](const auto& graph) -> std::optional<RowEntry> {
        // Returns the place of the first such edge in row i, or the size of the row.
        const auto first_unmatched = [&](std::size_t i) {
          const auto row = graph.row(i);
          for (std::size_t k = 0; k < row.size(); ++k) {
            const auto reverse = graph.row(row[k]);
            const auto [low, high] = std::equal_range(reverse.begin(), reverse.end(),
                                                      static_cast<decltype(row[k] + 0)>(i));
            const auto first = std::lower_bound(row.begin(), row.end(), row[k]);
            const auto nth = (row.begin() + static_cast<std::ptrdiff_t>(k)) - first;
            if (high - low <= nth) return k;
            const EdgeOffset back =
                graph.offsets[row[k]] + static_cast<EdgeOffset>(low - reverse.begin() + nth);
            if (graph.weight(graph.offsets[i] + k) != graph.weight(back)) return k;
          }
          return row.size();
        };
        const std::size_t i =
            first_where(graph.vertices(), std::size_t{1} << 10,
                        [&](std::size_t k) { return first_unmatched(k) < graph.degree(k); });
        if (i == graph.vertices()) return std::nullopt;
        return RowEntry{i, graph.row(i)[first_unmatched(i)]};
      },
      any);
}

}  // namespace plait
