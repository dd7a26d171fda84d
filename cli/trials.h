// The trials of ways that training made (plan/optimiser.h): shown, and kept for later runs.
#pragma once

#include "cli/ranks.h"
#include "plait/nn/training/train.h"

namespace plait::cli {

// When training may try ways: `automatic` on the CPU, `on` on GPUs too. There a predicted way is
// hardly ever far from the best (docs/performance.md), and placing a graph takes as long as many
// epochs.
enum class Optimise { automatic, on, off };
// --optimise.
void add_optimise_option(CLI::App* command, Optimise& optimise);
bool may_try(Optimise optimise, bool gpu);
// The fields `passes` and `trials` of plait train --json.
json trials_to_json(const TrainResult& result);
// Says on stderr, if --optimise on asks for trials, that none is made or was worth its time.
// `reason`: why; empty: nothing is said.
void say_untried(Optimise optimise, const std::string& reason, const Session& session);
// Returns why no other way than the first was tried; empty if one was, or if there is none.
std::string why_untried(const TrainResult& result);
// Says on stderr, if the session explains, which ways were tried and which way stayed.
void explain_trials(const TrainResult& result, const Session& session);
// Keeps the times of trials that ended, so that the next run can begin by them. `run` has the route
// that was chosen; `here`: its ranks on this host. Warns if the file cannot be written: the run
// itself succeeded.
void keep_trials(const TrainResult& result, const GraphRun& run, int here, const Session& session);

}  // namespace plait::cli
