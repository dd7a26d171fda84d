// Measures the rates of GPUs (machine/rates.h). This header needs no header of CUDA.
#pragma once

#include "plait/machine/rates.h"
#include "plait/world/world.h"

namespace plait {

// Collective; each rank on its current GPU, all on one host. Every rank gets the same values: of
// the slowest rank, the median of a few repetitions. Takes about two seconds, 1 GiB of each GPU and
// 256 MiB of the host per rank. Throws UsageError if GPUs do not reach each other or this build has
// no GPU engine, DoesNotFitError before memory is taken, LostRankError if a rank is lost.
MachineRates measure_gpu_rates(World& world);

}  // namespace plait
