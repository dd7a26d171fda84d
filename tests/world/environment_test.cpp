// The worlds that the launchers' variables name. Each case starts from an environment without any
// of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/world/launch.h"

extern char** environ;

namespace plait {
namespace {

using Environment = std::map<std::string, std::string>;

// The process's environment with all launchers' variables replaced, until the end of the scope.
class Only {
 public:
  explicit Only(const Environment& wanted) {
    static constexpr const char* kPrefixes[] = {"PLAIT_",        "OMPI_",  "PMI",     "SLURM_",
                                                "TORCHELASTIC_", "MPI_",   "MASTER_", "RANK",
                                                "WORLD_",        "LOCAL_", "OMP_"};
    for (char** one = environ; *one != nullptr; ++one) {
      const std::string entry = *one;
      if (std::ranges::any_of(kPrefixes, [&](auto* prefix) { return entry.starts_with(prefix); }))
        saved_[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    }
    for (const auto& [name, value] : saved_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : wanted) ::setenv(name.c_str(), value.c_str(), 1);
    wanted_ = wanted;
  }
  ~Only() {
    for (const auto& [name, value] : wanted_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : saved_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  Environment saved_, wanted_;
};

const Environment kTorchrun{{"RANK", "3"},
                            {"LOCAL_RANK", "1"},
                            {"WORLD_SIZE", "8"},
                            {"MASTER_ADDR", "node7"},
                            {"MASTER_PORT", "29511"}};

Environment with(Environment all, const Environment& more) {
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}

struct World {
  int rank, size;
  std::string address;
  int port;  // 0: any from 20000 to 29999
  bool external = false;
};
struct Case {
  const char* what;
  Environment environment;
  std::optional<World> world;
};

const std::vector<Case> kCases{
    {"nothing", {}, {}},
    {"set to nothing", {{"RANK", ""}, {"WORLD_SIZE", ""}}, {}},
    {"Plait's launcher",
     with(kTorchrun, {{"PLAIT_RANK", "1"},
                      {"PLAIT_WORLD_SIZE", "2"},
                      {"PLAIT_MASTER_ADDR", "127.0.0.1"},
                      {"PLAIT_MASTER_PORT", "1234"}}),
     World{1, 2, "127.0.0.1", 1234, true}},
    {"torchrun", with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
     World{3, 8, "node7", 29511, true}},
    {"torchrun without its store", with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}),
     World{3, 8, "node7", 29511}},
    {"the same variables, set by hand", kTorchrun, World{3, 8, "node7", 29511}},
    {"Open MPI on one host",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
      {"PMIX_NAMESPACE", "2040922113"}},
     World{1, 4, "127.0.0.1", 0}},
    {"Open MPI on several",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "77"}},
     World{1, 4, "10.0.0.1", 77}},
    {"PMI", {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, World{0, 2, "127.0.0.1", 0}},
    {"Slurm",
     {{"SLURM_PROCID", "5"},
      {"SLURM_NTASKS", "6"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_JOB_ID", "99"},
      {"SLURM_STEP_NODELIST", "gpu[003-005,9],x1"}},
     World{5, 6, "gpu003", 0}},
    {"Slurm, one node",
     {{"SLURM_PROCID", "0"},
      {"SLURM_NTASKS", "6"},
      {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_STEP_ID", "3"},
      {"SLURM_STEP_NODELIST", "rack1-n2,rack1-n3"},
      {"MASTER_PORT", "4000"}},
     World{0, 2, "rack1-n2", 4000}},
    {"a shell of salloc",
     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}, {"SLURM_JOB_ID", "99"}},
     {}},
    {"an interactive step",
     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "4294967290"}},
     {}},
    {"srun of one task",
     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}},
     {}},
};

TEST(Environment, NamesTheWorld) {
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.what);
    const Only only(one.environment);
    const auto config = world_from_environment();
    ASSERT_EQ(config.has_value(), one.world.has_value());
    if (!config) continue;
    EXPECT_EQ(config->rank, one.world->rank);
    EXPECT_EQ(config->size, one.world->size);
    EXPECT_EQ(config->master_address, one.world->address);
    EXPECT_EQ(config->store_is_external, one.world->external);
    const bool torchruns = one.world->external && one.environment.contains("RANK") &&
                           !one.environment.contains("PLAIT_RANK");
    EXPECT_EQ(config->store_is_torchruns, torchruns);
    EXPECT_EQ(config->timeout, std::chrono::milliseconds(5000));
    if (one.world->port != 0) {
      EXPECT_EQ(config->master_port, one.world->port);
    } else {
      EXPECT_GE(config->master_port, 20000);
      EXPECT_LT(config->master_port, 30000);
    }
  }
}

TEST(Environment, SetsTimeoutAddressesSecretAndRestart) {
  const Only only(with(kTorchrun, {{"PLAIT_TIMEOUT_MS", "1500"},
                                   {"PLAIT_INTERFACE", "eth1"},
                                   {"PLAIT_LISTEN", "0.0.0.0"},
                                   {"PLAIT_SECRET", "01020304050607080910111213141516"},
                                   {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  const auto config = world_from_environment();
  EXPECT_EQ(config->timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(config->interface_address, "eth1");
  EXPECT_EQ(config->listen_address, "0.0.0.0");
  EXPECT_EQ(to_text(config->secret), "01020304050607080910111213141516");
  EXPECT_NE(config->store_prefix, WorldConfig{}.store_prefix);
}

struct BadCase {
  Environment environment;
  std::vector<const char*> words;  // that the error must hold
};

const std::vector<BadCase> kBadCases{
    {{{"RANK", "1"}}, {"RANK", "WORLD_SIZE"}},
    {{{"WORLD_SIZE", "2"}}, {"RANK", "WORLD_SIZE"}},
    {with(kTorchrun, {{"RANK", "8"}}), {"RANK", "'8'", "0..7"}},
    {with(kTorchrun, {{"RANK", "-1"}}), {"RANK", "'-1'", "0..7"}},
    {with(kTorchrun, {{"RANK", "one"}}), {"RANK", "'one'"}},
    {with(kTorchrun, {{"RANK", "1x"}}), {"RANK", "'1x'"}},
    {with(kTorchrun, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE", "'0'"}},
    {with(kTorchrun, {{"WORLD_SIZE", "99999999999999999999"}}), {"WORLD_SIZE"}},
    {with(kTorchrun, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT", "'65536'", "1..65535"}},
    {with(kTorchrun, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR"}},
    {with(kTorchrun, {{"PLAIT_TIMEOUT_MS", "5s"}}), {"PLAIT_TIMEOUT_MS", "'5s'"}},
    {with(kTorchrun, {{"PLAIT_SECRET", "guess"}}), {"PLAIT_SECRET", "32 hexadecimal"}},
    {{{"PLAIT_RANK", "0"}, {"PLAIT_WORLD_SIZE", "2"}}, {"PLAIT_MASTER_ADDR"}},
    {{{"OMPI_COMM_WORLD_RANK", "0"}}, {"OMPI_COMM_WORLD_SIZE"}},
    {{{"OMPI_COMM_WORLD_RANK", "0"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
     {"MASTER_ADDR", "2 of 4"}},
    {{{"PMI_SIZE", "2"}}, {"PMI_RANK"}},
    {{{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "0"}},
     {"SLURM_PROCID", "'6'", "0..5"}},
};

TEST(Environment, IsRefusedWhereItMakesNoSense) {
  for (const auto& one : kBadCases) {
    const Only only(one.environment);
    try {
      world_from_environment();
      ADD_FAILURE() << "no error that names " << one.words[0];
    } catch (const UsageError& error) {
      for (const char* word : one.words)
        EXPECT_NE(std::strstr(error.what(), word), nullptr) << word << " in " << error.what();
    }
  }
}

// torchrun gives ranks one thread each if the user has not said how many.
TEST(ThreadShare, IsOfTheCoresWhereTorchrunHasSetOneThread) {
  const Environment torchrun =
      with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}, {"LOCAL_WORLD_SIZE", "1"}});
  {
    const Only only(with(torchrun, {{"OMP_NUM_THREADS", "1"}}));
    EXPECT_EQ(thread_share(), omp_get_num_procs());
  }
  {
    const Only only(with(torchrun, {{"OMP_NUM_THREADS", "1"}, {"LOCAL_WORLD_SIZE", "1000"}}));
    EXPECT_EQ(thread_share(), 1);
  }
  const ThreadCount threads(3);
  {
    const Only only(with(torchrun, {{"OMP_NUM_THREADS", "3"}}));
    EXPECT_EQ(thread_share(), 3);
  }
  const Only only(with(kTorchrun, {{"OMP_NUM_THREADS", "1"}, {"LOCAL_WORLD_SIZE", "1"}}));
  EXPECT_EQ(thread_share(), 3);
}

}  // namespace
}  // namespace plait
