#include "plait/plan/get_tuning.h"

#include <gtest/gtest.h>

#include <map>

#include "plait/base/error.h"
#include "plait/plan/route.h"

namespace plait {
namespace {

const GetParameter& parameter(std::string_view name) {
  for (const GetParameter& p : get_parameters())
    if (p.name == name) return p;
  throw Error("no such setting");
}

GetTuning with(std::string_view name, std::string_view value) {
  GetTuning tuning;
  parameter(name).set(tuning, value);
  return tuning;
}

TEST(GetTuning, EveryWordSetsItsSettingAlone) {
  EXPECT_EQ(with("ps", "512"), (GetTuning{.ps = 512}));
  EXPECT_EQ(with("ps", "none"), (GetTuning{.ps = GetTuning::kWholeRow}));
  EXPECT_EQ(with("remote-ps", "1"), (GetTuning{.remote_ps = 1}));
  EXPECT_EQ(with("remote-ps", "none"), (GetTuning{.remote_ps = GetTuning::kWholeRow}));
  EXPECT_EQ(with("dist", "16"), (GetTuning{.dist = 16}));
  EXPECT_EQ(with("wpb", "1"), (GetTuning{.wpb = 1}));
  EXPECT_EQ(with("get", "async"), (GetTuning{.asynchronous = true}));
  EXPECT_EQ(with("interleave", "off"), (GetTuning{.interleave = false}));
  EXPECT_EQ(with("read-by", "thread"), (GetTuning{.read_by = ReadBy::thread}));
  EXPECT_EQ(with("read-by", "block"), (GetTuning{.read_by = ReadBy::block}));
  EXPECT_EQ(with("read-with", "nvshmem"), (GetTuning{.read_with = ReadWith::nvshmem}));
  for (const std::uint32_t dw : {1u, 2u, 4u, 8u, 16u, 32u})
    EXPECT_EQ(with("dw", fmt::to_string(dw)), (GetTuning{.dw = dw}));
  EXPECT_EQ(with("sums", "atomic"), (GetTuning{.sums = GroupSums::atomic}));
}

TEST(GetTuning, DefaultsInTheTableAreThoseOfTheStruct) {
  for (const GetParameter& p : get_parameters()) {
    if (p.name == "remote-ps") continue;  // as --ps
    EXPECT_EQ(p.show({}), p.standard) << p.name;
    EXPECT_EQ(with(p.name, p.standard), GetTuning{}) << p.name;
  }
  EXPECT_EQ(GetTuning{}.remote(), GetTuning{}.ps);
  EXPECT_EQ(with("ps", "7").remote(), 7u);
}

TEST(GetTuning, ShowsTheValueInEffect) {
  GetTuning tuning;
  const std::map<std::string, std::string> given{
      {"ps", "33"},     {"remote-ps", "none"}, {"dist", "3"},         {"wpb", "16"},
      {"get", "async"}, {"interleave", "off"}, {"read-by", "thread"}, {"read-with", "nvshmem"},
      {"dw", "16"},     {"sums", "atomic"}};
  EXPECT_EQ(given.size(), get_parameters().size());
  for (const auto& [name, value] : given) parameter(name).set(tuning, value);
  for (const auto& [name, value] : given) EXPECT_EQ(parameter(name).show(tuning), value);
  EXPECT_EQ(parameter("remote-ps").show(with("ps", "5")), "5");
}

std::string refusal(std::string_view name, std::string_view value) {
  try {
    with(name, value);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(GetTuning, RefusesOtherValuesWithTheRange) {
  for (const char* value : {"0", "513", "2147483648", "99999999999", "-1", "1.5", "8 ", "", "all"})
    for (const char* name : {"ps", "remote-ps"})
      EXPECT_EQ(refusal(name, value),
                fmt::format("{} is '{}', which is not 1 to 512 or none", name, value));
  for (const char* value : {"0", "17", "none"})
    for (const char* name : {"dist", "wpb"})
      EXPECT_EQ(refusal(name, value), fmt::format("{} is '{}', which is not 1 to 16", name, value));
  EXPECT_NE(refusal("get", "sync").find("blocking or async"), std::string::npos);
  EXPECT_NE(refusal("interleave", "yes").find("off or on"), std::string::npos);
  EXPECT_NE(refusal("read-by", "lane").find("thread, warp or block"), std::string::npos);
  EXPECT_NE(refusal("read-with", "mpi").find("addresses or nvshmem"), std::string::npos);
  for (const char* value : {"0", "3", "64", "-1", "none"})
    EXPECT_NE(refusal("dw", value).find("auto, 1, 2, 4, 8, 16 or 32"), std::string::npos);
  EXPECT_NE(refusal("sums", "exact").find("ordered or atomic"), std::string::npos);
}

TEST(GetTuning, RoutesOnGpusHaveNumbersInRange) {
  const auto route = [](const GetTuning& get) {
    return Route{.strategy = Strategy::get, .gpu = true, .get = get};
  };
  for (const GetTuning& bad :
       {GetTuning{.ps = 0}, GetTuning{.ps = 513}, GetTuning{.remote_ps = 0}, GetTuning{.dist = 17},
        GetTuning{.dist = 0}, GetTuning{.wpb = 0}, GetTuning{.wpb = 17}, GetTuning{.dw = 0},
        GetTuning{.dw = 12}, GetTuning{.dw = 64}, GetTuning{.read_by = ReadBy::thread, .dw = 2},
        GetTuning{.read_by = ReadBy::block, .dw = 1}}) {
    EXPECT_THROW(resolved(route(bad)), UsageError);
    EXPECT_NO_THROW(resolved(Route{.gpu = true, .get = bad}));  // not used
  }
  const GetTuning most{.ps = 512, .remote_ps = GetTuning::kWholeRow, .dist = 16, .wpb = 16};
  EXPECT_EQ(resolved(route(most)).get, most);
  EXPECT_NO_THROW(resolved(route({.read_by = ReadBy::block, .dw = 4})));
  EXPECT_NO_THROW(resolved(route({.dw = 1})));
}

TEST(GetTuning, IsWhatItsChangesMake) {
  EXPECT_TRUE(changes_of({}).empty());
  const GetTuning all{.ps = 32,
                      .remote_ps = GetTuning::kWholeRow,
                      .dist = 4,
                      .wpb = 8,
                      .asynchronous = true,
                      .interleave = false,
                      .read_by = ReadBy::block,
                      .dw = 16,
                      .sums = GroupSums::atomic};
  EXPECT_EQ(with_changes(changes_of(all)), all);
  EXPECT_EQ(changes_of(all).size(), 9u);
  EXPECT_EQ(changes_text({.ps = 8, .dw = 4}), ", ps 8, dw 4");  // remote groups have 8, too
  EXPECT_EQ(changes_text({.remote_ps = 16}), "");               // as ps
  EXPECT_THROW(with_changes({{"luck", "1"}}), UsageError);
  EXPECT_THROW(with_changes({{"ps", "0"}}), UsageError);
  EXPECT_THROW(with_changes({{"dw", "2"}, {"read-by", "thread"}}), UsageError);
}

TEST(GetTuning, DeviceFunctionsReadMemoryOfNvshmemOnGpus) {
  Route route{.strategy = Strategy::get,
              .transport = DeviceTransport::nvshmem,
              .gpu = true,
              .get = {.read_with = ReadWith::nvshmem}};
  EXPECT_TRUE(resolved(route).reads_by_nvshmem());
  const auto refused = [&](const char* remedy) {
    try {
      resolved(route);
    } catch (const UsageError& error) {
      return std::string_view(error.what()).find(remedy) != std::string_view::npos;
    }
    return false;
  };
  route.get.dw = 2;  // has no kernel
  EXPECT_TRUE(refused("take read-with addresses, or a dw of 4 or more"));
  route.get.dw = 4;
  EXPECT_NO_THROW(resolved(route));
  route.transport = DeviceTransport::vmm;
  EXPECT_TRUE(refused("add transport nvshmem"));
  route.strategy = Strategy::pipelined;  // does not use them
  EXPECT_FALSE(resolved(route).reads_by_nvshmem());
  route.strategy = Strategy::get, route.gpu = false;
  EXPECT_FALSE(resolved(route).reads_by_nvshmem());
}

}  // namespace
}  // namespace plait
