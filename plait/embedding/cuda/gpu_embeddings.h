// Embedding tables over ranks with a GPU each (embedding/embeddings.h). This header needs no
// header of CUDA; a build without CUDA throws UsageError.
//
// Bags, sums and gradients of all ranks are in the symmetric heap on GPUs, and an owner's kernel
// stores the sums of a reader's bags straight into the reader's memory, over NVLink. Hosts meet
// where ranks must, after their streams have ended: no kernel waits for another GPU, so that a lost
// rank is an error of the host's barrier. A step takes two to four such meetings, and if norms are
// limited a step forward takes one more per table that is divided by columns.
//
// Determinism is that of the CPU's, but for the order of additions: the bits are the same each
// time, and gradients of replicated tables have the same bits on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "plait/embedding/embeddings.h"

namespace plait {

// The gradient of a piece, in memory of the GPU: `count` rows, ascending, of `columns` floats.
struct GpuRowGradients {
  const std::int64_t* rows = nullptr;
  const float* values = nullptr;
  std::uint64_t count = 0;
};

class GpuEmbeddings {
 public:
  // Returns memory of the current GPU, of so many bytes, that outlives what is put there.
  using Room = std::function<void*(std::uint64_t bytes)>;

  // Collective, for the current GPU of each rank; otherwise as Embeddings, but for at most 32
  // ranks. A step backward numbers the rows of a rank's tables in numberings of fewer than
  // `most_numbered` rows, and sorts the edges of each at once; others than the default are for
  // tests. Throws Error if GPUs do not reach each other's memory, and UsageError on all ranks if a
  // group of tables (embedding/row_numbers.h) has too many rows on one of them, or, where norms are
  // limited, if all tables have 2^32 - 1 or more.
  static std::unique_ptr<GpuEmbeddings> create(World& world, const EmbeddingLayout& layout,
                                               const EmbeddingRules& rules,
                                               std::uint64_t most_numbered = ~Slot{0});
  virtual ~GpuEmbeddings() = default;

  // Collective. As those of Embeddings; all arrays are in memory of the GPU. Work is enqueued on
  // the cudaStream_t, which is waited for at meetings. A step that fails on one rank alone loses
  // this rank for the others, as there.
  virtual std::uint64_t forward(const GivenBags& bags, const TablePieces& pieces,
                                const BagResults& out, void* stream) = 0;
  virtual std::vector<GpuRowGradients> backward(const GivenBags& bags, std::uint64_t number,
                                                const BagGradients& gradients, const Room& room,
                                                void* stream) = 0;
};

}  // namespace plait
