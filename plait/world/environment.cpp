// Finds the world that the environment names. The launchers, in the order they are looked for:
//
//   Plait      PLAIT_RANK, PLAIT_WORLD_SIZE, PLAIT_MASTER_ADDR, PLAIT_MASTER_PORT; the launcher
//              keeps the store
//   torchrun   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; torchrun keeps the store if
//              TORCHELASTIC_USE_AGENT_STORE is True, else rank 0 does
//   Open MPI   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
//   PMI        PMI_RANK, PMI_SIZE (MPICH, Intel MPI and others)
//   Slurm      SLURM_PROCID, SLURM_NTASKS, within a step of several tasks that srun has started
//
// For the last three rank 0 keeps the store, at MASTER_ADDR and MASTER_PORT. Without MASTER_ADDR it
// is the first host of the Slurm step, or 127.0.0.1 where all ranks are on one host; without
// MASTER_PORT, a port from 20000 to 29999 that follows from the job's id.
//
// In all of them PLAIT_TIMEOUT_MS is the time after which a silent rank is lost,
// PLAIT_GPU_TIMEOUT_MS the time after which a rank is lost whose GPU stands still (0: never), and
// PLAIT_INTERFACE the interface (its name or address) to use. PLAIT_SECRET, or the file that
// PLAIT_SECRET_FILE names, holds the secret of Plait's store (secret.h), which the launcher makes
// anew for each run; where rank 0 keeps the store, PLAIT_LISTEN is the address at which it listens,
// if that is not MASTER_ADDR's.
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/system_limits.h"
#include "plait/world/host.h"
#include "plait/world/join.h"
#include "plait/world/launch.h"

namespace plait {
namespace {

constexpr long kMostOfAllHosts = 1 << 16;  // ranks
constexpr long kLongestTimeout = 24L * 60 * 60 * 1000;
const pid_t kLoadedBy = getpid();

// The value of a variable; one that is set to nothing counts as not set.
std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<long> parse(const std::string& text) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A whole number from `low` to `high`, or `fallback` where the variable is not set.
std::optional<int> number(const std::string& name, long low, long high) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  const auto value = parse(*text);
  require<UsageError>(value && *value >= low && *value <= high,
                      "the environment variable {} is '{}', but must be a whole number in {}..{}",
                      name, *text, low, high);
  return static_cast<int>(*value);
}

template <class T>
T needed(const std::optional<T>& value, const std::string& name, const std::string& other) {
  require<UsageError>(value.has_value(),
                      "the environment variable {} is set, but {} is not; set both or neither",
                      other, name);
  return *value;
}

// Returns rank and world size from two variables. Both or neither must be set.
std::optional<WorldConfig> ranks(const std::string& rank, const std::string& size) {
  if (!variable(rank) && !variable(size)) return std::nullopt;
  WorldConfig config;
  config.size = needed(number(size, 1, kMostOfAllHosts), size, rank);
  config.rank = needed(number(rank, 0, config.size - 1), rank, size);
  return config;
}

void set_address(WorldConfig& config, const std::string& prefix) {
  config.master_address =
      needed(variable(prefix + "MASTER_ADDR"), prefix + "MASTER_ADDR", prefix + "WORLD_SIZE");
  config.master_port = needed(number(prefix + "MASTER_PORT", 1, 65535), prefix + "MASTER_PORT",
                              prefix + "WORLD_SIZE");
}

// Returns "gpu003" for "gpu[003-005,9],x1".
std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    for (++i; i < list.size() && std::isalnum(static_cast<unsigned char>(list[i])); ++i)
      host += list[i];
    while (i < list.size() && list[i] != ']') ++i;
  }
  return host;
}

// FNV-1a; the port must be the same on every rank.
int port_from(const std::string& job) {
  std::uint32_t hash = 2166136261u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int>(20000 + hash % 10000);
}

// Sets the address of a world without one. `local_size` names the variable with the number of ranks
// on this host; empty: none.
void find_address(WorldConfig& config, const std::string& local_size, const std::string& job) {
  const auto local = number(local_size, 1, kMostOfAllHosts);
  const auto hosts = variable("SLURM_STEP_NODELIST");
  if (const auto given = variable("MASTER_ADDR")) {
    config.master_address = *given;
  } else if (hosts && !local) {
    config.master_address = first_host(*hosts);
  } else {
    require<UsageError>(!local || *local == config.size,
                        "{} of {} ranks are on this host ({}); where ranks are on several hosts, "
                        "set MASTER_ADDR to the address of the host of rank 0",
                        local.value_or(0), config.size, local_size);
  }
  config.master_port = number("MASTER_PORT", 1, 65535).value_or(port_from(job));
}

std::optional<int> silence_timeout() { return number("PLAIT_TIMEOUT_MS", 100, kLongestTimeout); }
std::optional<int> work_timeout() { return number("PLAIT_GPU_TIMEOUT_MS", 0, kLongestTimeout); }

std::optional<WorldConfig> from_plait() {
  auto config = ranks("PLAIT_RANK", "PLAIT_WORLD_SIZE");
  if (!config) return config;
  set_address(*config, "PLAIT_");
  config->store_is_external = true;
  return config;
}

std::optional<WorldConfig> from_torchrun() {
  auto config = ranks("RANK", "WORLD_SIZE");
  if (!config) return config;
  if (config->size > 1) set_address(*config, "");
  config->store_is_external = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  config->store_is_torchruns = config->store_is_external;
  // After a loss torchrun may start all ranks again, on the same store.
  if (const auto restarts = variable("TORCHELASTIC_RESTART_COUNT"); restarts && *restarts != "0")
    config->store_prefix += "-restart" + *restarts;
  return config;
}

std::optional<WorldConfig> from_open_mpi() {
  auto config = ranks("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!config) return config;
  const auto job = variable("PMIX_NAMESPACE").value_or(std::to_string(::getppid()));
  find_address(*config, "OMPI_COMM_WORLD_LOCAL_SIZE", job);
  return config;
}

std::optional<WorldConfig> from_pmi() {
  auto config = ranks("PMI_RANK", "PMI_SIZE");
  if (!config) return config;
  const auto job = variable("SLURM_JOB_ID").value_or(std::to_string(::getppid()));
  find_address(*config, "MPI_LOCALNRANKS", job + "." + variable("SLURM_STEP_ID").value_or(""));
  return config;
}

// Slurm sets its variables in interactive and batch shells, too, which are no ranks: such shells
// have no step, or one of the reserved numbers from 0xfffffff0 on.
std::optional<WorldConfig> from_slurm() {
  const auto step = variable("SLURM_STEP_ID");
  if (!step || !variable("SLURM_PROCID")) return std::nullopt;
  if (const auto id = parse(*step); id && *id >= 0xfffffff0L) return std::nullopt;
  const std::string size =
      variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (variable(size).value_or("1") == "1") return std::nullopt;
  auto config = ranks("SLURM_PROCID", size);
  find_address(*config, "", variable("SLURM_JOB_ID").value_or("") + "." + *step);
  return config;
}

}  // namespace

void take_settings(WorldConfig& config) {
  if (const auto timeout = silence_timeout()) config.timeout = std::chrono::milliseconds(*timeout);
  if (const auto timeout = work_timeout())
    config.work_timeout = std::chrono::milliseconds(*timeout);
  config.interface_address = variable("PLAIT_INTERFACE").value_or("");
  config.listen_address = variable("PLAIT_LISTEN").value_or("");
  if (config.size > 1) config.secret = secret_from_environment();
}

std::optional<WorldConfig> world_from_environment() {
  for (const auto from : {from_plait, from_torchrun, from_open_mpi, from_pmi, from_slurm}) {
    auto config = from();
    if (!config) continue;
    take_settings(*config);
    return config;
  }
  return std::nullopt;
}

std::optional<WorldConfig> valid_world_from_environment() {
  try {
    return world_from_environment();
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

void require_sensible_environment() {
  silence_timeout(), work_timeout();
  const std::string interface = variable("PLAIT_INTERFACE").value_or("");
  require<UsageError>(interface.empty() || is_of_this_host(interface),
                      "the environment variable PLAIT_INTERFACE is '{}', but must be the name of "
                      "a network interface of this host or one of its addresses",
                      interface);
}

int thread_share() {
  const auto local = number("LOCAL_WORLD_SIZE", 1, kMostOfAllHosts);
  const bool unset = variable("TORCHELASTIC_RUN_ID") && variable("OMP_NUM_THREADS") == "1";
  const int share = unset && local && getpid() == kLoadedBy
                        ? std::max(1, omp_get_num_procs() / *local)
                        : thread_count();
  static std::atomic<int> startable = 1;
  if (share > startable) {
    require_threads(2 * (share - 1));  // libtorch has a pool of its own
    startable = share;
  }
  return share;
}

int local_rank(const WorldConfig& config) {
  if (variable("PLAIT_RANK")) return config.rank;
  for (const char* name :
       {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const auto local = number(name, 0, kMostOfAllHosts)) return *local;
  return config.rank;
}

int gpu_of_rank(const WorldConfig& config, int count) {
  return count == 1 ? 0 : local_rank(config);
}

}  // namespace plait
