// Values of edges as they are defined, edge by edge, in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plait/base/error.h"
#include "plait/kernels/edge_term.h"

namespace plait {
namespace {

// Calls use(row, number of the edge, term of each column) for every edge.
template <class WithTerm, class Use>
void each_edge(const EdgeValues& args, WithTerm&& with, Use&& use) {
  const std::uint64_t width = args.width();
  std::vector<double> terms(width);
  with(args.term, [&](auto term) {
    for (std::uint64_t i = 0; i < args.edges.begin.size(); ++i)
      for (EdgeOffset e = args.edges.begin[i]; e < args.edges.end[i]; ++e) {
        const std::uint64_t place = args.place[e];
        for (std::uint64_t c = 0; c < width; ++c) {
          const auto read = [&](const float* rows, std::uint64_t row) {
            return rows == nullptr ? 0.0 : double{rows[row * width + c]};
          };
          const double b = reads_b(term) ? double{args.edges.x.row(args.edges.columns[e])[c]} : 0.0;
          terms[c] = term_of<term()>(read(args.a, i), b, read(args.m, place), read(args.factor, 0),
                                     double{args.slope});
        }
        use(i, place, terms);
      }
  });
}

double weight_of(const EdgeValues& args, std::uint64_t place, std::uint64_t column) {
  if (args.weights == nullptr) return 1;
  return double{args.weights[place * args.heads + column / args.features]};
}

}  // namespace

void edge_scores_reference(const EdgeValues& args, float* z) {
  const auto with = [](EdgeTerm term, auto use) { with_score(term, use); };
  each_edge(args, with, [&](std::uint64_t, std::uint64_t place, const std::vector<double>& terms) {
    for (std::uint64_t k = 0; k < args.heads; ++k) {
      double sum = 0;
      for (std::uint64_t c = 0; c < args.features; ++c) sum += terms[k * args.features + c];
      z[place * args.heads + k] = static_cast<float>(sum);
    }
  });
}

void edge_sums_reference(const EdgeValues& args, float* y) {
  const std::uint64_t width = args.width();
  std::vector<double> sums(args.edges.begin.size() * width);
  const auto with = [](EdgeTerm term, auto use) { with_sum(term, use); };
  each_edge(args, with,
            [&](std::uint64_t i, std::uint64_t place, const std::vector<double>& terms) {
              for (std::uint64_t c = 0; c < width; ++c)
                sums[i * width + c] += weight_of(args, place, c) * terms[c];
            });
  std::transform(sums.begin(), sums.end(), y, [](double sum) { return static_cast<float>(sum); });
}

void edge_rows_reference(const EdgeValues& args, float* r) {
  const auto with = [](EdgeTerm term, auto use) { with_row(term, use); };
  each_edge(args, with, [&](std::uint64_t, std::uint64_t place, const std::vector<double>& terms) {
    for (std::uint64_t c = 0; c < args.width(); ++c)
      r[place * args.width() + c] = static_cast<float>(weight_of(args, place, c) * terms[c]);
  });
}

void edge_softmax_reference(const EdgeSoftmax& args, float* p) {
  for (std::uint64_t i = 0; i < args.edges.begin.size(); ++i)
    for (std::uint64_t k = 0; k < args.heads; ++k) {
      const auto at = [&](EdgeOffset e) { return args.place[e] * args.heads + k; };
      double most = -std::numeric_limits<double>::infinity(), total = 0;
      for (EdgeOffset e = args.edges.begin[i]; e < args.edges.end[i]; ++e)
        most = std::max(most, double{args.z[at(e)]});
      for (EdgeOffset e = args.edges.begin[i]; e < args.edges.end[i]; ++e)
        total += args.dp ? double{args.z[at(e)]} * double{args.dp[at(e)]}
                         : std::exp(double{args.z[at(e)]} - most);
      for (EdgeOffset e = args.edges.begin[i]; e < args.edges.end[i]; ++e) {
        const double z = double{args.z[at(e)]};
        p[at(e)] = static_cast<float>(args.dp ? z * (double{args.dp[at(e)]} - total)
                                              : std::exp(z - most) / total);
      }
    }
}

}  // namespace plait
