// The output of plait train --json, as plait report reads it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "plait/nn/training/train.h"

namespace plait::cli {

// Where a training ran.
struct RunPlace {
  std::string graph;
  const char* device;  // "cpu" or "cuda"
  int ranks;
};
// Returns the run as one object: its settings, its epochs, its results and its costs. `setup`: by
// rank, the seconds before the first epoch.
nlohmann::json run_to_json(const RunPlace& place, const TrainConfig& train,
                           const TrainResult& result, const std::vector<double>& setup);

struct Run {
  std::string name;  // of the file, without folder and ending
  std::string model, device, strategy, partition;
  std::string graph, metric;  // metric: "accuracy" where the file does not say
  std::size_t ranks = 1;
  std::uint64_t seed = 0;
  int best_epoch = 0;
  bool interrupted = false;
  double train_metric = 0, val_metric = 0, test_metric = 0;
  double epoch_ms = 0, comm_share = 0, bytes_per_rank = 0;
  std::vector<double> loss, val_loss, val_metric_by_epoch;  // NaN: not finite; empty: not told
  // By rank; empty if the file does not have them.
  std::vector<std::pair<std::string, std::vector<double>>> phases;  // s
  std::vector<std::vector<double>> bytes_between;                   // [reader][owner]
  std::vector<double> host_memory, gpu_memory;                      // bytes
};

// Throws InputError.
Run read_run(const std::string& path);

}  // namespace plait::cli
