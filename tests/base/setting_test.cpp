#include "plait/base/setting.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

// Lets settings be plain words again, as other tests expect them.
struct Setting : testing::Test {
  ~Setting() override { write_settings_by(plain_setting); }
};

TEST_F(Setting, IsPlainWordsWithoutADoor) {
  EXPECT_EQ(setting("first-line"), "first-line");
  EXPECT_EQ(setting("strategy", "bulk"), "strategy bulk");
  EXPECT_EQ(setting("first-line", {"counts", "skip"}), "first-line counts or skip");
  EXPECT_EQ(setting("op", {"sum", "mean", "max"}), "op sum, mean or max");
}

TEST_F(Setting, IsWrittenAsTheDoorDoes) {
  write_settings_by([](std::string_view name, std::span<const std::string_view> values) {
    return '<' + plain_setting(name, values) + '>';
  });
  EXPECT_EQ(setting("gpus"), "<gpus>");
  EXPECT_EQ(setting("strategy", "bulk"), "<strategy bulk>");
  EXPECT_EQ(setting("first-line", {"counts", "skip"}), "<first-line counts or skip>");
}

}  // namespace
}  // namespace plait
