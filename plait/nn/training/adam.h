// Adam (Kingma and Ba, 2015), with the formulas of libtorch's: on the CPU the same bits. On a GPU
// libtorch's needs eight or nine kernels for each parameter, this one three for all of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace plait {

struct AdamOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  std::size_t decayed = 0;  // how many parameters decay: the first ones
};

class Adam {
 public:
  // The parameters are float32, on one device, where the moments are too. Throws UsageError for a
  // negative rate or decay.
  Adam(std::vector<torch::Tensor> parameters, const AdamOptions& options);

  // Along the gradients that the parameters have; none may lack one.
  void step();

  // What a run goes on from: one tensor for each parameter, and how many steps there were.
  const std::vector<torch::Tensor>& exp_avg() const { return exp_avg_; }
  const std::vector<torch::Tensor>& exp_avg_sq() const { return exp_avg_sq_; }
  void set_steps(std::int64_t steps) { steps_.fill_(steps); }

 private:
  // Of parameters begin .. end.
  void step_group(std::size_t begin, std::size_t end, double weight_decay);

  AdamOptions options_;
  std::vector<torch::Tensor> parameters_, exp_avg_, exp_avg_sq_;
  torch::Tensor steps_;  // one float32, where the kernel that needs it reads it
};

}  // namespace plait
