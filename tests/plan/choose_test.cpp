#include "plait/plan/choose.h"

#include <gtest/gtest.h>

#include "plait/base/error.h"

namespace plait {
namespace {

TEST(Strategies, AreNamed) {
  for (const char* name : {"replicate", "bulk", "pipelined", "partial", "get", "paged", "auto"}) {
    EXPECT_EQ(to_string(parse_strategy(name)), name);
    EXPECT_EQ(traits_of(parse_strategy(name)).strategy, parse_strategy(name));
  }
  EXPECT_THROW(parse_strategy("bulky"), UsageError);
}

TEST(Choose, AutomaticFollowsTheDevice) {
  EXPECT_EQ(choose({}).strategy, Strategy::bulk);
  EXPECT_EQ(choose({.gpu = true}).strategy, Strategy::pipelined);
  EXPECT_EQ(choose({.strategy = Strategy::get}).strategy, Strategy::get);
}

TEST(Choose, RefusesWhatDoesNotGoTogether) {
  for (const Strategy strategy : {Strategy::pipelined, Strategy::partial, Strategy::paged}) {
    EXPECT_THROW(choose({.strategy = strategy}), UsageError) << to_string(strategy);
    EXPECT_NO_THROW(choose({.strategy = strategy, .gpu = true})) << to_string(strategy);
  }
  EXPECT_THROW(choose({.transport = DeviceTransport::nvshmem}), UsageError);
  for (const Strategy strategy : {Strategy::partial, Strategy::get, Strategy::paged})
    EXPECT_THROW(choose({.strategy = strategy, .gpu = true, .exact = true}), UsageError);
  EXPECT_NO_THROW(choose({.strategy = Strategy::get, .exact = true}));
  EXPECT_THROW(choose({.wire = DType::bf16, .gpu = true, .exact = true}), UsageError);
  for (const Strategy strategy : {Strategy::get, Strategy::paged})
    EXPECT_THROW(choose({.strategy = strategy, .wire = DType::bf16, .gpu = true}), UsageError);
  EXPECT_EQ(choose({.wire = DType::bf16, .gpu = true}).wire, DType::bf16);
  // On the CPU, too.
  EXPECT_EQ(choose({.wire = DType::bf16}).strategy, Strategy::bulk);
  EXPECT_THROW(choose({.strategy = Strategy::get, .wire = DType::bf16}), UsageError);
  EXPECT_THROW(choose({.wire = DType::bf16, .exact = true}), UsageError);
}

TEST(Choose, WireTypesHaveNamesAndNeedRanks) {
  EXPECT_EQ(parse_wire("fp32"), DType::f32);
  EXPECT_EQ(parse_wire("bf16"), DType::bf16);
  EXPECT_THROW(parse_wire("fp16"), UsageError);
  EXPECT_THROW(require_wire_used({.wire = DType::bf16}, 1), UsageError);
  EXPECT_NO_THROW(require_wire_used({.wire = DType::bf16}, 2));
  EXPECT_NO_THROW(require_wire_used({}, 1));
}

TEST(Choose, RowsThemselvesAreBroughtBySomeStrategiesOnGpus) {
  for (const Strategy strategy : {Strategy::pipelined, Strategy::bulk, Strategy::replicate}) {
    EXPECT_NO_THROW(require_rows({.strategy = strategy, .gpu = true})) << to_string(strategy);
    EXPECT_THROW(require_rows({.strategy = strategy, .wire = DType::bf16, .gpu = true}),
                 UsageError);
  }
  for (const Strategy strategy : {Strategy::partial, Strategy::get, Strategy::paged})
    EXPECT_THROW(require_rows({.strategy = strategy, .gpu = true}), UsageError);
  for (const Strategy strategy : {Strategy::bulk, Strategy::replicate, Strategy::get})
    EXPECT_NO_THROW(require_rows({.strategy = strategy}));
  EXPECT_THROW(require_rows({.strategy = Strategy::bulk, .wire = DType::bf16}), UsageError);
}

TEST(Choose, PeerAccessIsNeededWhereKernelsReachOtherGpus) {
  EXPECT_TRUE(needs_peer_access({.strategy = Strategy::pipelined, .gpu = true}));
  EXPECT_FALSE(needs_peer_access({.strategy = Strategy::bulk, .gpu = true}));
  EXPECT_FALSE(needs_peer_access({.strategy = Strategy::get}));
  EXPECT_FALSE(needs_peer_access(
      {.strategy = Strategy::get, .transport = DeviceTransport::nvshmem, .gpu = true}));
}

}  // namespace
}  // namespace plait
