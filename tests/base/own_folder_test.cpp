// Files of work in progress are never written through a name that another user has put there.
#include "plait/base/own_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "plait/base/shared_file.h"
#include "plait/base/user_cache.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kAnother = 12345;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

mode_t mode_of(const std::string& path) {
  struct stat found {};
  stat(path.c_str(), &found);
  return found.st_mode & 07777;
}

// A folder in which all may write, like /tmp, with a file that must stay as it is.
class OwnFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "plait-own-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    shared_ = name;
    ASSERT_EQ(chmod(name.c_str(), 01777), 0);
    put(shared_ / "victim", "stays");
  }
  void TearDown() override {
    EXPECT_EQ(text_of(shared_ / "victim"), "stays");
    fs::remove_all(shared_);
  }
  std::string path(const std::string& name) const { return (shared_ / name).string(); }
  void link(const fs::path& path) const { fs::create_symlink(shared_ / "victim", path); }

  fs::path shared_;
};

TEST_F(OwnFolderTest, HoldsFilesThatNobodyElseReads) {
  OwnFolder::make(path("work"));
  OwnFolder::make(path("work"));  // it is there
  const OwnFolder folder(path("work") + "/");
  EXPECT_EQ(mode_of(folder.path()), 0700u);
  folder.write("record", "one");
  folder.write("record", "two");
  EXPECT_EQ(folder.map("record")->text(), "two");
  EXPECT_EQ(mode_of(folder.path_of("record")), 0600u);
  EXPECT_THAT(folder.names(), ElementsAre("record"));
  EXPECT_TRUE(folder.has("record") && !folder.has("other"));
  folder.remove_itself();
  EXPECT_TRUE(fs::exists(folder.path()));
  folder.remove("record");
  folder.remove("record");
  folder.remove_itself();
  EXPECT_FALSE(fs::exists(folder.path()));
}

TEST_F(OwnFolderTest, NamesThatLeadElsewhereAreReplacedOrRefused) {
  OwnFolder::make(path("work"));
  const OwnFolder folder(path("work"));
  for (const char* name : {"rows", "record", "record.new"}) link(folder.path_of(name));
  for (const int flags : {O_RDONLY, O_WRONLY})
    EXPECT_THAT(error_of([&] { folder.open_file("rows", flags); }),
                AllOf(HasSubstr(folder.path_of("rows")), HasSubstr("it is a link")));
  SharedFile::make(folder, "rows", 4);
  SharedFile(folder, "rows").write_at(0, std::as_bytes(std::span("abc")));
  EXPECT_EQ(text_of(folder.path_of("rows")), std::string("abc\0", 4));
  folder.write("record", "mine");
  EXPECT_EQ(folder.map("record")->text(), "mine");

  fs::create_hard_link(path("victim"), folder.path_of("second"));
  EXPECT_THAT(error_of([&] { SharedFile(folder, "second"); }), HasSubstr("another name"));
  ASSERT_EQ(mkfifo(folder.path_of("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { folder.map("pipe"); }), HasSubstr("not a regular file"));
}

TEST_F(OwnFolderTest, ItsNameCannotBeGuessed) {
  std::set<std::string> names;
  for (int i = 0; i < 4; ++i) {
    const std::string made = OwnFolder::find_or_make(path("y.npy.layers-"));
    EXPECT_EQ(made.size(), path("y.npy.layers-").size() + 6);
    EXPECT_EQ(mode_of(made), 0700u);
    EXPECT_EQ(OwnFolder::find_or_make(path("y.npy.layers-")), made);  // for the next run
    names.insert(made);
    fs::remove(made);
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_THAT(error_of([&] { OwnFolder::find_or_make(path("no/folder/y-")); }),
              HasSubstr("cannot be made"));
}

TEST_F(OwnFolderTest, AnotherUsersFilesAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  fs::create_directory(path("w-aaaaaa"));
  ASSERT_EQ(chown(path("w-aaaaaa").c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(error_of([&] { OwnFolder(path("w-aaaaaa")); }), HasSubstr("another user's"));
  const std::string made = OwnFolder::find_or_make(path("w-"));
  EXPECT_NE(made, path("w-aaaaaa"));

  const OwnFolder folder(made);
  put(folder.path_of("theirs"), "secret");
  ASSERT_EQ(chown(folder.path_of("theirs").c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(error_of([&] { folder.map("theirs"); }), HasSubstr("another user's"));

  fs::create_symlink(made, path("to-mine"));
  EXPECT_NO_THROW(OwnFolder(path("to-mine")));
  ASSERT_EQ(lchown(path("to-mine").c_str(), kAnother, kAnother), 0);
  for (const char* name : {"to-mine", "to-mine/"})
    EXPECT_THAT(error_of([&] { OwnFolder(path(name)); }), HasSubstr("a link of another user"));
}

TEST_F(OwnFolderTest, OutputsAndCachesDoNotFollowAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  link(path("out"));
  ASSERT_EQ(lchown(path("out").c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(error_of([&] { AtomicFile(path("out")); }), HasSubstr("a link of another user"));

  put(path("theirs"), "old");  // all may write to it, but not to what replaces it
  ASSERT_EQ(chown(path("theirs").c_str(), kAnother, kAnother), 0);
  ASSERT_EQ(chmod(path("theirs").c_str(), 0666), 0);
  AtomicFile file(path("theirs"));
  file.write("new");
  file.commit();
  EXPECT_EQ(mode_of(path("theirs")), 0644u);

  const auto note_of = [&] { return read_cache_file(path("kept"), [](std::string_view) {}); };
  put(path("kept"), "{}");
  EXPECT_EQ(note_of(), "");
  ASSERT_EQ(chown(path("kept").c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(note_of(), HasSubstr("not used: it is another user's"));
}

}  // namespace
}  // namespace plait
