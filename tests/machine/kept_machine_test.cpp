#include "plait/machine/kept_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plait/base/error.h"

namespace plait {
namespace {

class KeptMachineTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return kept_machine_path(folder_, key_); }
  // Writes the kept file with one part of its text replaced.
  void replace(const std::string& part, const std::string& other) const {
    std::stringstream all;
    all << std::ifstream(path()).rdbuf();
    std::string text = all.str();
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    std::ofstream(path()) << text.replace(at, part.size(), other);
  }

  const std::string folder_ =
      testing::TempDir() + "/machines-" + std::to_string(::getpid()) + "/in/folders";
  const MachineKey key_{.device = "a \"GPU\"", .ranks = 4};
  const MachineRates rates_{{Rate::local_rows, 32, 1e9 / 3}, {Rate::copy, 0, 2.5e12}};
};

TEST_F(KeptMachineTest, ReadsWhatWasKept) {
  EXPECT_TRUE(read_kept_machine(folder_, key_).rates.empty());
  check_kept_machine(folder_, key_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  keep_machine(folder_, key_, {rates_[1]});
  keep_machine(folder_, key_, rates_);  // in the place of the others
  const KeptMachine found = read_kept_machine(folder_, key_);
  EXPECT_EQ(found.rates, rates_);  // the same bits
  EXPECT_EQ(found.note, "");
}

TEST_F(KeptMachineTest, KeepsKeysApart) {
  keep_machine(folder_, key_, rates_);
  for (const MachineKey& other : {MachineKey{key_.device, 2}, MachineKey{"another", 4}}) {
    const KeptMachine found = read_kept_machine(folder_, other);
    EXPECT_TRUE(found.rates.empty());
    EXPECT_EQ(found.note, "");
  }
  EXPECT_NE(MachineKey::of_cpu(1).device, "");
}

TEST_F(KeptMachineTest, TellsWhyAFileIsNotUsed) {
  const auto note = [&](const std::string& part, const std::string& other) {
    keep_machine(folder_, key_, rates_);
    replace(part, other);
    const KeptMachine found = read_kept_machine(folder_, key_);
    EXPECT_TRUE(found.rates.empty());
    EXPECT_TRUE(found.note.starts_with(path() + " is not used: ")) << found.note;
    return found.note.substr(std::min(found.note.size(), path().size() + 14));
  };
  EXPECT_EQ(note("\"version\": \"", "\"version\": \"0."),
            std::string("Plait 0.") + PLAIT_VERSION + " wrote it");
  EXPECT_EQ(note("\"form\": 1", "\"form\": 2"),
            std::string("Plait ") + PLAIT_VERSION + " wrote it");
  EXPECT_EQ(note("\"ranks\": 4", "\"ranks\": 5"), "it is of another device or number of ranks");
  EXPECT_EQ(note("\"local rows\"", "\"fast rows\""), "rate 'fast rows' is unknown");
  for (const char* absurd : {"0", "-5", "2000000000"})
    EXPECT_EQ(note("\"row_bytes\": 32", fmt::format("\"row_bytes\": {}", absurd)),
              "an entry is no measurement");
  EXPECT_EQ(note("\"row_bytes\": 0", "\"row_bytes\": 8"), "an entry is no measurement");
  for (const char* absurd : {"-1", "0", "-0.0", "1e300", "1e-300", "1e18", "1e-3"})
    EXPECT_EQ(note("2500000000000.0", absurd), "an entry is no measurement") << absurd;
  EXPECT_EQ(note("2500000000000.0", "1e400"), "it is damaged");
  EXPECT_EQ(note("2500000000000.0", "NaN"), "it is damaged");
  EXPECT_EQ(note("2500000000000.0", "\"fast\""), "it is damaged");
  EXPECT_EQ(note("{", "["), "it is damaged");
}

TEST_F(KeptMachineTest, AnEmptyFolderKeepsNothing) {
  check_kept_machine("", key_);
  keep_machine("", key_, rates_);
  EXPECT_TRUE(read_kept_machine("", key_).rates.empty());
  std::filesystem::create_directories(folder_);
  std::ofstream(path()) << "";
  EXPECT_THROW(check_kept_machine(path(), key_), Error);  // a file is no folder
}

}  // namespace
}  // namespace plait
