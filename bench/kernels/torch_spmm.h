// The product of torch.sparse, in its best form: CSR with 32-bit indices (MKL), y allocated before.
// It has a file of its own, because torch's headers take long to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plait/graph/csr.h"

namespace plait {

class TorchSpmm {
 public:
  // A square matrix; the graph must be weighted and have fewer than 2^31 edges.
  explicit TorchSpmm(const Csr32& graph);
  ~TorchSpmm();
  // Computes y = A x; both have one row of `width` floats per vertex.
  void operator()(const float* x, float* y, std::uint64_t width) const;
  // Returns the settings of the rival: versions, threads, instruction set.
  static std::string settings();

 private:
  struct Matrix;
  std::unique_ptr<Matrix> matrix_;
};

}  // namespace plait
