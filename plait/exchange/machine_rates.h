// Measures the rates of a machine (plan/machine_rates.h), and lets all ranks take what was
// measured.
//
// All functions are collective. Every rank gets the same values: of the slowest rank, the median of
// a few repetitions.
#pragma once

#include <optional>
#include <string>

#include "plait/plan/machine.h"
#include "plait/plan/machine_rates.h"
#include "plait/world/world.h"

namespace plait {

// Measures ranks of one host on the CPU, with as many threads as they have: the reads of spmm()
// from own and from peers' memory by bytes of a row, copies, barriers and loops. Takes about a
// second, and 64 MiB on each rank besides what 32 MiB of reads take. Throws UsageError if ranks are
// on several hosts, DoesNotFitError before memory is taken.
MachineRates measure_cpu_rates(World& world);

// All ranks take the profile of rank 0, if it has one, unless PLAIT_MACHINE names theirs.
void share_machine(World& world, const std::optional<MachineProfile>& of_first);

// Ranks on GPUs take the profile of what `plait doctor --measure` measured on as many GPUs of this
// kind, if rank 0 finds it in its user's cache. Returns on rank 0 why a file that is there was not
// used, else an empty text.
std::string use_measured_machine(World& world);

}  // namespace plait
