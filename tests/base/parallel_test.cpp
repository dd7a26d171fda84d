// first_where against a plain loop.
#include "plait/base/parallel.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace plait {
namespace {

std::size_t first_of(const std::vector<bool>& holds) {
  std::size_t i = 0;
  while (i < holds.size() && !holds[i]) ++i;
  return i;
}

TEST(FirstWhere, IsThatOfAPlainLoop) {
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 255, 256, 257, 5000})
    for (const std::size_t grain : {1, 7, 256, 300, 100000})
      for (const int hits : {0, 1, 3}) {
        std::vector<bool> holds(size);
        for (int k = 0; k < hits && size > 0; ++k) holds[random() % size] = true;
        for (const int threads : {1, 4}) {
          const ThreadCount count(threads);
          EXPECT_EQ(first_where(size, grain, [&](std::size_t i) -> bool { return holds[i]; }),
                    first_of(holds))
              << size << " by " << grain;
        }
      }
}

}  // namespace
}  // namespace plait
