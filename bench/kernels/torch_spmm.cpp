// The one file of this benchmark that sees torch.
#include "bench/kernels/torch_spmm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

struct TorchSpmm::Matrix {
  at::Tensor csr;
};

TorchSpmm::TorchSpmm(const Csr32& graph) : matrix_(std::make_unique<Matrix>()) {
  require(graph.edges() < std::uint64_t{1} << 31, "{} edges do not fit 32-bit offsets",
          graph.edges());
  const c10::InferenceMode inference;
  const auto vertices = static_cast<std::int64_t>(graph.vertices());
  const auto edges = static_cast<std::int64_t>(graph.edges());
  at::Tensor offsets = at::empty({vertices + 1}, at::kInt);
  at::Tensor columns = at::empty({edges}, at::kInt);
  at::Tensor values = at::empty({edges}, at::kFloat);
  std::copy(graph.offsets.begin(), graph.offsets.end(), offsets.data_ptr<int>());
  std::copy(graph.neighbours.begin(), graph.neighbours.end(), columns.data_ptr<int>());
  std::copy(graph.weights.begin(), graph.weights.end(), values.data_ptr<float>());
  matrix_->csr = at::sparse_csr_tensor(offsets, columns, values, {vertices, vertices},
                                       values.options().layout(at::kSparseCsr));
}

TorchSpmm::~TorchSpmm() = default;

void TorchSpmm::operator()(const float* x, float* y, std::uint64_t width) const {
  const c10::InferenceMode inference;
  const std::int64_t shape[] = {matrix_->csr.size(0), static_cast<std::int64_t>(width)};
  const at::Tensor in = at::from_blob(const_cast<float*>(x), shape, at::kFloat);
  at::Tensor out = at::from_blob(y, shape, at::kFloat);
  at::addmm_out(out, out, matrix_->csr, in, /*beta=*/0, /*alpha=*/1);
}

std::string TorchSpmm::settings() {
  const std::string config = at::show_config();
  const std::size_t mkl = config.find("Math Kernel Library");
  const std::size_t capability = config.find("CPU capability usage: ");
  const auto line_from = [&](std::size_t at) {
    return at == std::string::npos ? "?" : config.substr(at, config.find('\n', at) - at);
  };
  return fmt::format("torch {}, {} threads; {}; {}", TORCH_VERSION, at::get_num_threads(),
                     line_from(mkl), line_from(capability));
}

}  // namespace plait
