#include "plait/machine/machine.h"

#include <gtest/gtest.h>

#include <string>

#include "plait/base/error.h"

namespace plait {
namespace {

TEST(Machine, ReadsWhatItWrites) {
  MachineProfile profile;
  profile.name = "two of them";
  profile.passes.link = 2e11;
  profile.recorded_halo = 12345;
  const std::string text = to_json(profile);
  EXPECT_EQ(to_json(parse_machine(text, "p")), text);
  EXPECT_EQ(parse_machine(text, "p").recorded_halo, 12345u);
}

TEST(Machine, KeepsTheBuiltInValuesOfFieldsThatAreLeftOut) {
  const MachineProfile profile = parse_machine(R"({"push_blocks": 8, "edge": 1e-12})", "p");
  EXPECT_EQ(profile.push_blocks, 8u);
  EXPECT_EQ(profile.passes.edge, 1e-12);
  EXPECT_EQ(profile.passes.link, MachineProfile().passes.link);
}

TEST(Machine, RefusesWhatIsNoProfile) {
  for (const char* text :
       {"", "[]", "{", R"({"blocks": 8})", R"({"push_blocks": 0})", R"({"push_blocks": -1})",
        R"({"push_blocks": 1.5})", R"({"push_blocks": 8589934592})", R"({"push_blocks": 70000})",
        R"({"edge": "fast"})", R"({"edge": 0})", R"({"name": 5})"})
    EXPECT_THROW(parse_machine(text, "p"), Error) << text;
  // A value nested too deep to be written out.
  std::string nested = R"({"edge": )" + std::string(300000, '[');
  nested += std::string(300000, ']') + '}';
  EXPECT_THROW(parse_machine(nested, "p"), Error);
}

}  // namespace
}  // namespace plait
