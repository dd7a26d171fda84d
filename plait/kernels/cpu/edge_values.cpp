// Values of edges on the CPU. The time goes into fetching rows of b, so each edge's row is read
// once per operation, and rows are fetched ahead of their use.
#include "plait/kernels/edge_values.h"

#include <algorithm>
#include <vector>

#include "plait/base/error.h"
#include "plait/kernels/cpu/fast_exp.h"
#include "plait/kernels/cpu/fold_rows.h"
#include "plait/kernels/edge_term.h"
#include "plait/kernels/float8.h"

namespace plait {
namespace {

// The arrays of one edge.
template <EdgeTerm kTerm, bool kOfEdge>
struct Terms {
  const float *a, *b, *m, *factor;
  Float8 slope;

  // `edge`: the edge's place in the lists; `row`: the row of a.
  Terms(const EdgeValues& args, std::uint64_t row, EdgeOffset edge)
      : a(reads_a(kTerm) ? args.a + row * args.width() : nullptr),
        b(reads_b(kTerm) ? args.edges.x.row(args.edges.columns[edge]) : nullptr),
        m(kOfEdge ? args.m + args.place[edge] * args.width() : nullptr),
        factor(args.factor),
        slope(Float8::all(args.slope)) {}

  // Returns the terms of columns c .. c + 7; of lanes that are not loaded, 0.
  template <class Lanes>
  [[gnu::always_inline]] Float8 at(std::uint64_t c, const Lanes& lanes) const {
    const Float8 zero = Float8::all(0);
    return term_of<kTerm>(reads_a(kTerm) ? lanes.load(a + c) : zero,
                          reads_b(kTerm) ? lanes.load(b + c) : zero,
                          kOfEdge ? lanes.load(m + c) : zero,
                          reads_factor(kTerm) ? lanes.load(factor + c) : zero, slope, zero);
  }
};

// Values of edges are in the caller's order: fetches them ahead of their use.
class ValueFetcher {
 public:
  // result: edges x result_width floats that are written, or null.
  explicit ValueFetcher(const EdgeValues& args, float* result = nullptr,
                        std::uint64_t result_width = 0)
      : place_(args.place),
        last_(args.edges.end.empty() ? 0 : args.edges.end.back() - 1),
        arrays_{{args.m, args.width()}, {args.weights, args.heads}, {result, result_width}} {}

  // Called at each edge.
  [[gnu::always_inline]] void at(EdgeOffset edge) const {
    const std::uint64_t place = place_[std::min(edge + kEdgesAhead, last_)];
    for (const auto& [values, width] : arrays_)
      if (values != nullptr)
        for (std::uint64_t c = 0; c < width; c += kLineFloats)
          __builtin_prefetch(values + place * width + c);
  }

 private:
  static constexpr EdgeOffset kEdgesAhead = 24;

  const std::uint32_t* place_;
  EdgeOffset last_;
  std::pair<const float*, std::uint64_t> arrays_[3];  // first float, floats per edge
};

// Heads of fewer than eight features: eight columns belong to several of them.
class NarrowHeads {
 public:
  NarrowHeads(std::uint64_t heads, std::uint64_t features) : heads_(heads) {
    if (features >= kFloat8 || features == 0) return;
    for (std::uint64_t first = 0; first < features; ++first) {
      int head[kFloat8];
      for (std::uint64_t i = 0; i < kFloat8; ++i)
        head[i] = static_cast<int>((first + i) / features);
      moves_.emplace_back(head);
    }
    for (std::uint64_t c = 0; c < heads * features; c += kFloat8)
      begins_.push_back({c / features, c % features});
  }
  // Returns, for each of the columns c .. c + 7, the weight of its head; w has one per head, and c
  // is a multiple of 8.
  [[gnu::always_inline]] Float8 spread(const float* w, std::uint64_t c) const {
    const Begin at = begins_[c / kFloat8];
    const FirstLanes part(static_cast<int>(std::min<std::uint64_t>(heads_ - at.head, kFloat8)));
    return moves_[at.column](part.load(w + at.head));
  }

 private:
  struct Begin {
    std::uint64_t head, column;  // a head, and a column of it
  };
  std::uint64_t heads_;
  std::vector<LaneMove> moves_;  // from a weight per head to one per column; by first column
  std::vector<Begin> begins_;    // of each eight columns
};

// Calls put(c, lanes, weights, terms) for all columns, eight at a time.
template <class Of, class Put>
[[gnu::always_inline]] inline void each_column(const EdgeValues& args, const NarrowHeads& narrow,
                                               EdgeOffset edge, const Of& terms, Put&& put) {
  const float* const w =
      args.weights == nullptr ? nullptr : args.weights + args.place[edge] * args.heads;
  const auto with_weight = [&](std::uint64_t begin, std::uint64_t end, Float8 weight) {
    by_eight(begin, end, [&](std::uint64_t c, const auto& lanes) {
      put(c, lanes, weight, terms.at(c, lanes));
    });
  };
  if (w == nullptr) return with_weight(0, args.width(), Float8::all(1));
  if (args.features >= kFloat8) {
    for (std::uint64_t k = 0; k < args.heads; ++k)
      with_weight(k * args.features, (k + 1) * args.features, Float8::all(w[k]));
  } else {
    by_eight(0, args.width(), [&](std::uint64_t c, const auto& lanes) {
      put(c, lanes, narrow.spread(w, c), terms.at(c, lanes));
    });
  }
}

// Edges whose terms are added one after the other; the sums of blocks are added then, so that
// errors do not grow with the length of a row.
constexpr EdgeOffset kEdgeValuesBlock = 64;

// Record: the sum.
template <EdgeTerm kTerm, bool kOfEdge>
class SumKernel {
 public:
  SumKernel(const EdgeValues& args, float* y)
      : args_(args), y_(y), narrow_(args.heads, args.features), values_(args) {}

  void fold(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher,
            float* record) {
    std::fill_n(record, args_.width(), 0.0f);
    for (EdgeOffset e = begin; e < end; e += kEdgeValuesBlock) {
      block_.assign(args_.width(), 0.0f);
      add(row, e, std::min(e + kEdgeValuesBlock, end), fetcher);
      join(record, block_.data());
    }
  }
  void join(float* record, const float* later) {
    for (std::uint64_t c = 0; c < args_.width(); ++c) record[c] += later[c];
  }
  void finish(std::uint64_t row, const float* record) {
    std::copy_n(record, args_.width(), y_ + row * args_.width());
  }

 private:
  // Adds edges to the block's sums.
  void add(std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher) {
    float* const sum = block_.data();
    for (EdgeOffset e = begin; e < end; ++e) {
      fetcher.fetch(1);
      values_.at(e);
      each_column(args_, narrow_, e, Terms<kTerm, kOfEdge>(args_, row, e),
                  [&](std::uint64_t c, const auto& lanes, Float8 weight, Float8 term) {
                    lanes.store(sum + c, fma(weight, term, lanes.load(sum + c)));
                  });
    }
  }

  EdgeValues args_;
  float* y_;
  NarrowHeads narrow_;
  ValueFetcher values_;
  std::vector<float> block_;
};

// Calls work(row, begin, end, fetcher) for all edges, in pieces of a row, by all threads.
template <class Work>
void each_piece(const EdgeRows& edges, std::uint64_t width, Work&& work) {
  const RowTasks cut = cut_rows(edges.begin, edges.end);
  const auto ahead = [&](const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows) {
    return RowFetcher(edges.x, edges.columns, width, LookAhead(begin, end, rows));
  };
  parallel_for(cut.tasks.size() + cut.pieces.size(), [&](std::size_t i) {
    if (i < cut.tasks.size()) {
      const RowRange rows = cut.tasks[i];
      RowFetcher fetcher =
          ahead(&edges.begin[rows.begin], &edges.end[rows.begin], rows.end - rows.begin);
      for (std::uint64_t row = rows.begin; row < rows.end; ++row)
        if (edges.end[row] - edges.begin[row] <= kPieceEdges)
          work(row, edges.begin[row], edges.end[row], fetcher);
    } else {
      const RowPiece& piece = cut.pieces[i - cut.tasks.size()];
      RowFetcher fetcher = ahead(&piece.begin, &piece.end, 1);
      work(piece.row, piece.begin, piece.end, fetcher);
    }
  });
}

// Returns the sum of terms begin .. end - 1, in an order that their number decides.
template <class Of>
[[gnu::always_inline]] inline float sum_of(const Of& terms, std::uint64_t begin,
                                           std::uint64_t end) {
  Float8 sum = Float8::all(0);
  by_eight(begin, end, [&](std::uint64_t c, const auto& part) { sum = sum + terms.at(c, part); });
  float lanes[kFloat8];
  sum.store(lanes);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Writes the sums of an edge's terms, one per head, to z.
template <class Of>
[[gnu::always_inline]] inline void sums_of_heads(const EdgeValues& args, const Of& terms,
                                                 float* z) {
  const std::uint64_t features = args.features, width = args.width();
  if (features >= kFloat8 || features == 0) {
    for (std::uint64_t k = 0; k < args.heads; ++k)
      z[k] = sum_of(terms, k * features, (k + 1) * features);
    return;
  }
  float sum = 0;
  std::uint64_t left = features;  // columns of this head
  by_eight(0, width, [&](std::uint64_t c, const auto& lanes) {
    float columns[kFloat8];
    terms.at(c, lanes).store(columns);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(width - c, kFloat8); ++i) {
      sum += columns[i];
      if (--left > 0) continue;
      *z++ = sum;
      sum = 0;
      left = features;
    }
  });
}

// Calls body(term, whether m is there), both as constants.
template <class WithTerm, class Body>
void dispatch(const EdgeValues& args, WithTerm&& with, Body&& body) {
  with(args.term, [&](auto term) {
    args.m == nullptr ? body(term, std::false_type{}) : body(term, std::true_type{});
  });
}

// The softmax of one row, all heads at once; `most` and `total` have `heads` floats.
void softmax_of_row(const EdgeSoftmax& args, std::uint64_t row, float* most, double* total,
                    float* p) {
  const EdgeOffset begin = args.edges.begin[row], end = args.edges.end[row];
  const std::uint64_t heads = args.heads;
  const auto each = [&](auto&& body) __attribute__((always_inline)) {
    for (EdgeOffset e = begin; e < end; ++e) {
      const std::uint64_t first = args.place[e] * heads;
      for (std::uint64_t k = 0; k < heads; ++k) body(first + k, k);
    }
  };
  std::fill_n(total, heads, 0.0);
  if (args.dp != nullptr) {
    each([&](std::uint64_t at, std::uint64_t k) {
      total[k] += double{args.z[at]} * double{args.dp[at]};
    });
    each([&](std::uint64_t at, std::uint64_t k) {
      p[at] = args.z[at] * static_cast<float>(double{args.dp[at]} - total[k]);
    });
    return;
  }
  std::fill_n(most, heads, -std::numeric_limits<float>::infinity());
  each([&](std::uint64_t at, std::uint64_t k) {
    most[k] = args.z[at] > most[k] ? args.z[at] : most[k];
  });
  each([&](std::uint64_t at, std::uint64_t k) {
    p[at] = fast_exp(args.z[at] - most[k]);
    total[k] += double{p[at]};
  });
  each([&](std::uint64_t at, std::uint64_t k) {
    p[at] = static_cast<float>(double{p[at]} / total[k]);
  });
}

}  // namespace

void edge_scores(const EdgeValues& args, float* z) {
  const auto with = [](EdgeTerm term, auto use) { with_score(term, use); };
  const ValueFetcher values(args, z, args.heads);
  dispatch(args, with, [&](auto term, auto of_edge) {
    each_piece(args.edges, args.width(),
               [&](std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher) {
                 for (EdgeOffset e = begin; e < end; ++e) {
                   fetcher.fetch(1);
                   values.at(e);
                   sums_of_heads(args, Terms<term(), of_edge()>(args, row, e),
                                 z + args.place[e] * args.heads);
                 }
               });
  });
}

void edge_sums(const EdgeValues& args, float* y) {
  if (args.width() == 0) return;
  const auto with = [](EdgeTerm term, auto use) { with_sum(term, use); };
  dispatch(args, with, [&](auto term, auto of_edge) {
    fold_rows(args.edges, {reads_b(term) ? args.width() : 0, args.width()},
              SumKernel<term(), of_edge()>(args, y));
  });
}

void edge_rows(const EdgeValues& args, float* r) {
  const auto with = [](EdgeTerm term, auto use) { with_row(term, use); };
  const NarrowHeads narrow(args.heads, args.features);
  const ValueFetcher values(args, r, args.width());
  dispatch(args, with, [&](auto term, auto of_edge) {
    each_piece(args.edges, reads_b(term) ? args.width() : 0,
               [&](std::uint64_t row, EdgeOffset begin, EdgeOffset end, RowFetcher& fetcher) {
                 for (EdgeOffset e = begin; e < end; ++e) {
                   fetcher.fetch(1);
                   values.at(e);
                   float* const to = r + args.place[e] * args.width();
                   each_column(args, narrow, e, Terms<term(), of_edge()>(args, row, e),
                               [&](std::uint64_t c, const auto& lanes, Float8 weight,
                                   Float8 terms) { lanes.store(to + c, weight * terms); });
                 }
               });
  });
}

void edge_softmax(const EdgeSoftmax& args, float* p) {
  const RowTasks cut = cut_rows(args.edges.begin, args.edges.end);
  std::vector<std::uint64_t> long_rows;
  for (const RowPiece& piece : cut.pieces)
    if (long_rows.empty() || long_rows.back() != piece.row) long_rows.push_back(piece.row);
  parallel_for(cut.tasks.size() + long_rows.size(), [&](std::size_t i) {
    std::vector<float> most(args.heads);
    std::vector<double> total(args.heads);
    if (i >= cut.tasks.size())
      return softmax_of_row(args, long_rows[i - cut.tasks.size()], most.data(), total.data(), p);
    for (std::uint64_t row = cut.tasks[i].begin; row < cut.tasks[i].end; ++row)
      if (args.edges.end[row] - args.edges.begin[row] <= kPieceEdges)
        softmax_of_row(args, row, most.data(), total.data(), p);
  });
}

}  // namespace plait
