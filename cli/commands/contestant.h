// The settings that the benchmarks of `plait bench` share, and the settings of a contestant.
#pragma once

#include <string>

#include "cli/cli.h"
#include "plait/base/error.h"
#include "plait/measure/cuda/bench.h"
#include "plait/plan/route.h"

namespace plait::cli {

// Returns the settings of a strategy, of "auto", or of "cusparse": bulk with cuSPARSE's sum, rows
// in fp32 on the wire. Throws UsageError for other names, and for those that CPU ranks cannot go
// unless the work is on GPUs (`gpu`).
inline ExchangeOptions contestant(const std::string& name, DType wire, DeviceTransport transport,
                                  bool gpu = true) {
  const bool cusparse = name == "cusparse";
  require<UsageError>(gpu || !cusparse, "cusparse sums on GPUs; add --gpus");
  ExchangeOptions options{.shards = {.transposed = false}};
  options.route = {.strategy = cusparse ? Strategy::bulk : parse_strategy(name),
                   .transport = transport,
                   .wire = cusparse ? DType::f32 : wire,
                   .gpu = gpu};
  options.tuning.sum_by_cusparse = cusparse;
  options.route = resolved(options.route);
  return options;
}

// How a benchmark measures.
struct BenchSettings {
  PartitionScheme scheme;
  DeviceTransport transport;
  BenchEffort effort;
};

// Adds --repetitions, --partition, --transport, --gpus, --seed and the timeouts.
void add_bench_settings(CLI::App* command, Session& session, BenchSettings& settings);

}  // namespace plait::cli
