// A step on embedding tables that fails anywhere, on one rank or on all.
#include "tests/support/embedding_faults.h"

#include "plait/embedding/embeddings.h"
#include "tests/support/embedding_case.h"

namespace plait::test {
namespace {

// Tables that are divided in all ways, whose rows are limited, and gradients of weights.
const RankProgram kFaults("embedding step faults", [](World& world) {
  EmbeddingCase c{.weighted = true};
  for (const EmbeddingSplit split : kSplits) c.add(20, split, 0);
  EmbeddingRules rules = c.rules();
  rules.norm.most = 2;
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  const auto embeddings = Embeddings::create(world, layout, rules, Device::cpu);
  const RankBags bags(c.as, 7, static_cast<unsigned>(world.rank()) + 1);
  const GivenBags given{.ids = bags.ids, .offsets = bags.offsets, .weights = bags.weights.data()};
  auto pieces = pieces_of(layout, world.rank());
  std::vector<void*> at;
  for (std::vector<float>& piece : pieces) at.push_back(piece.data());
  std::vector<float> out(bags.offsets.size() * c.width), weights(bags.ids.size());
  run_with_fault(world, [&] {
    const std::uint64_t number = embeddings->forward(given, {at}, {.sums = out.data()});
    HostRooms rooms;
    embeddings->backward(given, number,
                         {.sums = out.data(), .weights = weights.data(), .pieces = {at}},
                         rooms.room());
  });
});

TEST(EmbeddingFaults, AreHeardByRanksThatWait) { expect_faults_are_heard("embedding step faults"); }

}  // namespace
}  // namespace plait::test
