#include "plait/base/printable.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Printable, KeepsWhatIsText) {
  for (const char* text : {"", "cora", "a \"b\" \\ ~", "gr\xc3\xa4ph \xc2\xa0", "\xe2\x82\xac",
                           "\xed\x9f\xbf\xee\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesControlCharacters) {
  EXPECT_EQ(printable(std::string_view("a\0b\x1b[31m\n\x7f", 10)), "a?b?[31m??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\x80\xc2\x9f"),
            "?31m ??");
}

// Byte by byte: single bytes, missing parts, forms that are too long, surrogates, and numbers
// beyond Unicode.
TEST(Printable, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("caf\xe9"), "caf?");
  EXPECT_EQ(printable("\x9b"
                      "31m\xff\xc0\xc1"),
            "?31m???");
  EXPECT_EQ(printable("\xc3"), "?");
  EXPECT_EQ(printable("\xe2\x82x"), "??x");
  EXPECT_EQ(printable("\xc0\xaf\xe0\x9f\xbf"), "?????");
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");
  EXPECT_EQ(printable("\xf0\x8f\xbf\xbf\xf4\x90\x80\x80\xf5"), std::string(9, '?'));
}

}  // namespace
}  // namespace plait
