// What a model and a training run are made from. No libtorch here, so that callers need none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plait/aggregate/aggregate.h"
#include "plait/symmetric/device_transport.h"

namespace plait {

struct ModelConfig {
  std::string kind = "gcn";
  int layers = 2;
  std::int64_t hidden = 16;
  std::int64_t inputs = 0;   // feature width
  std::int64_t outputs = 0;  // classes
  float dropout = 0.5f;      // on the input of every layer
  std::uint64_t seed = 0;
};

// The kinds there are:
//   gcn  graph convolution, D^-1/2 (A + I) D^-1/2 X W + b with ReLU between layers (Kipf and
//        Welling, ICLR 2017, equations 2 and 9).
//   mlp  the same layers without the graph: what the features alone can tell.
// Throws UsageError that lists them.
void check_model_kind(const std::string& kind);

enum class Normalize {
  automatic,  // for bags of words (stored sparse, or all 0 or 1): rows, or unit if they hold
              // over 50 words on average, of which rows would leave too little; else none
  rows,       // each row divided by its sum, where that is not 0 (Kipf and Welling, section 5.2)
  unit,       // each row divided by its Euclidean length, where that is not 0
  none,
};
// Throws UsageError that lists them.
Normalize parse_normalize(std::string_view name);

struct TrainConfig {
  ModelConfig model;  // inputs and outputs are filled from the dataset
  double learning_rate = 0.01;
  double weight_decay = 5e-4;  // L2, on all layers but the last (Kipf and Welling: on the first)
  int epochs = 200;
  int patience = 0;  // stop when the validation loss has not fallen for so many epochs; 0: never
  std::uint32_t split = 0;
  Normalize normalize = Normalize::automatic;
  Strategy strategy = Strategy::bulk;
  std::string checkpoint;  // written when training ends, and every `checkpoint_every` epochs
  int checkpoint_every = 50;
  std::string resume;                                // a checkpoint to go on from
  bool gpu = false;                                  // on the current GPU of each rank
  DeviceTransport transport = DeviceTransport::vmm;  // between them
};

struct InferConfig {
  std::string checkpoint;  // what training wrote
  Normalize normalize = Normalize::automatic;
  Strategy strategy = Strategy::automatic;
  bool gpu = false;
  DeviceTransport transport = DeviceTransport::vmm;
};

}  // namespace plait
