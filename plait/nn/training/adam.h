// Adam (Kingma and Ba, 2015), with the formulas of libtorch's Adam: results have the same bits on
// the CPU. On a GPU libtorch's Adam needs eight or nine kernels for each parameter, and this one
// needs three for all of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace plait {

struct AdamOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  std::size_t decayed = 0;  // the number of parameters, from the first, that decay
};

class Adam {
 public:
  // The parameters are float32, on one device, where the moments are too. Throws UsageError for a
  // negative rate or decay.
  Adam(std::vector<torch::Tensor> parameters, const AdamOptions& options);

  // Takes a step along the gradients that the parameters have; none may lack one.
  void step();

  // The state from which a run goes on: one tensor per parameter, and the number of steps.
  const std::vector<torch::Tensor>& exp_avg() const { return exp_avg_; }
  const std::vector<torch::Tensor>& exp_avg_sq() const { return exp_avg_sq_; }
  // Sets the number of steps taken so far, as a checkpoint tells it.
  void set_steps(std::int64_t steps) { steps_.fill_(steps); }

 private:
  // Takes a step for parameters begin .. end - 1.
  void step_group(std::size_t begin, std::size_t end, double weight_decay);

  AdamOptions options_;
  std::vector<torch::Tensor> parameters_, exp_avg_, exp_avg_sq_;
  torch::Tensor steps_;  // one float32, where the kernel that needs it reads it
};

}  // namespace plait
