// How remote rows come to where they are summed: one choice, which is made once and carried whole.
#pragma once

#include "plait/aggregate/aggregate.h"
#include "plait/symmetric/device_transport.h"

namespace plait {

struct Route {
  Strategy strategy = Strategy::automatic;
  DeviceTransport transport = DeviceTransport::vmm;  // between GPUs
  bool gpu = false;                                  // on the current GPU of each rank
};

}  // namespace plait
