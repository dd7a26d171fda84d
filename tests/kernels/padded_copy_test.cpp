#include "plait/kernels/cuda/padded_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace plait {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST(PaddedCopy, FillsWhatIsLeftOver) {
  const Numbers from{1, 2, 3, 4, 5};
  Numbers to(12, 99);
  copy_padded({.from = from.data(),
               .to = to.data(),
               .bytes = 5 * sizeof(from[0]),
               .room = 11 * sizeof(from[0]),
               .pad = {10, 11, 12, 13}});
  EXPECT_EQ(to, (Numbers{1, 2, 3, 4, 5, 11, 12, 13, 10, 11, 12, 99}));
}

TEST(PaddedCopy, CountsInStepsOf16Bytes) {
  const Numbers from{1, 2, 3, 4};
  Numbers to(12, 99);
  copy_padded({.from = from.data(),
               .to = to.data(),
               .bytes = 4 * sizeof(from[0]),
               .room = 12 * sizeof(from[0]),
               .pad = {0, 0, 0, 7},
               .step = 1});
  EXPECT_EQ(to, (Numbers{1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 8}));
}

TEST(PaddedCopy, CopiesOrFillsAll) {
  const Numbers from{1, 2};
  Numbers to(3, 99);
  copy_padded({.from = from.data(), .to = to.data(), .bytes = 8, .room = 8});
  EXPECT_EQ(to, (Numbers{1, 2, 99}));
  copy_padded({.to = to.data(), .room = 12, .pad = {5, 6, 7}});
  EXPECT_EQ(to, (Numbers{5, 6, 7}));
  copy_padded({});  // nothing
}

}  // namespace
}  // namespace plait
