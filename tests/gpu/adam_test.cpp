// Adam on a GPU against the CPU.
#include "plait/nn/training/adam.h"

#include <gtest/gtest.h>

#include "plait/base/gpu.h"
#include "plait/nn/operations/torch_device.h"

namespace plait {
namespace {

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors,
                                  const torch::Device& device) {
  std::vector<torch::Tensor> list;
  for (const torch::Tensor& t : tensors)
    list.push_back(t.detach().to(device, false, true).requires_grad_(t.requires_grad()));
  return list;
}

// Starts from a step in the middle, as after a checkpoint, for both groups and for an empty one.
TEST(GpuAdam, TakesTheStepsOfTheCpu) {
  use_gpu(0);
  const torch::Device gpu = torch_device(true);
  torch::manual_seed(1);
  for (const std::size_t decayed : {0, 2, 4}) {
    std::vector<torch::Tensor> here;
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{70, 900}, {70}, {1, 70}, {1}})
      here.push_back(torch::randn(shape).requires_grad_());
    const std::vector<torch::Tensor> there = copies(here, gpu);
    const AdamOptions options{.learning_rate = 0.02, .weight_decay = 0.1, .decayed = decayed};
    Adam cpu_adam(here, options), gpu_adam(there, options);
    for (int step = 0; step < 10; ++step) {
      for (std::size_t i = 0; i < here.size(); ++i) {
        here[i].mutable_grad() = torch::randn_like(here[i].detach());
        there[i].mutable_grad() = here[i].grad().to(gpu);
      }
      if (step == 5)
        for (Adam* const adam : {&cpu_adam, &gpu_adam}) adam->set_steps(40);
      cpu_adam.step();
      gpu_adam.step();
    }
    const auto expect_close = [&](const std::vector<torch::Tensor>& found,
                                  const std::vector<torch::Tensor>& wanted) {
      const auto back = copies(found, torch::kCPU);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_TRUE(torch::allclose(back[i], wanted[i], 1e-4, 1e-5))
            << "parameter " << i << " with " << decayed << " decayed";
    };
    expect_close(there, here);
    expect_close(gpu_adam.exp_avg(), cpu_adam.exp_avg());
    expect_close(gpu_adam.exp_avg_sq(), cpu_adam.exp_avg_sq());
  }
}

}  // namespace
}  // namespace plait
