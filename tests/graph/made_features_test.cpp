// Features made of a small graph, written out.
#include "plait/graph/made_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/graph/validate.h"

namespace plait {
namespace {

using testing::Each;
using testing::ElementsAre;

// 0 <- 1, 0 <- 2, 0 <- 2, 1 <- 0; 2 and 3 aggregate from none.
AnyCsr small() {
  return Csr32{std::vector<EdgeOffset>{0, 3, 4, 4, 4}, std::vector<std::uint32_t>{1, 2, 2, 0}, {}};
}

Features made(const char* name) {
  Dataset data;
  data.graph = small();
  data.features = make_features(name, data);
  validate(data, "made");
  return data.features;
}

TEST(MadeFeatures, AreOfTheGraph) {
  EXPECT_THAT(made("constant").f32.span(), ElementsAre(1, 1, 1, 1));
  const Features degree = made("degree"), identity = made("identity");
  EXPECT_EQ(degree.width, 4u);
  EXPECT_THAT(degree.sparse.neighbours.span(), ElementsAre(3, 1, 0, 0));
  EXPECT_THAT(degree.sparse.weights.span(), Each(1));
  EXPECT_EQ(identity.width, 4u);
  EXPECT_THAT(identity.sparse.neighbours.span(), ElementsAre(0, 1, 2, 3));
}

TEST(MadeFeatures, AreKnownByName) {
  EXPECT_TRUE(makes_features("degree"));
  EXPECT_FALSE(makes_features("x.npy"));
  EXPECT_THROW(make_features("colour", {.graph = small()}), UsageError);
}

}  // namespace
}  // namespace plait
