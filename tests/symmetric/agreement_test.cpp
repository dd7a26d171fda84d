// A rank that fails, in whatever way, leaves no other rank waiting.
#include "plait/symmetric/agreement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

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

}  // namespace
}  // namespace plait::test
