// Pairs that are no edges, drawn on a GPU: the same pairs, bit by bit, as NonEdges draws. This
// header needs no header of CUDA; a build without CUDA throws UsageError.
#pragma once

#include <cstdint>
#include <memory>

#include "plait/sample/non_edges.h"

namespace plait {

// A copy of NonEdges in the memory of the current GPU. Several threads may use it at once.
class GpuNonEdges {
 public:
  // Waits for the copy. Throws DoesNotFitError.
  explicit GpuNonEdges(const NonEdges& pairs);
  ~GpuNonEdges();

  // The values of one draw; `count` is NonEdges::drawn().
  struct Draw {
    std::uint64_t count = 0;
    bool replace = false;
    std::uint64_t key = 0;
  };
  // Enqueues NonEdges::draw() on the cudaStream_t: the rows of the pairs to `rows`, the columns to
  // `columns`, in memory of the GPU. Waits for it if pairs are to differ, which takes 32 to 64
  // bytes per pair. Throws DoesNotFitError.
  void draw(const Draw& draw, std::uint64_t* rows, std::uint64_t* columns, void* stream) const;
  // Does NonEdges::draw_columns() for `count` rows, in memory of the GPU, and waits for it. Throws
  // as that does.
  void draw_columns(const std::uint64_t* rows, std::uint64_t count, std::uint64_t key,
                    std::uint64_t* columns, void* stream) const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

}  // namespace plait
