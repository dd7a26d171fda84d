// Starts N ranks from one command, and finds worlds that others started.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "plait/world/world.h"

namespace plait {

// Signals that follow each other faster than this are one wish to stop: timeout(1) sends its signal
// to the process and to its group.
inline constexpr std::chrono::milliseconds kOneWish{250};

struct LaunchOptions {
  int ranks = 1;
  std::chrono::milliseconds timeout = WorldConfig{}.timeout;
  std::optional<std::chrono::milliseconds> work_timeout;  // else as PLAIT_GPU_TIMEOUT_MS says
};

// Returns the world that the environment names, if any: by Plait's own launcher, torchrun (RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT), mpirun (OMPI_COMM_WORLD_*, PMI_*) or srun (SLURM_*).
// Throws UsageError naming the variable when its value makes no sense.
std::optional<WorldConfig> world_from_environment();
// Returns the same, but nothing if a value makes no sense: joining then reports it.
std::optional<WorldConfig> valid_world_from_environment();
// Throws UsageError that names a variable of the environment which ranks on this host read for
// themselves, PLAIT_GPU_TIMEOUT_MS or PLAIT_INTERFACE, where its value makes no sense.
void require_sensible_environment();

// Returns the number of this process among its host's ranks, as its launcher says (LOCAL_RANK,
// OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, SLURM_LOCALID); else its rank, as if all were on one
// host.
int local_rank(const WorldConfig& config);
// Returns the GPU for this process, of `count` that it sees: by its local rank, or the only one,
// since schedulers show each process its own.
int gpu_of_rank(const WorldConfig& config, int count);

// Returns the number of threads for work of a rank that the others do not share, such as placing a
// graph. This is OpenMP's own number; but if torchrun has set OMP_NUM_THREADS to 1, as it does if
// the user has not set it, it is this rank's share of the cores that it may run on. In processes
// that this one forks, such as workers of a loader, it is OpenMP's own number: libgomp's threads do
// not live on there, and to wait for them would never end.
int thread_share();

// Forks `options.ranks` processes, which go on as ranks: in each of them launch() returns nothing,
// and world_from_environment() has the world to join. In the process that called it, launch() waits
// for all ranks and returns the exit code for the program: 0 if all ended with 0, else that of the
// first that failed. No other thread may be at work, and no GPU in use, when launch() is called.
//
// When a rank dies, the launcher tells the others which rank and why, and ends them within the
// timeout. SIGINT, SIGTERM and SIGHUP, which have their default action again in the ranks, are
// passed on to the ranks, which are continued if they are stopped and end in their own time; after
// a second SIGINT or SIGTERM they are ended at once. Each of these signals, if it is ignored, stays
// ignored by all. Ranks die with the launcher, even after SIGKILL. Ranks share the machine's
// cores: OMP_NUM_THREADS is set to cores / ranks, at least 1, unless it is set. Each rank's process
// is named "plait rank N".
//
// Throws UsageError if the options or the environment make no sense; Interrupted if ranks were
// interrupted and none has reported it; Error if a rank was killed and none has reported it, if a
// process cannot be started, or if the limit on open files is too low for so many.
std::optional<int> launch(const LaunchOptions& options);

}  // namespace plait
