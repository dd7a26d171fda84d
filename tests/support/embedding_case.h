// Embedding tables with bags of all ranks, and their sums and gradients in plain loops, for tests
// on the CPU and on GPUs.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "plait/embedding/embeddings.h"
#include "tests/support/table_rows.h"
#include "tests/world/ranks.h"

namespace plait::test {

inline constexpr EmbeddingSplit kSplits[] = {EmbeddingSplit::replicated, EmbeddingSplit::table,
                                             EmbeddingSplit::columns, EmbeddingSplit::rows};

// The bags of one rank in a step. Some are empty, and some ids repeat.
struct RankBags {
  std::vector<std::int64_t> ids, offsets;
  std::vector<float> weights;

  RankBags(const BagTables& tables, std::uint64_t per_table, unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t t = 0; t < tables.rows.size(); ++t)
      for (std::uint64_t b = 0; b < per_table; ++b) {
        offsets.push_back(static_cast<std::int64_t>(ids.size()));
        const unsigned size = tables.rows[t] == 0 || random() % 4 == 0 ? 0 : random() % 9;
        for (unsigned k = 0; k < size; ++k) {
          ids.push_back(static_cast<std::int64_t>(random() % tables.rows[t]));
          weights.push_back(static_cast<float>(random() % 17) / 8 - 1);
        }
      }
  }
  std::int64_t end(std::size_t bag) const {
    return bag + 1 < offsets.size() ? offsets[bag + 1] : static_cast<std::int64_t>(ids.size());
  }
};

struct EmbeddingCase {
  std::uint64_t width = 5;
  BagMode mode = BagMode::sum;
  bool weighted = false, by_frequency = false;
  std::vector<EmbeddingTable> tables;
  BagTables as;  // the same tables

  void add(std::uint64_t rows, EmbeddingSplit split, int owner, std::int64_t padding = -1) {
    tables.push_back({rows, split, owner});
    as.rows.push_back(rows);
    as.padding.push_back(padding);
  }
  EmbeddingRules rules() const {
    return {.padding = as.padding, .mode = mode, .by_frequency = by_frequency};
  }
  std::string text() const {
    return fmt::format("width {}, {} tables, mode {}, weighted {}, by frequency {}: ", width,
                       tables.size(), to_string(mode), weighted, by_frequency);
  }
};

// A place among ids begin .. end - 1 of a bag of table t.
struct PlaceInBag {
  std::size_t t;
  std::int64_t begin, end, at;
};
// Tells whether a column of this row is greater than those before, and as great as those behind.
inline bool is_first_maximum(const EmbeddingCase& c, const RankBags& bags, const PlaceInBag& p,
                             std::size_t column) {
  const auto id = [&](std::int64_t i) { return bags.ids[static_cast<std::size_t>(i)]; };
  const auto value = [&](std::int64_t i) {
    return table_value(static_cast<std::uint64_t>(id(i)) + p.t, column);
  };
  for (std::int64_t i = p.begin; i < p.end; ++i) {
    if (id(i) == c.as.padding[p.t]) continue;
    if (i < p.at ? value(i) >= value(p.at) : value(i) > value(p.at)) return false;
  }
  return true;
}

// Calls use(bag of the table, id, weight by column) for each id of a table that counts.
template <class Use>
void for_ids(const EmbeddingCase& c, const RankBags& bags, std::size_t t, Use use) {
  const std::size_t per_table = bags.offsets.size() / c.tables.size();
  for (std::size_t b = 0; b < per_table; ++b) {
    const auto begin = bags.offsets[t * per_table + b], end = bags.end(t * per_table + b);
    double count = 0;
    for (auto i = begin; i < end; ++i)
      count += bags.ids[static_cast<std::size_t>(i)] != c.as.padding[t] ? 1 : 0;
    for (auto i = begin; i < end; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (bags.ids[k] == c.as.padding[t]) continue;
      const auto id = static_cast<std::uint64_t>(bags.ids[k]);
      const double weight =
          (c.weighted ? bags.weights[k] : 1.0) / (c.mode == BagMode::mean ? count : 1.0);
      use(b, id, [&](std::size_t column) {
        return c.mode != BagMode::max || is_first_maximum(c, bags, {t, begin, end, i}, column)
                   ? weight
                   : 0.0;
      });
    }
  }
}

inline std::vector<double> expected_sums(const EmbeddingCase& c, const RankBags& bags) {
  const std::size_t tables = c.tables.size();
  std::vector<double> out(bags.offsets.size() * c.width);
  for (std::size_t t = 0; t < tables; ++t)
    for_ids(c, bags, t, [&](std::size_t b, std::uint64_t id, auto weight) {
      for (std::size_t k = 0; k < c.width; ++k)
        out[(b * tables + t) * c.width + k] += weight(k) * double{table_value(id + t, k)};
    });
  return out;
}

inline float gradient_value(int rank, std::size_t i) {
  return table_value(static_cast<std::uint64_t>(rank) + 5, i);
}

// A sum, and the sum of its terms' magnitudes, which rounding grows with.
struct ExpectedSum {
  double value = 0, magnitude = 0;
};
using ExpectedRows = std::map<std::uint64_t, std::vector<ExpectedSum>>;

// Returns by row its gradient from the bags of all ranks.
inline ExpectedRows expected_gradient(const EmbeddingCase& c, const std::vector<RankBags>& ranks,
                                      std::size_t t) {
  ExpectedRows rows;
  std::map<std::uint64_t, double> ids;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for_ids(c, ranks[rank], t, [&](std::size_t b, std::uint64_t id, auto weight) {
      auto& row = rows[id];
      row.resize(c.width);
      ++ids[id];
      for (std::size_t k = 0; k < c.width; ++k) {
        const double term =
            weight(k) *
            double{gradient_value(static_cast<int>(rank), (b * c.tables.size() + t) * c.width + k)};
        row[k].value += term, row[k].magnitude += std::abs(term);
      }
    });
  for (auto& [id, row] : rows)
    for (ExpectedSum& sum : row) {
      sum.value /= c.by_frequency ? ids[id] : 1.0;
      sum.magnitude /= c.by_frequency ? ids[id] : 1.0;
    }
  return rows;
}

inline void expect_near(double found, double wanted, const std::string& what,
                        double magnitude = 0) {
  expect(std::abs(found - wanted) <= 1e-4 * (1 + std::abs(wanted)) + 1e-6 * magnitude,
         fmt::format("{}{} is not {}", what, found, wanted));
}

// Compares the gradients of the weights of a rank's ids; none are wanted if there are none.
inline void check_weights(const EmbeddingCase& c, const RankBags& bags, int rank,
                          const std::vector<float>& found) {
  if (found.empty()) return;
  const std::size_t tables = c.tables.size(), per_table = bags.offsets.size() / tables;
  for (std::size_t bag = 0; bag < bags.offsets.size(); ++bag)
    for (std::int64_t i = bags.offsets[bag]; i < bags.end(bag); ++i) {
      const std::size_t t = bag / per_table, b = bag % per_table, k = static_cast<std::size_t>(i);
      double wanted = 0;
      for (std::size_t j = 0; bags.ids[k] != c.as.padding[t] && j < c.width; ++j)
        wanted += double{table_value(static_cast<std::uint64_t>(bags.ids[k]) + t, j)} *
                  double{gradient_value(rank, (b * tables + t) * c.width + j)};
      expect_near(found[k], wanted, c.text() + "gradient of a weight ");
    }
}

// Compares a gradient of this rank's piece: the rows that have one, and their values.
inline void check_gradient(const std::vector<Slot>& rows, const float* values,
                           const EmbeddingLayout& layout, std::size_t t, int rank,
                           const ExpectedRows& wanted, const std::string& what) {
  const EmbeddingPiece piece = layout.piece(t, rank);
  std::vector<std::uint64_t> ids(piece.columns > 0 ? piece.rows : 0);
  layout.ids(t, rank, 0, ids);
  std::size_t k = 0;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const auto of_id = wanted.find(ids[row]);
    if (of_id == wanted.end()) continue;
    expect(k < rows.size() && rows[k] == row, what + "rows differ");
    for (std::size_t c = 0; c < piece.columns; ++c) {
      const ExpectedSum& sum = of_id->second[piece.first_column + c];
      expect_near(values[k * piece.columns + c], sum.value, what, sum.magnitude);
    }
    ++k;
  }
  expect(k == rows.size(), what + "the number of rows differs");
}

// Memory of the host that lives as long as this object.
struct HostRooms {
  std::deque<std::vector<std::byte>> arrays;
  Embeddings::Room room() {
    return [this](std::uint64_t bytes) { return arrays.emplace_back(bytes).data(); };
  }
};

// Returns the bags of each rank. The last of several ranks has none.
inline std::vector<RankBags> bags_of_ranks(const EmbeddingCase& c, int ranks) {
  std::vector<RankBags> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.emplace_back(c.as, ranks > 1 && rank + 1 == ranks ? 0 : 30 + 7 * rank,
                     static_cast<unsigned>(rank));
  return all;
}

// Returns by table the weights of a rank's piece.
inline std::vector<std::vector<float>> pieces_of(const EmbeddingLayout& layout, int rank) {
  std::vector<std::vector<float>> pieces(layout.tables());
  for (std::size_t t = 0; t < layout.tables(); ++t) {
    const EmbeddingPiece piece = layout.piece(t, rank);
    std::vector<std::uint64_t> ids(piece.columns > 0 ? piece.rows : 0);
    layout.ids(t, rank, 0, ids);
    for (const std::uint64_t id : ids)
      for (std::size_t k = 0; k < piece.columns; ++k)
        pieces[t].push_back(table_value(id + t, piece.first_column + k));
  }
  return pieces;
}

// Calls check(case) for tables of every split, alone and beside others.
template <class Check>
void for_cases(int ranks, Check check) {
  for (const std::uint64_t width : {1, 5, 64})
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
      EmbeddingCase c{.width = width, .mode = mode, .weighted = mode == BagMode::sum};
      for (const EmbeddingSplit split : kSplits) {
        EmbeddingCase one{.width = width, .mode = mode};
        one.add(37, split, ranks - 1);
        check(one);
        one.by_frequency = mode != BagMode::max;
        if (one.by_frequency) check(one);
        c.add(200, split, 0, 3);
        c.add(1, split, ranks - 1);
        c.add(0, split, 0);
      }
      check(c);
      c.by_frequency = mode != BagMode::max;
      if (c.by_frequency) check(c);
    }
}

}  // namespace plait::test
