// A rank that fails, in whatever way, leaves no other rank waiting.
#include "plait/symmetric/agreement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "plait/symmetric/heap.h"
#include "plait/world/together.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

const RankProgram kFailures("failures on one rank", [](World& world) {
  const auto thrown_by = [&](int rank, auto throws) {
    std::optional<Error> error;
    try {
      on_all_or_none(world, [&] {
        if (world.rank() == rank) throws();
      });
    } catch (const Error& caught) {
      error.emplace(caught);
    }
    return error;
  };
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto memory = thrown_by(rank, [] { throw std::bad_alloc(); });
    expect(memory && memory->exit_code() == ExitCode::does_not_fit, "an allocation that failed");
    const auto library =
        thrown_by(rank, [] { throw std::runtime_error("a library's error\nmore"); });
    expect(library && library->what() == fmt::format("rank {}: a library's error", rank),
           library ? library->what() : "nothing was thrown");
    const auto refused = thrown_by(rank, [] { throw UsageError("a refusal"); });
    expect(refused && refused->exit_code() == ExitCode::usage, "a refusal");
    expect(!thrown_by(world.size(), [] {}), "none fails");
  }
});

TEST(Agreement, WhateverOneRankThrowsAllThrow) {
  const Outcome outcome = run_job({.program = "failures on one rank", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram kFound("values or a failure", [](World& world) {
  for (int rank = 0; rank <= world.size(); ++rank) {
    std::vector<int> found;
    const std::string error = failure_of([&] {
      found = gather_found(world, [&] {
        if (world.rank() == rank) throw UsageError("nothing");
        return world.rank() * 10;
      });
    });
    if (rank < world.size())
      expect(error == fmt::format("rank {}: nothing", rank), "refused: " + error);
    else
      expect(found == std::vector{0, 10, 20}, "the values of all ranks: " + error);
  }
});

TEST(Agreement, AllRanksGetValuesOrNoneDoes) {
  const Outcome outcome = run_job({.program = "values or a failure", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Rank 1 fails alone where ranks meet again, and goes on living.
const RankProgram kAlone("fails alone among meetings", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 100);
  const std::string error = failure_of([&] {
    together(world, "in a test", [&] {
      heap->barrier();
      if (world.rank() == 1) throw std::bad_alloc();
      heap->barrier();
    });
  });
  if (world.rank() == 1)
    while (failure_of([&] { world.check_alive(); }).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fmt::print(stderr, "rank {} heard: {}\n", world.rank(), error);
  throw Error("the meetings have failed");
});

TEST(Agreement, ARankThatFailsAmongMeetingsIsHeard) {
  const Outcome outcome =
      run_job({.program = "fails alone among meetings", .ranks = 3, .timeout_ms = 20000});
  EXPECT_EQ(outcome.code, 1);
  for (const int rank : {0, 2})
    EXPECT_THAT(outcome.errors, testing::Contains(testing::HasSubstr(
                                    fmt::format("rank {}: rank 1 failed in a test", rank))));
}

// An error that ranks agree on is an ordinary refusal, also within such work.
const RankProgram kRefused("a refusal among meetings", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 100);
  for (int round = 0; round < 3; ++round) {
    const std::string error = failure_of([&] {
      together(world, "in a test", [&] {
        heap->barrier();
        on_all_or_none(world, [&] {
          if (world.rank() == 1) throw DoesNotFitError("no memory");
        });
      });
    });
    expect(error == "rank 1: no memory", error);
    heap->barrier();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for a watch that were told
  world.barrier();
});

TEST(Agreement, ARefusalOfAllAmongMeetingsLosesNoRank) {
  const Outcome outcome = run_job({.program = "a refusal among meetings", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Memory is made anew after errors of all ranks alone.
TEST(Agreement, MemoryIsMadeAnewAfterARefusalOfAllRanks) {
  struct Memory {
    std::size_t size;
    std::size_t bytes() const { return size; }
  };
  const auto world = World::alone();
  auto held = std::make_unique<Memory>(Memory{10});
  EXPECT_THROW(replace_memory(*world, held, 20,
                              [](std::size_t bytes) {
                                require_on_all<DoesNotFitError>(bytes <= 10, "{} bytes", bytes);
                                return std::make_unique<Memory>(Memory{bytes});
                              }),
               DoesNotFitError);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->bytes(), 10u);
  int made = 0;
  EXPECT_THROW(replace_memory(*world, held, 20,
                              [&](std::size_t) -> std::unique_ptr<Memory> {
                                ++made;
                                throw DoesNotFitError("on this rank alone");
                              }),
               DoesNotFitError);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace plait::test
