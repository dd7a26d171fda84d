// Embedding tables over ranks, against sums in plain loops of tables that every rank has whole.
#include "plait/embedding/embeddings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "tests/support/embedding_case.h"

namespace plait::test {
namespace {

using testing::HasSubstr;

// A step of all ranks: forward, one more batch, and the gradient of the first.
void check_case(World& world, const EmbeddingCase& c) {
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  const std::vector<RankBags> all = bags_of_ranks(c, world.size());
  const RankBags& mine = all[static_cast<std::size_t>(world.rank())];
  auto pieces = pieces_of(layout, world.rank());
  std::vector<void*> at;
  for (std::vector<float>& piece : pieces) at.push_back(piece.data());
  const auto embeddings = Embeddings::create(world, layout, c.rules(), Device::cpu);
  const GivenBags bags{.ids = mine.ids,
                       .offsets = mine.offsets,
                       .weights = c.weighted ? mine.weights.data() : nullptr};
  std::vector<float> out(mine.offsets.size() * c.width, -7.0f), gradient;
  std::vector<Slot> places(out.size());
  const std::uint64_t number = embeddings->forward(bags, {at}, {out.data(), places.data()});
  const std::vector<double> wanted = expected_sums(c, mine);
  for (std::size_t i = 0; i < out.size(); ++i) expect_near(out[i], wanted[i], c.text() + "sum ");
  for (std::size_t i = 0; i < out.size(); ++i) gradient.push_back(gradient_value(world.rank(), i));
  for (const bool another : {false, true}) {
    const RankBags more(c.as, 100, static_cast<unsigned>(world.rank()) + 9);
    std::vector<float> unused(more.offsets.size() * c.width);
    std::vector<Slot> unused_places(unused.size());
    if (another)
      embeddings->forward({.ids = more.ids, .offsets = more.offsets}, {at},
                          {unused.data(), unused_places.data()});
    std::vector<float> weights(c.weighted ? mine.ids.size() : 0, -7.0f);
    HostRooms rooms;
    const auto found = embeddings->backward(bags, number,
                                            {.sums = gradient.data(),
                                             .places = places.data(),
                                             .weights = weights.empty() ? nullptr : weights.data(),
                                             .pieces = {at}},
                                            rooms.room());
    check_weights(c, mine, world.rank(), weights);
    for (std::size_t t = 0; t < c.tables.size(); ++t)
      check_gradient({found[t].rows, found[t].rows + found[t].count}, found[t].values, layout, t,
                     world.rank(), expected_gradient(c, all, t),
                     fmt::format("{}gradient of table {} ", c.text(), t));
  }
}

const RankProgram kSums("sums of embeddings", [](World& world) {
  for_cases(world.size(), [&](const EmbeddingCase& c) { check_case(world, c); });
});

TEST(Embeddings, AreThoseOfPlainLoops) {
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run_job({"sums of embeddings", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << ": " << outcome.all_errors();
  }
}

TEST(Embeddings, ServeARankAlone) {
  const auto world = World::alone();
  for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
    for (const EmbeddingSplit split : kSplits) {
      EmbeddingCase c{.width = 33, .mode = mode};
      c.add(70, split, 0, 5);
      c.add(9, split, 0);
      check_case(*world, c);
    }
}

// Rank 1 gives wrong bags; all ranks say so, and the next batch is served.
const RankProgram kWrong("wrong bags", [](World& world) {
  const auto embeddings =
      Embeddings::create(world, EmbeddingLayout({{.rows = 10}, {.rows = 20}}, 4, world.size()),
                         {{-1, -1}}, Device::cpu);
  std::vector<float> rows(80);
  void* pieces[] = {rows.data(), rows.data()};
  std::vector<float> out(16);
  const std::vector<std::int64_t> offsets{0, 1, 2, 3};
  const auto forward = [&](const std::vector<std::int64_t>& ids) {
    embeddings->forward({.ids = ids, .offsets = offsets}, {pieces}, {out.data()});
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
  HostRooms rooms;
  embeddings->backward({.ids = offsets, .offsets = offsets}, 1, {.sums = gradient.data()},
                       rooms.room());
});

TEST(Embeddings, FailOnAllRanks) {
  const Outcome outcome = run_job({"wrong bags", 2, kPatient});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("not at the same step"));
}

}  // namespace
}  // namespace plait::test
