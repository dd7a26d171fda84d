#include "plait/plan/measured_routes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "plait/base/error.h"

namespace plait {
namespace {

class MeasuredRoutesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return measured_routes_path(folder_, key_); }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(path()).rdbuf();
    return all.str();
  }
  void put(const std::string& text) const { std::ofstream(path()) << text; }
  // Writes the kept file with one part of its text replaced.
  void replace(const std::string& part, const std::string& other) const {
    std::string all = text();
    const std::size_t at = all.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    put(all.replace(at, part.size(), other));
  }

  const std::string folder_ =
      testing::TempDir() + "/routes-" + std::to_string(::getpid()) + "/in/folders";
  const MeasuredKey key_{.graph = "0123", .device = "a \"GPU\"", .ranks = 4, .here = 2};
  const std::vector<MeasuredRoute> routes_{
      {Strategy::partial, PartitionScheme::clusters, DeviceTransport::vmm, 64, 1.25},
      {Strategy::bulk, PartitionScheme::edges, DeviceTransport::nvshmem, 100, 1e-3}};
};

TEST_F(MeasuredRoutesTest, ReadsWhatWasKept) {
  EXPECT_TRUE(read_measured_routes(folder_, key_).routes.empty());
  keep_measured_routes(folder_, key_, routes_);
  const MeasuredRoutes found = read_measured_routes(folder_, key_);
  EXPECT_EQ(found.routes, routes_);
  EXPECT_EQ(found.note, "");
  keep_measured_routes(folder_, key_, {routes_[1]});  // in the place of the others
  EXPECT_EQ(read_measured_routes(folder_, key_).routes, std::vector{routes_[1]});
}

TEST_F(MeasuredRoutesTest, LosesNothingThatIsKeptAtOnce) {
  keep_measured_routes(folder_, key_, routes_);
  const auto kind = [](std::uint64_t width) {
    return TrainingKind{"gcn", {width}, PartitionScheme::edges, DeviceTransport::vmm, false};
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t k = 0; k < 5; ++k)
        keep_measured_epochs(folder_, key_, {{kind(1 + 5 * thread + k), {Strategy::get}, 1}});
    });
  for (std::thread& thread : threads) thread.join();
  const MeasuredRoutes found = read_measured_routes(folder_, key_);
  EXPECT_EQ(found.routes, routes_);
  EXPECT_EQ(found.epochs.size(), 20u);
}

TEST_F(MeasuredRoutesTest, KeepsTheTrialsOfEachKindOfTraining) {
  const TrainingKind gcn{"gcn", {16, 7}, PartitionScheme::hash, DeviceTransport::nvshmem, true};
  const TrainingKind sage{"sage", {16}, PartitionScheme::edges, DeviceTransport::vmm, false};
  const std::vector<MeasuredEpoch> first{{gcn, {Strategy::pipelined, 3}, 1.5},
                                         {gcn, {Strategy::bulk}, 2}};
  const std::vector<MeasuredEpoch> second{{sage, {Strategy::get}, 4}};
  keep_measured_routes(folder_, key_, routes_);
  keep_measured_epochs(folder_, key_, first);
  keep_measured_epochs(folder_, key_, second);
  MeasuredRoutes found = read_measured_routes(folder_, key_);
  EXPECT_EQ(found.routes, routes_);
  EXPECT_EQ(found.epochs, (std::vector{first[0], first[1], second[0]}));
  keep_measured_epochs(folder_, key_, {first[1]});  // in the place of others of its kind
  found = read_measured_routes(folder_, key_);
  EXPECT_EQ(found.epochs, (std::vector{second[0], first[1]}));
  replace("\"passes\": 0", "\"passes\": -1");
  EXPECT_NE(read_measured_routes(folder_, key_).note, "");
  keep_measured_routes(folder_, key_,
                       routes_);  // measurements of all ways take the place of trials
  EXPECT_TRUE(read_measured_routes(folder_, key_).epochs.empty());
  keep_measured_epochs("", key_, first);
}

TEST_F(MeasuredRoutesTest, ChecksWithoutChangingAnything) {
  check_measured_routes(folder_, key_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  keep_measured_routes(folder_, key_, routes_);
  check_measured_routes(folder_, key_);
  EXPECT_EQ(read_measured_routes(folder_, key_).routes, routes_);
  check_measured_routes("", key_);
  keep_measured_routes("", key_, routes_);
}

TEST_F(MeasuredRoutesTest, KeepsKeysApart) {
  keep_measured_routes(folder_, key_, routes_);
  for (const MeasuredKey& other :
       {MeasuredKey{"0124", key_.device, 4, 2}, MeasuredKey{"0123", "another", 4, 2},
        MeasuredKey{"0123", key_.device, 2, 2}, MeasuredKey{"0123", key_.device, 4, 4}}) {
    const MeasuredRoutes found = read_measured_routes(folder_, other);
    EXPECT_TRUE(found.routes.empty());
    EXPECT_EQ(found.note, "");
  }
}

TEST_F(MeasuredRoutesTest, TellsWhyAFileIsNotUsed) {
  keep_measured_routes(folder_, key_, routes_);
  const std::string good = text();
  const auto note = [&] {
    const MeasuredRoutes found = read_measured_routes(folder_, key_);
    EXPECT_TRUE(found.routes.empty());
    EXPECT_TRUE(found.note.starts_with(path() + " is not used: ")) << found.note;
    put(good);
    return found.note.substr(std::min(found.note.size(), path().size() + 14));
  };
  replace("\"version\": \"", "\"version\": \"0.");
  EXPECT_EQ(note(), std::string("Plait 0.") + PLAIT_VERSION + " wrote it");
  replace("\"ranks\": 4", "\"ranks\": 5");
  EXPECT_EQ(note(), "it is of another graph, device or number of ranks");
  replace("\"ms\": 1.25", "\"ms\": -1.25");
  EXPECT_EQ(note(), "an entry is no measurement");
  replace("\"ms\": 1.25", "\"ms\": \"fast\"");
  EXPECT_EQ(note(), "it is damaged");
  replace("\"width\": 64", "\"width\": 0");
  EXPECT_EQ(note(), "an entry is no measurement");
  replace("\"partial\"", "\"auto\"");
  EXPECT_EQ(note(), "an entry is no measurement");
  replace("\"partial\"", "\"unheard-of\"");
  EXPECT_TRUE(note().starts_with("strategy 'unheard-of' is unknown"));
  for (const char* bad : {"", "{", "[]", "5", "{\"form\": 1}", "\xff"}) {
    put(bad);
    EXPECT_EQ(note(), "it is damaged") << bad;
  }
  put(std::string(200000, '['));
  EXPECT_EQ(note(), "it is damaged");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_NE(read_measured_routes(folder_, key_).note, "");
}

TEST_F(MeasuredRoutesTest, TellsThatTheFolderCannotBeMade) {
  std::filesystem::create_directories(folder_);
  put("");
  EXPECT_THROW(check_measured_routes(path(), key_), Error);
  EXPECT_THROW(keep_measured_routes(path(), key_, routes_), Error);
  EXPECT_TRUE(read_measured_routes("", key_).routes.empty());
}

TEST(MeasuredRoutesFolder, ComesFromTheEnvironment) {
  const auto set = [](const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  };
  const std::array names{"PLAIT_ROUTES", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::pair<bool, std::string>> before;
  for (const char* name : names) {
    const char* const value = ::getenv(name);
    before.emplace_back(value != nullptr, value == nullptr ? "" : value);
    set(name, nullptr);
  }
  EXPECT_EQ(measured_routes_folder(), "");
  set("HOME", "/home/me");
  EXPECT_EQ(measured_routes_folder(), "/home/me/.cache/plait/routes");
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(measured_routes_folder(), "/cache/plait/routes");
  set("PLAIT_ROUTES", "/here");
  EXPECT_EQ(measured_routes_folder(), "/here");
  set("PLAIT_ROUTES", "");
  EXPECT_EQ(measured_routes_folder(), "");
  for (std::size_t i = 0; i < names.size(); ++i)
    set(names[i], before[i].first ? before[i].second.c_str() : nullptr);
}

}  // namespace
}  // namespace plait
