#include "plait/plan/route.h"

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

TEST(Route, AutomaticFollowsTheDevice) {
  EXPECT_EQ(resolved({}).strategy, Strategy::bulk);
  EXPECT_EQ(resolved({.gpu = true}).strategy, Strategy::pipelined);
  EXPECT_EQ(resolved({.strategy = Strategy::get}).strategy, Strategy::get);
}

TEST(Route, RefusesWhatDoesNotGoTogether) {
  for (const Strategy strategy : {Strategy::pipelined, Strategy::partial, Strategy::paged}) {
    EXPECT_THROW(resolved({.strategy = strategy}), UsageError) << to_string(strategy);
    EXPECT_NO_THROW(resolved({.strategy = strategy, .gpu = true})) << to_string(strategy);
  }
  EXPECT_THROW(resolved({.transport = DeviceTransport::nvshmem}), UsageError);
  for (const Strategy strategy : {Strategy::partial, Strategy::get, Strategy::paged})
    EXPECT_THROW(resolved({.strategy = strategy, .gpu = true, .exact = true}), UsageError);
  EXPECT_NO_THROW(resolved({.strategy = Strategy::get, .exact = true}));
  EXPECT_THROW(resolved({.wire = DType::bf16, .gpu = true, .exact = true}), UsageError);
  for (const Strategy strategy : {Strategy::get, Strategy::paged})
    EXPECT_THROW(resolved({.strategy = strategy, .wire = DType::bf16, .gpu = true}), UsageError);
  EXPECT_EQ(resolved({.wire = DType::bf16, .gpu = true}).wire, DType::bf16);
  // On the CPU, too.
  EXPECT_EQ(resolved({.wire = DType::bf16}).strategy, Strategy::bulk);
  EXPECT_THROW(resolved({.strategy = Strategy::get, .wire = DType::bf16}), UsageError);
  EXPECT_THROW(resolved({.wire = DType::bf16, .exact = true}), UsageError);
}

TEST(Route, WireTypesHaveNamesAndNeedRanks) {
  EXPECT_EQ(parse_wire("fp32"), DType::f32);
  EXPECT_EQ(parse_wire("bf16"), DType::bf16);
  EXPECT_THROW(parse_wire("fp16"), UsageError);
  EXPECT_THROW(require_wire_used({.wire = DType::bf16}, 1), UsageError);
  EXPECT_NO_THROW(require_wire_used({.wire = DType::bf16}, 2));
  EXPECT_NO_THROW(require_wire_used({}, 1));
}

TEST(Route, RowsThemselvesAreBroughtBySomeStrategiesOnGpus) {
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

TEST(Route, PeerAccessIsNeededWhereKernelsReachOtherGpus) {
  EXPECT_TRUE(needs_peer_access({.strategy = Strategy::pipelined, .gpu = true}));
  EXPECT_FALSE(needs_peer_access({.strategy = Strategy::bulk, .gpu = true}));
  EXPECT_FALSE(needs_peer_access({.strategy = Strategy::get}));
  EXPECT_FALSE(needs_peer_access(
      {.strategy = Strategy::get, .transport = DeviceTransport::nvshmem, .gpu = true}));
}

}  // namespace
}  // namespace plait
