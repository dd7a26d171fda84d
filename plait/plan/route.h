// The choice of how an operation is spread over ranks. It is made once, from the command line or
// from Python, and carried whole.
#pragma once

#include "plait/base/dtype.h"
#include "plait/base/transport.h"
#include "plait/partition/partition.h"
#include "plait/placement/shard.h"
#include "plait/plan/get_tuning.h"
#include "plait/plan/strategy.h"

namespace plait {

// One such choice, the same on all ranks. choose() turns an automatic strategy into a definite one.
struct Route {
  Strategy strategy = Strategy::automatic;
  PartitionScheme partition = PartitionScheme::edges;
  DeviceTransport transport = DeviceTransport::vmm;  // between GPUs
  // Type in which rows cross between ranks to be summed: f32 or bf16. Own rows, and the sums on
  // their rank, are fp32 in any case.
  DType wire = DType::f32;
  bool gpu = false;  // on each rank's current GPU
  // Results are the same bits on any number of ranks, however the graph is cut: every sum over
  // edges or vertices is made in an order, or on a grid, that no partition changes.
  bool exact = false;
  GetTuning get = {};  // for strategy get on GPUs

  // The order in which shards keep the edges of a row, and the traits of the strategy on the
  // route's device.
  EdgeOrder order() const { return exact ? EdgeOrder::as_given : EdgeOrder::local_first; }
  const StrategyOnDevice& placement() const { return traits_of(strategy).on(gpu); }
  // Tells whether the settings of strategy get apply.
  bool gets_on_gpus() const { return gpu && strategy == Strategy::get; }
  // Tells whether kernels call NVSHMEM's device functions.
  bool reads_by_nvshmem() const { return gets_on_gpus() && get.read_with == ReadWith::nvshmem; }
};

}  // namespace plait
