// How remote rows come to where they are summed: one choice, which is made once and carried whole.
#pragma once

#include "plait/aggregate/aggregate.h"
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

}  // namespace plait
