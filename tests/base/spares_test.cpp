#include "plait/base/spares.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Spares, LendsEachObjectOnceAtATimeAndAgain) {
  Spares<int> spares;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  {
    const auto first = spares.borrow(make), second = spares.borrow(make);
    EXPECT_EQ(*first, 1);
    EXPECT_EQ(*second, 2);
  }
  {
    const auto again = spares.borrow(make), too = spares.borrow(make);
    EXPECT_NE(&*again, &*too);
    EXPECT_EQ(made, 2);
  }
  Spares<int> none;
  EXPECT_THROW(none.borrow([]() -> std::unique_ptr<int> { throw 1; }), int);
  spares.borrow(make);  // one of the two that wait
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace plait
