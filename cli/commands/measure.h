// plait doctor --measure: measures the machine and keeps its rates.
#pragma once

#include "cli/cli.h"

namespace plait::cli {

// Measures session.ranks ranks, or session.gpus GPUs, keeps the rates (machine/kept_machine.h), and
// prints them.
void measure_machine(Session& session);

}  // namespace plait::cli
