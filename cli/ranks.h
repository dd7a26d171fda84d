// Functions that the subcommands which run on ranks share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "plait/aggregate/route_choice.h"
#include "plait/world/world.h"

namespace plait::cli {

// --strategy, --partition, --reorder, --transport, --wire, --exact, --ranks, --gpus and the
// settings of strategy get.
void add_route_options(CLI::App* command, Session& session, Route& route);
// --explain, and the descriptions of --strategy and --partition, for commands that call
// decided_layout().
void add_explain_option(CLI::App* command, Session& session);
// --reorder, --ranks, --gpus and --transport, which the options of a route include.
void add_rank_options(CLI::App* command, Session& session, DeviceTransport& transport);
void add_wire_option(CLI::App* command, DType& wire);
// --ranks and --gpus.
void add_count_options(CLI::App* command, Session& session);
void add_transport_option(CLI::App* command, DeviceTransport& transport);
// --timeout and --gpu-timeout, for a command that starts ranks.
void add_timeout_options(CLI::App* command, Session& session);

// Notes what GPUs and this build must be able to do for the route, for on_ranks() to check before
// anything is read.
void note_needs(Session& session, const Route& route);

// Runs `body` on every rank: in the world that the environment names, else in one process per rank
// or GPU, or in this process if there is one rank. With --gpus, each rank's GPU is the current one.
// Sets session.exit_code. Throws UsageError, on all ranks, if they have different settings.
void on_ranks(Session& session, const std::function<void(World&)>& body);

// The processors that do the work: "3 ranks", "3 GPUs".
std::string ranks_of(const World& world, const Session& session);

// The type of rows on the wire, if it is not fp32: ", bf16 on the wire".
std::string on_the_wire(const Route& route);

// The kind of processor that does the work: "cuda" or "cpu".
const char* device_name(const Session& session);

// Collective. Reads the same graph on every rank, and renumbers it if --reorder says so. Throws
// Error, on all ranks, if they read different graphs.
Dataset read_graph(World& world, const std::string& path, const Session& session);

// Returns the run of a training whose route is to be chosen, for a model whose inputs and outputs
// are the dataset's, which outlives the result. Throws UsageError for a model that cannot be.
GraphRun training_on(const Dataset& dataset, const TrainConfig& config);
// Collective. Returns the strategies that can be worth their while and that these ranks can go.
std::vector<Strategy> worthwhile_strategies(World& world, const Route& standard);

// A route, and the partition that belongs to it.
struct Layout {
  Choice choice;
  Partition partition;
};
// Collective. Returns the layout of a run, the same on all ranks: what the user left open is chosen
// (aggregate/route_choice.h). Says so if the session explains.
Layout decided_layout(World& world, const Session& session, GraphRun& run);

}  // namespace plait::cli
