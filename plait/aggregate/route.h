// How remote rows come to where they are summed: one choice, which is made once and carried whole.
#pragma once

#include "plait/aggregate/aggregate.h"
#include "plait/base/error.h"
#include "plait/symmetric/device_transport.h"

namespace plait {

struct Route {
  Strategy strategy = Strategy::automatic;
  DeviceTransport transport = DeviceTransport::vmm;  // between GPUs
  bool gpu = false;                                  // on the current GPU of each rank
  // Results are the same bits on any number of ranks, however the graph is cut: whatever is summed
  // over edges or vertices is summed in an order, or on a grid, that no partition changes.
  bool exact = false;

  EdgeOrder order() const { return exact ? EdgeOrder::as_given : EdgeOrder::local_first; }
};

// Throws UsageError if an exact result is asked for of a strategy that sums in an order of its own.
inline void require_exact_strategy(const Route& route) {
  const bool own_order = route.gpu && route.strategy != Strategy::automatic &&
                         route.strategy != Strategy::pipelined &&
                         route.strategy != Strategy::bulk && route.strategy != Strategy::replicate;
  require<UsageError>(!route.exact || !own_order,
                      "strategy {} on GPUs sums in an order that depends on how the graph is cut; "
                      "with --exact use pipelined, bulk or replicate",
                      to_string(route.strategy));
}

}  // namespace plait
