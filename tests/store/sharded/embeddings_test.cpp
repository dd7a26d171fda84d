// Embedding tables over ranks, against sums in plain loops of tables that every rank has whole.
#include "plait/store/sharded/embeddings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "plait/base/error.h"
#include "tests/support/table_rows.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using testing::HasSubstr;

constexpr EmbeddingSplit kSplits[] = {EmbeddingSplit::replicated, EmbeddingSplit::table,
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
  bool mean = false, weighted = false;
  std::vector<EmbeddingTable> tables;
  BagTables as;  // the same tables

  void add(std::uint64_t rows, EmbeddingSplit split, int owner, std::int64_t padding = -1) {
    tables.push_back({rows, split, owner});
    as.rows.push_back(rows);
    as.padding.push_back(padding);
  }
  std::string text() const {
    return fmt::format("width {}, {} tables, mean {}, weighted {}: ", width, tables.size(), mean,
                       weighted);
  }
};

// Calls use(bag of the table, id, weight) for each id of a table that counts.
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
      use(b, static_cast<std::uint64_t>(bags.ids[k]),
          (c.weighted ? bags.weights[k] : 1.0) / (c.mean ? count : 1.0));
    }
  }
}

std::vector<double> expected_sums(const EmbeddingCase& c, const RankBags& bags) {
  const std::size_t tables = c.tables.size();
  std::vector<double> out(bags.offsets.size() * c.width);
  for (std::size_t t = 0; t < tables; ++t)
    for_ids(c, bags, t, [&](std::size_t b, std::uint64_t id, double weight) {
      for (std::size_t k = 0; k < c.width; ++k)
        out[(b * tables + t) * c.width + k] += weight * double{table_value(id + t, k)};
    });
  return out;
}

float gradient_value(int rank, std::size_t i) {
  return table_value(static_cast<std::uint64_t>(rank) + 5, i);
}

// Returns by row its gradient from the bags of all ranks.
std::map<std::uint64_t, std::vector<double>> expected_gradient(const EmbeddingCase& c,
                                                               const std::vector<RankBags>& ranks,
                                                               std::size_t t) {
  std::map<std::uint64_t, std::vector<double>> rows;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for_ids(c, ranks[rank], t, [&](std::size_t b, std::uint64_t id, double weight) {
      auto& row = rows[id];
      row.resize(c.width);
      for (std::size_t k = 0; k < c.width; ++k)
        row[k] += weight * double{gradient_value(static_cast<int>(rank),
                                                 (b * c.tables.size() + t) * c.width + k)};
    });
  return rows;
}

void expect_near(double found, double wanted, const std::string& what) {
  expect(std::abs(found - wanted) <= 1e-4 * (1 + std::abs(wanted)),
         fmt::format("{}{} is not {}", what, found, wanted));
}

void check_gradient(const RowGradients& found, const EmbeddingLayout& layout, std::size_t t,
                    int rank, const std::map<std::uint64_t, std::vector<double>>& wanted,
                    const std::string& what) {
  const EmbeddingPiece piece = layout.piece(t, rank);
  std::vector<std::uint64_t> ids(piece.columns > 0 ? piece.rows : 0);
  layout.ids(t, rank, 0, ids);
  std::size_t k = 0;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const auto of_id = wanted.find(ids[row]);
    if (of_id == wanted.end()) continue;
    expect(k < found.rows.size() && found.rows[k] == row, what + "rows differ");
    for (std::size_t c = 0; c < piece.columns; ++c)
      expect_near(found.values[k * piece.columns + c], of_id->second[piece.first_column + c], what);
    ++k;
  }
  expect(k == found.rows.size() && found.values.size() == k * piece.columns,
         what + "the number of rows differs");
}

// A step of all ranks: forward, one more batch, and the gradient of the first.
void check_case(World& world, const EmbeddingCase& c) {
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  std::vector<RankBags> all;
  for (int rank = 0; rank < world.size(); ++rank)  // the last of several ranks has no bags
    all.emplace_back(c.as, world.size() > 1 && rank + 1 == world.size() ? 0 : 30 + 7 * rank,
                     static_cast<unsigned>(rank));
  const RankBags& mine = all[static_cast<std::size_t>(world.rank())];
  std::vector<std::vector<float>> pieces(c.tables.size());
  std::vector<const float*> at;
  for (std::size_t t = 0; t < c.tables.size(); ++t) {
    const EmbeddingPiece piece = layout.piece(t, world.rank());
    std::vector<std::uint64_t> ids(piece.columns > 0 ? piece.rows : 0);
    layout.ids(t, world.rank(), 0, ids);
    for (const std::uint64_t id : ids)
      for (std::size_t k = 0; k < piece.columns; ++k)
        pieces[t].push_back(table_value(id + t, piece.first_column + k));
    at.push_back(pieces[t].data());
  }
  Embeddings embeddings(world, layout, c.as.padding);
  const EmbeddingBatch batch{{.ids = mine.ids,
                              .offsets = mine.offsets,
                              .weights = c.weighted ? mine.weights.data() : nullptr},
                             c.mean};
  std::vector<float> out(mine.offsets.size() * c.width, -7.0f), gradient;
  const std::uint64_t number = embeddings.forward(batch, at, out.data());
  const std::vector<double> wanted = expected_sums(c, mine);
  for (std::size_t i = 0; i < out.size(); ++i) expect_near(out[i], wanted[i], c.text() + "sum ");
  for (std::size_t i = 0; i < out.size(); ++i) gradient.push_back(gradient_value(world.rank(), i));
  for (const bool another : {false, true}) {
    const RankBags more(c.as, 100, static_cast<unsigned>(world.rank()) + 9);
    std::vector<float> unused(more.offsets.size() * c.width);
    if (another)
      embeddings.forward({{.ids = more.ids, .offsets = more.offsets}, c.mean}, at, unused.data());
    const auto found = embeddings.backward(batch, number, gradient.data());
    for (std::size_t t = 0; t < c.tables.size(); ++t)
      check_gradient(found[t], layout, t, world.rank(), expected_gradient(c, all, t),
                     fmt::format("{}gradient of table {} ", c.text(), t));
  }
}

const RankProgram kSums("sums of embeddings", [](World& world) {
  for (const std::uint64_t width : {1, 5, 64})
    for (const bool mean : {false, true}) {
      EmbeddingCase c{.width = width, .mean = mean, .weighted = !mean};
      for (const EmbeddingSplit split : kSplits) {
        EmbeddingCase one{.width = width, .mean = mean};
        one.add(37, split, world.size() - 1);
        check_case(world, one);
        c.add(200, split, 0, 3);
        c.add(1, split, world.size() - 1);
        c.add(0, split, 0);
      }
      check_case(world, c);
    }
});

TEST(Embeddings, AreThoseOfPlainLoops) {
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run_job({"sums of embeddings", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << ": " << outcome.all_errors();
  }
}

TEST(Embeddings, ServeARankAlone) {
  const auto world = World::alone();
  for (const bool mean : {false, true})
    for (const EmbeddingSplit split : kSplits) {
      EmbeddingCase c{.width = 33, .mean = mean};
      c.add(70, split, 0, 5);
      c.add(9, split, 0);
      check_case(*world, c);
    }
}

// Rank 1 gives wrong bags; all ranks say so, and the next batch is served.
const RankProgram kWrong("wrong bags", [](World& world) {
  Embeddings embeddings(world, EmbeddingLayout({{.rows = 10}, {.rows = 20}}, 4, world.size()),
                        {-1, -1});
  const std::vector<float> rows(80);
  const float* pieces[] = {rows.data(), rows.data()};
  std::vector<float> out(16);
  const std::vector<std::int64_t> offsets{0, 1, 2, 3};
  const auto forward = [&](const std::vector<std::int64_t>& ids) {
    embeddings.forward({{.ids = ids, .offsets = offsets}}, pieces, out.data());
  };
  try {
    forward({1, 9, 19, world.rank() == 1 ? 20 : 0});
    expect(false, "wrong ids were taken");
  } catch (const UsageError& error) {
    expect(std::string(error.what()).find("rank 1: ids[3] is 20, outside 0..19 of table 1") == 0,
           error.what());
  }
  forward({0, 1, 2, 3});
  const std::vector<float> gradient(16);
  if (world.rank() == 0) forward({0, 1, 2, 3});
  embeddings.backward({{.ids = offsets, .offsets = offsets}}, 1, gradient.data());
});

TEST(Embeddings, FailOnAllRanks) {
  const Outcome outcome = run_job({"wrong bags", 2, kPatient});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("not at the same step"));
}

}  // namespace
}  // namespace plait::test
