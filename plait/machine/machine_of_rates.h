// The constants of a machine whose rates were measured.
#pragma once

#include <optional>
#include <string>

#include "plait/machine/kept_machine.h"
#include "plait/machine/machine.h"
#include "plait/machine/rates.h"

namespace plait {

// Returns the profile of so many GPUs with these rates. The constants of the H200 were fitted to
// times of whole steps; each that depends on a rate is scaled by the ratio of the measured rate to
// the rate of as many H200s (reference_rates()). Constants whose rate was not measured, and
// constants that depend on no rate, are the H200's.
MachineProfile machine_of(const std::string& name, const MachineRates& rates, int ranks);

// The profile of a machine that `plait doctor --measure` measured.
struct MeasuredMachine {
  std::optional<MachineProfile> profile;  // none: it was not measured, or PLAIT_MACHINE names one
  std::string note;                       // why a file that is there was not used; else empty
};
// Returns what is kept (kept_machine.h) for GPUs.
MeasuredMachine measured_machine(const MachineKey& gpus);

// Returns the rates that the constants of the built-in profile belong to: rates of so many H200s,
// and latencies of the host of two H100s (docs/performance.md). A GPU pushes to three peers in turn
// at fewer bytes per second than to one, so that rates of links depend on the number; three and
// more GPUs have the rates of four.
const MachineRates& reference_rates(int ranks);

}  // namespace plait
