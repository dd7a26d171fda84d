// Measures the rates of ranks on the CPU (machine/rates.h).
#pragma once

#include "plait/machine/rates.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Measures ranks of one host, with as many threads as they have: the reads of spmm()
// from own and from peers' memory by bytes of a row, copies, barriers and loops. Every rank gets
// the same values: of the slowest rank, the median of a few repetitions. Takes about a second, and
// 64 MiB on each rank besides what 32 MiB of reads take. Throws UsageError if ranks are on several
// hosts, DoesNotFitError before memory is taken.
MachineRates measure_cpu_rates(World& world);

}  // namespace plait
