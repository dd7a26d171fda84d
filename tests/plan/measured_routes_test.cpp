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
      {{.widths = {64}}, PartitionScheme::clusters, {Strategy::partial}, 1.25},
      {{.widths = {100}, .transport = DeviceTransport::nvshmem},
       PartitionScheme::edges,
       {Strategy::bulk},
       1e-3}};
};

TEST_F(MeasuredRoutesTest, ReadsWhatWasKept) {
  EXPECT_TRUE(read_measured_routes(folder_, key_).routes.empty());
  keep_measured_routes(folder_, key_, routes_);
  const MeasuredRoutes found = read_measured_routes(folder_, key_);
  EXPECT_EQ(found.routes, routes_);
  EXPECT_EQ(found.note, "");
  MeasuredRoute again = routes_[0];
  again.ms = 7;
  keep_measured_routes(folder_, key_, {again});  // in the place of the same
  EXPECT_EQ(read_measured_routes(folder_, key_).routes, (std::vector{routes_[1], again}));
}

TEST_F(MeasuredRoutesTest, KeepsEachSetOfSettings) {
  const GetTuning few{.ps = 4, .remote_ps = 8, .dw = 16}, whole{.ps = GetTuning::kWholeRow};
  const auto get = [](const GetTuning& settings, double ms) {
    return MeasuredRoute{
        {.widths = {64}}, PartitionScheme::edges, {Strategy::get, 0, settings}, ms};
  };
  keep_measured_routes(folder_, key_, {get({}, 3), get(few, 2), get(whole, 1)});
  keep_measured_routes(folder_, key_, {get(few, 5)});
  EXPECT_EQ(read_measured_routes(folder_, key_).routes,
            (std::vector{get({}, 3), get(whole, 1), get(few, 5)}));
}

TEST_F(MeasuredRoutesTest, UsesNoSettingsThatNoRunCanHave) {
  const GetTuning settings{.ps = GetTuning::kWholeRow, .dw = 2};
  keep_measured_routes(
      folder_, key_, {{{.widths = {64}}, PartitionScheme::edges, {Strategy::get, 0, settings}, 1}});
  const std::string good = text();
  const auto expect_note = [&](const char* part, const char* other, const char* end) {
    replace(part, other);
    const MeasuredRoutes found = read_measured_routes(folder_, key_);
    EXPECT_TRUE(found.routes.empty()) << other;
    EXPECT_NE(found.note.find(end), std::string::npos) << found.note;
    put(good);
  };
  expect_note("\"none\"", "\"513\"", "is '513', which is not 1 to 512 or none");
  expect_note("\"none\"", "4", "it is damaged");
  expect_note("\"dw\"", "\"luck\"", "strategy get has no setting 'luck'");
  expect_note("\"ps\": \"none\"", "\"read-by\": \"block\"", "is for rows that warps read");
  expect_note("\"dw\": \"2\"", "\"read-with\": \"nvshmem\"", "reads memory of NVSHMEM alone");
  expect_note("\"get\": {", "\"other\": {", "it is damaged");
  expect_note("\"strategy\": \"get\"", "\"strategy\": \"bulk\"", "an entry is no measurement");
}

TEST_F(MeasuredRoutesTest, LosesNothingThatIsKeptAtOnce) {
  keep_measured_routes(folder_, key_, routes_);
  const auto trial = [](std::uint64_t width) {
    return MeasuredRoute{
        {.model = "gcn", .widths = {width}}, PartitionScheme::edges, {Strategy::get}, 1};
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t k = 0; k < 5; ++k)
        keep_measured_routes(folder_, key_, {trial(1 + 5 * thread + k)});
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<MeasuredRoute> found = read_measured_routes(folder_, key_).routes;
  ASSERT_EQ(found.size(), 22u);
  EXPECT_EQ(std::vector(found.begin(), found.begin() + 2), routes_);
}

TEST_F(MeasuredRoutesTest, KeepsEachKindOfMeasurementApart) {
  const RunKind gcn{"gcn", {16, 7}, DeviceTransport::nvshmem, true, DType::f32};
  const RunKind sage{"sage", {16}, DeviceTransport::vmm, false, DType::bf16};
  const MeasuredRoute first{gcn, PartitionScheme::hash, {Strategy::pipelined, 3}, 1.5};
  const MeasuredRoute second{gcn, PartitionScheme::hash, {Strategy::bulk}, 2};
  const MeasuredRoute elsewhere{gcn, PartitionScheme::edges, {Strategy::bulk}, 3};
  const MeasuredRoute other{sage, PartitionScheme::edges, {Strategy::get}, 4};
  const auto kept = [&] { return read_measured_routes(folder_, key_).routes; };
  keep_measured_routes(folder_, key_, routes_);
  keep_measured_routes(folder_, key_, {first, second});
  keep_measured_routes(folder_, key_, {elsewhere});
  keep_measured_routes(folder_, key_, {other});
  EXPECT_EQ(kept(), (std::vector{routes_[0], routes_[1], first, second, elsewhere, other}));
  keep_measured_routes(folder_, key_, {second});  // in the place of others of its kind
  EXPECT_EQ(kept(), (std::vector{routes_[0], routes_[1], elsewhere, other, second}));
  keep_measured_routes(folder_, key_, {routes_[0]});  // other sums stay
  EXPECT_EQ(kept(), (std::vector{routes_[1], elsewhere, other, second, routes_[0]}));
  replace("\"passes\": 0", "\"passes\": -1");
  EXPECT_NE(read_measured_routes(folder_, key_).note, "");
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
  replace("64\n", "0\n");
  EXPECT_EQ(note(), "an entry is no measurement");
  replace("64\n", "64, 7\n");
  EXPECT_EQ(note(), "an entry is no measurement");
  for (const char* other : {"-1\n", "64.5\n", "true\n", "1e3\n", "\"64\"\n"}) {
    replace("64\n", other);  // json would make a width of most of them
    EXPECT_EQ(note(), "an entry is no measurement") << other;
  }
  for (const char* other : {"-1", "0.5", "4294967296"}) {
    replace("\"passes\": 0", std::string("\"passes\": ") + other);
    EXPECT_EQ(note(), "an entry is no measurement") << other;
  }
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
