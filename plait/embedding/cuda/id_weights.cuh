// Gradients of the weights of ids on GPUs (embedding/id_weights.h).
#pragma once

#include "plait/embedding/cuda/bag_sums.cuh"

namespace plait {

// Products of rows and gradients of bags, in memory of the reader: one per id of its bags. Those of
// tables that are divided by columns have one share per rank, `ids` floats apart.
struct IdProducts {
  float* at = nullptr;
  std::uint64_t ids = 0;
};

// Enqueues the products of this rank's rows with `gradients`, samples x tables x width, of a
// reader's bags; products of replicated tables only if the reader is this rank (`own`).
void multiply_rows(const DevicePieces& pieces, const DeviceBags& bags, bool own,
                   const float* gradients, const IdProducts& to, cudaStream_t stream);
// Enqueues the sums of shares in the order of ranks, one per id, 0 for padding, of this rank's
// bags.
void collect_products(const DevicePieces& pieces, const DeviceBags& bags, const IdProducts& from,
                      float* out, cudaStream_t stream);

}  // namespace plait
