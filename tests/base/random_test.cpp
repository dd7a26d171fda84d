#include "plait/base/random.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox(0)(0, 0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull)(~0ull, ~0ull),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

}  // namespace
}  // namespace plait
