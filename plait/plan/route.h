// The choice of how an operation is spread over ranks. It is made once, from the command line or
// from Python, and carried whole.
#pragma once

#include <string_view>

#include "plait/base/dtype.h"
#include "plait/base/transport.h"
#include "plait/partition/partition.h"
#include "plait/placement/shard.h"
#include "plait/plan/get_tuning.h"
#include "plait/plan/strategy.h"

namespace plait {

// One such choice, the same on all ranks. choose() in choose.h makes it, by the graph and the
// machine.
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
  // Tells whether NCCL brings rows of other ranks, if there are some.
  bool by_nccl() const { return gpu && traits_of(strategy).by_nccl; }
  // Tells whether the settings of strategy get apply.
  bool gets_on_gpus() const { return gpu && strategy == Strategy::get; }
  // Tells whether kernels call NVSHMEM's device functions.
  bool reads_by_nvshmem() const { return gets_on_gpus() && get.read_with == ReadWith::nvshmem; }
};

// Returns the route with a strategy that is not automatic: pipelined on GPUs, bulk on the CPU.
// Throws a UsageError that says what to use instead if the route has
//   - a strategy or a transport of GPUs on the CPU,
//   - a wire type of less than fp32 and a strategy that moves rows as they are,
//   - exact sums of rows that cross as less than fp32,
//   - exact sums on GPUs by a strategy whose order of summing depends on how the graph is cut,
//   - strategy get on GPUs with settings out of range, or that reads by NVSHMEM's device functions
//     over another transport.
Route resolved(Route route);

// Throws a UsageError unless the route brings rows themselves to edges, in full precision, as
// operations that are no sums need them.
void require_rows(const Route& route);

// Returns the type of rows on the wire of this name: "fp32" or "bf16". Throws a UsageError that
// lists them.
DType parse_wire(std::string_view name);
// Throws a UsageError if rows are to cross as less than fp32 in a run of so many ranks, but there
// is only one.
void require_wire_used(const Route& route, int ranks);

// Tells whether each of the route's GPUs must reach the memory of the others.
bool needs_peer_access(const Route& route);

}  // namespace plait
