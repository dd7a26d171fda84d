// Walks whose starts ranks share must be those of one process, on either device.
#pragma once

#include <fmt/format.h>

#include <random>

#include "plait/apps/walk_verifier.h"
#include "plait/base/error.h"
#include "plait/io/rows.h"
#include "tests/support/drawings.h"
#include "tests/world/ranks.h"

namespace plait::test {

// Walks of every kind, from all vertices or from some of them.
inline std::vector<WalkQuestion> walk_questions(std::uint64_t vertices, unsigned seed) {
  std::vector<WalkQuestion> questions;
  for (const WalkSettings& settings : {WalkSettings{.length = 1},
                                       {.length = 9},
                                       {.length = 6, .p = 0.1, .q = 3},
                                       {.length = 12, .p = 2, .q = 0.5, .restart = 0.2}})
    questions.push_back({.settings = settings, .starts = {}, .vertices = vertices, .key = seed});
  questions.push_back(questions.back());
  questions.back().walks = 3;
  questions.back().block_bytes = 700;  // some walks at a time
  questions.push_back(questions.back());
  std::mt19937 random(seed);
  questions.back().starts.emplace();
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(vertices, 11); ++i)
    questions.back().starts->push_back(random() % vertices);
  return questions;
}

// Returns the starts of all walks.
inline std::vector<std::uint64_t> all_starts(const WalkQuestion& question) {
  std::vector<std::uint64_t> starts;
  for (std::uint64_t w = 0; w < question.count(); ++w) starts.push_back(question.start(w));
  return starts;
}

// Collective. Makes walks of all kinds on a drawing and compares them with those of RandomWalks on
// the edges in the vertices' first order.
inline void check_walks_of(World& world, const Drawing& drawing, unsigned seed, WalkPlace place) {
  const Dataset dataset = drawing.dataset();
  Drawing plain = drawing;
  plain.order = 0;
  const AnyCsr rows = out_rows(plain.dataset());
  for (const bool weighted : {false, true}) {
    SpreadWalks spread(world, dataset, weighted, place);
    const RandomWalks alone(
        rows, weighted ? std::visit([](const auto& csr) { return csr.weights.span(); }, rows)
                       : std::span<const float>());
    for (const WalkQuestion& question : walk_questions(dataset.vertices(), seed)) {
      spread.check(question);
      WalkVerifier verifier(dataset, weighted, question);
      std::vector<std::uint64_t> found;
      spread.run(question, [&](std::span<const std::int64_t> walks) {
        verifier.check(walks);
        found.insert(found.end(), walks.begin(), walks.end());
      });
      if (world.rank() != 0) continue;
      verifier.check(spread.totals());
      const auto expected = alone.walk(question.settings, all_starts(question), question.key);
      require(std::ranges::equal(found, expected), "{}: other walks than those of one process",
              drawing.name);
    }
  }
}

}  // namespace plait::test
