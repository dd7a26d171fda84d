// A file is there whole or not at all, and every failure says why.
#include "plait/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "plait-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Returns all names, hidden ones too.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.insert(entry.path().filename().string());
    return found;
  }
  static void put(const std::string& path, const std::string& text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
  }
  static std::string get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

// Returns the exit code of `act` in a child process, which ends without destructors or exit
// handlers.
template <class Act>
int in_child(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// While it lives, files of this process cannot grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  AtomicFile file(path("a"));
  file.write("hello ");
  file.write("world");
  EXPECT_EQ(file.size(), 11u);
  file.write_at(0, std::as_bytes(std::span("J", 1)));
  file.write_at(12, std::as_bytes(std::span("!", 1)));
  EXPECT_EQ(file.size(), 13u);
  EXPECT_TRUE(names().empty());  // no name before it is complete
  file.commit();
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  const auto mapped = MappedFile::open(path("a"));
  EXPECT_EQ(mapped->text(), std::string_view("Jello world\0!", 13));
  EXPECT_EQ(mapped->bytes().size(), 13u);
  EXPECT_EQ(mapped->path(), path("a"));
}

TEST_F(FileTest, EmptyFile) {
  put(path("empty"), "");
  EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
  EXPECT_EQ(MappedFile::open(path("empty"))->text(), "");
}

TEST_F(FileTest, ReplacesAndLeavesOldReadersTheirContent) {
  put(path("a"), "old");
  chmod(path("a").c_str(), 0640);
  const auto old = MappedFile::open(path("a"));
  put(path("a"), "new and longer");
  EXPECT_EQ(old->text(), "old");
  EXPECT_EQ(get(path("a")), "new and longer");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  struct stat found {};
  stat(path("a").c_str(), &found);
  EXPECT_EQ(found.st_mode & 0777u, 0640u);
}

TEST_F(FileTest, NewFilesFollowTheUmask) {
  const mode_t before = umask(027);
  put(path("a"), "x");
  umask(before);
  struct stat found {};
  stat(path("a").c_str(), &found);
  EXPECT_EQ(found.st_mode & 0777u, 0640u);
}

TEST_F(FileTest, FollowsALinkToAFile) {
  put(path("a"), "old");
  fs::create_symlink("a", path("link"));
  put(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get(path("a")), "new");
}

TEST_F(FileTest, WithoutCommitNothingChanges) {
  put(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("new");
    AtomicFile other(path("b"));
    other.write("new");
  }
  EXPECT_EQ(get(path("a")), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(FileTest, AKilledWriterLeavesNothing) {
  put(path("a"), "old");
  for (const bool by_signal : {false, true}) {
    const int code = in_child([&] {
      AtomicFile file(path("a"));
      file.write(std::string(100000, 'x'));
      if (by_signal) raise(SIGKILL);
      return 7;
    });
    EXPECT_EQ(code, by_signal ? 128 + SIGKILL : 7);
  }
  EXPECT_EQ(get(path("a")), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(FileTest, AFailedWriteSaysWhyAndChangesNothing) {
  put(path("a"), "old");
  std::string text;
  {
    const FileSizeLimit limit(4096);
    text = error_of([&] {
      AtomicFile file(path("a"));
      for (int i = 0; i < 100; ++i) file.write(std::string(1000, 'x'));  // a short write, then none
      file.commit();
    });
  }
  EXPECT_EQ(text, path("a") + ": cannot be written: file too large");
  EXPECT_EQ(get(path("a")), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(FileTest, CommitsOnce) {
  AtomicFile file(path("a"));
  file.write("x");
  file.commit();
  EXPECT_THAT(error_of([&] { file.commit(); }), HasSubstr("complete already"));
  EXPECT_THAT(error_of([&] { file.write("y"); }), HasSubstr("complete already"));
  EXPECT_EQ(get(path("a")), "x");
}

TEST_F(FileTest, ManyWritersOfOneNameLeaveOneOfTheirContents) {
  put(path("a"), "start");
  AtomicFile first(path("a")), second(path("a"));
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(get(path("a")), "second");
  first.commit();
  EXPECT_EQ(get(path("a")), "first");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  put(path("file"), "x");
  const auto writing = [&](const std::string& name) {
    return error_of([&] { AtomicFile file(name); });
  };
  EXPECT_EQ(writing(path("folder")),
            path("folder") + ": cannot be written: is a folder; give the name of a file");
  EXPECT_THAT(writing(path("folder/")), HasSubstr("is a folder"));
  EXPECT_THAT(writing(path("none/a")), HasSubstr("there is no folder " + path("none")));
  EXPECT_THAT(writing(path("file/a")), HasSubstr("not a directory"));
  EXPECT_THAT(writing(path("pipe")), HasSubstr("not a regular file"));
  for (const char* device : {"/dev/stdout", "/dev/null", "/dev/fd/1", "/proc/self/fd/1"})
    EXPECT_THAT(writing(device), HasSubstr("not a regular file")) << device;
  EXPECT_THAT(writing(""), HasSubstr("the name is empty"));
}

TEST_F(FileTest, RefusesToMapWhatIsNoFile) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto reading = [&](const std::string& name) {
    return error_of([&] { MappedFile::open(name); });
  };
  EXPECT_EQ(reading(path("none")), path("none") + ": cannot be opened: no such file or directory");
  EXPECT_THAT(reading(path("folder")), HasSubstr("is a folder"));
  EXPECT_THAT(reading(path("pipe")), HasSubstr("not a regular file"));  // and does not wait
  EXPECT_THAT(reading("/dev/null"), HasSubstr("not a regular file"));
}

// From here on, openat() with O_TMPFILE fails in this process as on a file system without it.
bool forbid_unnamed_files() {
  constexpr auto kFlags = offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(FileTest, WorksWithoutUnnamedFiles) {
  put(path("a"), "old");
  constexpr int kSkip = 77;
  const int code = in_child([&] {
    if (!forbid_unnamed_files()) return kSkip;
    try {
      {
        AtomicFile file(path("left"));
        file.write("x");
        if (names().size() != 2) return 1;  // it has a hidden name meanwhile
      }
      if (names().size() != 1) return 2;
      {
        const FileSizeLimit limit(4096);
        AtomicFile file(path("a"));
        const auto text = error_of([&] { file.write(std::string(10000, 'x')); });
        if (text.find("file too large") == text.npos) return 3;
      }
      if (names().size() != 1 || get(path("a")) != "old") return 4;
      put(path("a"), "new");
      put(path("b"), "another");
    } catch (...) {
      return 5;
    }
    return 0;
  });
  if (code == kSkip) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(get(path("a")), "new");
  EXPECT_EQ(get(path("b")), "another");
  EXPECT_EQ(names(), (std::set<std::string>{"a", "b"}));
}

TEST_F(FileTest, LinksAreFollowed) {
  for (const std::string target : {"target", "./other"}) {
    fs::create_symlink(target, path("link"));
    put(path("link"), "new");
    EXPECT_EQ(get(path(target)), "new");
    put(path("link"), "newer");
    EXPECT_EQ(get(path(target)), "newer");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    fs::remove(path("link"));
  }
  fs::create_symlink("link", path("first"));
  fs::create_symlink(path("end"), path("link"));
  put(path("first"), "through two");
  EXPECT_EQ(get(path("end")), "through two");
  fs::create_symlink(path("none/end"), path("dangling"));
  EXPECT_THAT(error_of([&] { put(path("dangling"), ""); }),
              testing::AllOf(HasSubstr("dangling: cannot be written: it is a link to"),
                             HasSubstr("there is no folder " + path("none"))));
  fs::create_symlink("/proc/none", path("device"));
  EXPECT_THAT(error_of([&] { put(path("device"), ""); }), HasSubstr("not a regular file"));
}

TEST_F(FileTest, TheCurrentFolderMayHaveBeenRemoved) {
  EXPECT_EQ(in_child([&] {
              fs::create_directory(path("gone"));
              fs::current_path(path("gone"));
              const bool before = has_current_folder();
              fs::remove(path("gone"));
              const std::string error = error_of([] { put("relative", ""); });
              put(path("absolute"), "");
              return before && !has_current_folder() &&
                             error.find("current folder has been removed") != error.npos
                         ? 7
                         : 1;
            }),
            7);
}

// Calls `read` in a child process with a file of two pages that has become shorter by one. Returns
// the child's end, as in_child(), and the text that it has printed on stderr.
template <class Read>
std::pair<int, std::string> read_shortened(const std::string& name, const std::string& printed,
                                           Read read) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::ofstream(name, std::ios::binary) << std::string(2 * page, 'x');
  const int code = in_child([&] {
    const int descriptor = open(printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(descriptor, STDERR_FILENO);
    const auto before = MappedFile::open(name);
    { const auto other = MappedFile::open(name); }  // its range is free again
    const auto file = MappedFile::open(name);
    fs::resize_file(name, page);
    return read(file->bytes(), page);
  });
  std::ifstream file(printed);
  return {code, {std::istreambuf_iterator<char>(file), {}}};
}

int value_of(const std::byte& byte) {
  return static_cast<int>(*const_cast<volatile std::byte*>(&byte));
}

TEST_F(FileTest, AFileThatBecomesShorterIsNamed) {
  const auto [code, printed] =
      read_shortened(path("a\nb"), path("printed"), [](auto bytes, std::size_t page) {
        return value_of(bytes[0]) == 'x' ? value_of(bytes[page]) : 2;
      });
  EXPECT_EQ(code, 1);
  EXPECT_THAT(printed, testing::AllOf(testing::StartsWith("plait: "),
                                      HasSubstr("has become shorter"), testing::EndsWith("\n")));
  EXPECT_EQ(std::ranges::count(printed, '\n'), 1);
}

TEST_F(FileTest, OtherBusErrorsAreLeftToOthers) {
  // No mapped file of this room: the process ends as it would have.
  const auto [code, printed] =
      read_shortened(path("a"), path("printed"), [&](auto, std::size_t page) {
        const int descriptor = open(path("a").c_str(), O_RDONLY);
        void* const other = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE, descriptor, 0);
        return value_of(static_cast<std::byte*>(other)[page]);
      });
  EXPECT_EQ(code, 128 + SIGBUS);
  EXPECT_EQ(printed, "");
  const auto [sent, nothing] =
      read_shortened(path("b"), path("printed"), [](auto, std::size_t) { return raise(SIGBUS); });
  EXPECT_EQ(sent, 128 + SIGBUS);
  EXPECT_EQ(nothing, "");
  // A handler that was there before the first file was mapped is called.
  EXPECT_EQ(in_child([&] {
              signal(SIGBUS, [](int) { _exit(9); });
              return read_shortened(path("c"), path("printed"),
                                    [](auto, std::size_t) { return raise(SIGBUS); })
                  .first;
            }),
            9);
}

}  // namespace
}  // namespace plait
