// The memory that control groups leave, of both versions, as their files tell it.
#include "plait/base/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "plait/base/error.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();

// Folders of groups, and a list of the groups of a process.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cgroup.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::uint64_t available() const {
    return cgroup_available((root_ / "self").string(), root_.string());
  }

 private:
  std::filesystem::path root_;
};

TEST_F(Cgroup, WithoutLimitsLeavesAll) {
  EXPECT_EQ(available(), kUnlimited);
  write("self", "0::/a\n");
  write("a/memory.max", "max\n");
  EXPECT_EQ(available(), kUnlimited);
}

TEST_F(Cgroup, OfItsOwnOrAboveItLimitsAProcess) {
  write("self", "0::/a/b\n");
  write("a/b/memory.max", "1000\n");
  write("a/b/memory.stat", "anon 100\nfile 500\nshmem 20\nkernel 3\n");
  EXPECT_EQ(available(), 877u);
  write("a/memory.max", "900\n");
  write("a/memory.stat", "anon 400\nfile 50\n");
  EXPECT_EQ(available(), 500u);
  write("memory.max", "300\n");  // a container's own group is its root
  EXPECT_EQ(available(), 300u);
  write("a/memory.max", "10\n");
  EXPECT_EQ(available(), 0u);
}

TEST_F(Cgroup, OfTheFirstVersionLimitsAProcess) {
  write("self", "9:name=systemd:/\n4:cpu,memory:/job/7\n0::/\n");
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/job/7/memory.limit_in_bytes", "5000\n");
  write("memory/job/7/memory.stat", "cache 4000\nrss 1\ntotal_rss 600\ntotal_shmem 50\n");
  EXPECT_EQ(available(), 4350u);
  write("self", "4:memory:/not/here\n");
  EXPECT_EQ(available(), 9223372036854771712u);
}

std::uint64_t available_with(const char* text) {
  struct Allowed {
    explicit Allowed(const char* text) { ::setenv("PLAIT_HOST_MEMORY", text, 1); }
    ~Allowed() { ::unsetenv("PLAIT_HOST_MEMORY"); }
  };
  const Allowed allowed(text);
  return available_memory();
}

TEST(HostMemory, IsAtMostWhatTheUserAllows) {
  EXPECT_EQ(available_with("1000"), 1000u);
  EXPECT_EQ(available_with("3K"), 3072u);
  EXPECT_EQ(available_with("2M"), 2u << 20);
  EXPECT_GT(available_with("99999999T"), 2u << 20);
  EXPECT_GT(available_with(""), 2u << 20);
  for (const char* wrong : {"K", "-1", "1.5G", "8 G", "8GB", "all"})
    EXPECT_THROW(available_with(wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace plait
