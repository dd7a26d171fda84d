// The one door: every format found by its content and name, and written whole or not at all.
#include "plait/io/io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "plait/base/file.h"
#include "plait/base/parallel.h"
#include "tests/io/damage.h"
#include "tests/io/npy_file.h"
#include "tests/io/zip_file.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class IoTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "plait-io-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.insert(entry.path().filename().string());
    return found;
  }

  fs::path folder_;
};

// 0 -> 1, 1 -> 2, 1 -> 2 again, 2 -> 2.
const std::string kEdges = file_of<std::int32_t>("<i4", "(2, 4)", {0, 1, 1, 2, 1, 2, 2, 2});

std::vector<std::uint32_t> neighbours(const Dataset& data) {
  const auto& list = std::get<Csr32>(data.graph).neighbours;
  return {list.begin(), list.end()};
}
std::vector<EdgeOffset> offsets(const Dataset& data) {
  const auto& list = std::get<Csr32>(data.graph).offsets;
  return {list.begin(), list.end()};
}

TEST_F(IoTest, TheSameGraphInEveryFormat) {
  const std::vector<std::string> files{
      put("a.npy", kEdges),
      put("a.npz", zip_of({{.name = "edge_index.npy", .data = kEdges}})),
      put("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n2 1\n3 2\n3 2\n3 3\n"),
      put("a.txt", "# comment\n0 1\n1 2\n1 2\n2 2\n"),
      put("a.csv", "0,1\n1,2\n1,2\n2,2\n"),
      put("a.edgelist", "0 1\n1 2\n1 2\n2 2\n"),
  };
  for (const std::string& file : files) {
    const Dataset data = read_dataset(file);
    EXPECT_EQ(data.name, "a");
    EXPECT_THAT(offsets(data), ElementsAre(0, 0, 1, 4)) << file;
    EXPECT_THAT(neighbours(data), ElementsAre(0, 1, 1, 2)) << file;
    EXPECT_FALSE(data.symmetric);
    for (const std::string ending : {".plait", ".npz", ".mtx", ".txt", ".el", ".wel", ".sg", ".wsg",
                                     ".gr", ".adj", ".gnna.npz", "_beg_pos.bin"}) {
      const std::string copy = path("copy" + ending);
      write_dataset(data, copy);
      const Dataset again = read_dataset(copy);
      EXPECT_EQ(offsets(again), offsets(data)) << copy;
      EXPECT_EQ(neighbours(again), neighbours(data)) << copy;
    }
  }
}

TEST_F(IoTest, BuildOptionsHoldForEveryFormat) {
  write_dataset(read_dataset(put("a.npy", kEdges)), path("a.plait"));
  for (const std::string& file : {path("a.npy"), path("a.plait")}) {
    ReadOptions options;
    options.build.drop_loops = true;
    options.build.undirected = true;
    const Dataset data = read_dataset(file, options);
    EXPECT_THAT(offsets(data), ElementsAre(0, 1, 3, 4)) << file;
    EXPECT_THAT(neighbours(data), ElementsAre(1, 0, 2, 1)) << file;
    EXPECT_TRUE(data.symmetric);
    write_dataset(data, path("b.plait"));
    EXPECT_TRUE(read_dataset(path("b.plait")).symmetric);
  }
}

TEST_F(IoTest, ContentComesBeforeTheName) {
  EXPECT_EQ(read_dataset(put("graph.txt", kEdges)).edges(), 4u);
  EXPECT_EQ(read_dataset(put("graph", kEdges)).edges(), 4u);
  EXPECT_EQ(read_dataset(put("NAME.v2.NPY", kEdges)).name, "NAME.v2");
}

TEST_F(IoTest, RefusesWhatHasNoFormat) {
  EXPECT_EQ(error_of([&] { read_dataset(put("a.xyz", "0 1\n")); }),
            path("a.xyz") +
                ": name: no format has the ending .xyz; use one of .plait, .mtx, "
                ".gnna.npz, .npz, .npy, .txt, .csv, .tsv, .edges, .edgelist, .el, .wel, .sg, .wsg, "
                ".graph, .gr, .adj, _beg_pos.bin");
  EXPECT_THAT(error_of([&] { read_dataset(put("graph", "0 1\n")); }), HasSubstr("no ending"));
  EXPECT_THAT(error_of([&] { read_dataset(put("a.txt.gz", "\x1f\x8b\x08")); }),
              HasSubstr("gunzip"));
  EXPECT_THAT(error_of([&] { read_dataset(put("a.plait", "text")); }),
              StartsWith(path("a.plait") + ": header: "));
  for (const char* ending : {"plait", "mtx", "npz", "npy", "txt"})
    EXPECT_THROW(read_dataset(put(std::string("empty.") + ending, "")), InputError) << ending;
  EXPECT_THAT(error_of([&] { read_dataset(path("none.txt")); }), HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of([&] { read_dataset(folder_.string()); }), HasSubstr("is a folder"));
}

TEST_F(IoTest, RefusesToWriteOtherEndings) {
  const Dataset data = read_dataset(put("a.npy", kEdges));
  for (const char* name : {"b.npy", "b", "b.xyz"})
    EXPECT_THROW(write_dataset(data, path(name)), UsageError) << name;
  EXPECT_THAT(error_of([&] { write_dataset(data, path("b.xyz")); }),
              HasSubstr("use one of .plait, .mtx, .gnna.npz, .npz, .txt, .el"));
  EXPECT_EQ(names(), std::set<std::string>{"a.npy"});
}

TEST_F(IoTest, AFailedWriteLeavesWhatWasThere) {
  const Dataset data = read_dataset(put("a.npy", kEdges));
  thread_count();  // LLVM's OpenMP writes a file of its own when it starts: not under the limit
  for (const std::string ending : {"plait", "npz", "mtx", "txt"}) {
    const std::string target = put("b." + ending, "old");
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{16, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string text = error_of([&] { write_dataset(data, target); });
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    EXPECT_EQ(text, target + ": cannot be written: file too large");
    EXPECT_EQ(MappedFile::open(target)->text(), "old");
  }
  EXPECT_EQ(names().size(), 5u);
}

TEST_F(IoTest, WarnsOfWhatIsLeftOut) {
  const std::string file =
      put("a.npz", zip_of({{.name = "edge_index.npy", .data = kEdges},
                           {.name = "y.npy", .data = file_of<std::int32_t>("<i4", "(1,)", {0})}}));
  testing::internal::CaptureStderr();
  read_dataset(file);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              StartsWith("plait: warning: " + file + ": y has shape (1,)"));
}

}  // namespace
}  // namespace plait
