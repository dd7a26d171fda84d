// Lets all ranks take the profile of a machine that one of them has. All functions are collective.
#pragma once

#include <optional>
#include <string>

#include "plait/machine/machine.h"
#include "plait/world/world.h"

namespace plait {

// All ranks take the profile of rank 0, if it has one, unless PLAIT_MACHINE names theirs.
void share_machine(World& world, const std::optional<MachineProfile>& of_first);

// Ranks on GPUs take the profile of what `plait doctor --measure` measured on as many GPUs of this
// kind, if rank 0 finds it in its user's cache. Returns on rank 0 why a file that is there was not
// used, else an empty text.
std::string use_measured_machine(World& world);

}  // namespace plait
