// Embedding tables on GPUs, as Embeddings::create() makes them. This header needs no header of
// CUDA.
#pragma once

#include "plait/embedding/embeddings.h"

namespace plait {

// Collective. A step backward numbers the rows of a rank's tables in numberings of fewer than
// `most_numbered` rows, and sorts the edges of each at once; others than the default are for tests.
std::unique_ptr<Embeddings> make_gpu_embeddings(World& world, const EmbeddingLayout& layout,
                                                const EmbeddingRules& rules,
                                                std::uint64_t most_numbered = ~Slot{0});

}  // namespace plait
