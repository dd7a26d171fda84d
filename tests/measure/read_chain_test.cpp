// Chains of reads: their rule, and their times on ranks.
#include "plait/measure/read_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plait/base/error.h"
#include "plait/world/gather.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

TEST(ReadChain, PartsHaveAPowerOfTwoOfWords) {
  for (const std::uint64_t parts : {1u, 2u, 3u, 7u})
    for (const std::uint64_t bytes : {1u, 8u, 9u, 4096u, 1000000u}) {
      const ChainShape shape = chain_shape(bytes, parts);
      EXPECT_EQ(shape.words(), parts << shape.shift);
      EXPECT_GE(shape.words() * 8, bytes);
      if (shape.shift > 0) {
        EXPECT_LT(shape.words() * 8 / 2, bytes);
      }
    }
}

TEST(ReadChain, VisitsAllPartsAlikeAndStaysWithin) {
  constexpr std::uint64_t kReads = 30000;
  const ChainShape shape = chain_shape(1 << 20, 3);
  std::vector<std::uint64_t> visits(shape.parts);
  std::set<std::uint64_t> places;
  follow_chain(5, kReads, shape.words(), [&](std::uint64_t place) {
    EXPECT_LT(place, shape.words());
    ++visits[std::min<std::uint64_t>(place >> shape.shift, 2)];
    places.insert(place);
    return chain_word(place);
  });
  for (const std::uint64_t count : visits)
    EXPECT_NEAR(static_cast<double>(count), kReads / 3.0, 500);
  // Of so many uniform places among 196,608, about 27,800 differ; a circle has far fewer.
  EXPECT_GT(places.size(), 27000u);
}

TEST(ReadChain, AnEndElsewhereIsAMismatch) {
  const ChainShape shape = chain_shape(4096, 2);
  const std::uint64_t end = follow_chain(7, 100, shape.words(), chain_word);
  EXPECT_NO_THROW(check_chain(7, 100, shape, end));
  EXPECT_THROW(check_chain(7, 100, shape, (end + 1) % shape.words()), MismatchError);
  EXPECT_THROW(check_chain(8, 100, shape, end), MismatchError);
}

const RankProgram kTime("time-read-chain", [](World& world) {
  for (const ChainMemory memory : {ChainMemory::own, ChainMemory::ranks})
    for (const std::uint64_t bytes : {8u, 100000u}) {
      const std::vector<double> ms =
          time_read_chain(world, {.memory = memory, .bytes = bytes, .repetitions = 3});
      expect(ms.size() == 3 && std::ranges::is_sorted(ms) && ms.front() > 0, "three times");
      for (const auto& others : gather_vectors(world, ms))
        expect(others == ms, "ranks have the same times");
    }
  bool refused = false;
  try {
    time_read_chain(world, {.memory = ChainMemory::managed, .bytes = 8});
  } catch (const UsageError&) {
    refused = true;
  }
  expect(refused, "managed memory without GPUs is refused");
});

class ReadChainOnRanks : public testing::TestWithParam<int> {};

TEST_P(ReadChainOnRanks, HasTimes) {
  const Outcome outcome =
      run_job({.program = "time-read-chain", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReadChainOnRanks, testing::Values(1, 2, 3));

}  // namespace
}  // namespace plait::test
