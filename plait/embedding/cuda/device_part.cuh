// The arrays of a rank's part of the heap on GPUs, in a step on embedding tables.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plait/embedding/cuda/bags.cuh"
#include "plait/embedding/embedding_layout.h"

namespace plait {

// The sizes of a rank's batch, from which everyone knows where its arrays stand. The host's heap
// has them, followed by the places in the batch's ids where tables begin, and the end.
struct DeviceSizes {
  std::uint64_t per_table = 0;  // bags
  std::uint64_t ids = 0;
  std::uint64_t weighted = 0;
  std::uint64_t shares = 0;  // of each id's product, that ranks write for this one
  std::uint64_t max = 0;     // 1: sums are maxima, which have places (embedding/bag_maxima.h)
};
struct DeviceBatch {
  DeviceSizes sizes;
  std::vector<std::uint64_t> starts;

  std::uint64_t ids_of(std::size_t t) const { return starts[t + 1] - starts[t]; }
};

// The arrays of a rank's part of the heap.
struct DevicePart {
  DeviceBags bags;
  // per_table x tables x width: sums, or their gradients, and the places of maxima. A rank alone
  // needs none.
  float* rows = nullptr;
  Slot* places = nullptr;
  // Sums by owners of rows (BagSums::parts); backward, this rank's gradients of replicated tables:
  // their rows, the numbers of ids that name these, and the values.
  float* extra = nullptr;
  Slot* extra_places = nullptr;  // of maxima, forward
  Slot *shared_rows = nullptr, *shared_counts = nullptr;
  float* shared_values = nullptr;
  // shares x ids. It stands last, because a batch may get along without it at first.
  float* products = nullptr;
  std::uint64_t bytes = 0;

  DevicePart(std::byte* first, const DeviceSizes& sizes, const EmbeddingLayout& layout) {
    const std::uint64_t tables = layout.tables(), width = layout.width();
    const std::uint64_t bags_of_all = sizes.per_table * tables;
    bags.per_table = sizes.per_table;
    bags.offsets = next<EdgeOffset>(first, bags_of_all + 1);
    bags.ids = next<Slot>(first, sizes.ids);
    float* const weights = next<float>(first, sizes.weighted != 0 ? sizes.ids : 0);
    bags.weights = sizes.weighted != 0 ? weights : nullptr;
    const std::uint64_t sums = layout.ranks() > 1 ? bags_of_all * width : 0;
    rows = next<float>(first, sums);
    places = next<Slot>(first, sizes.max * sums);
    const std::uint64_t before = bytes;
    std::uint64_t parts = 0, shared = 0;
    for (std::size_t t = 0; layout.ranks() > 1 && t < tables; ++t) {
      if (layout.table(t).split == EmbeddingSplit::rows)
        parts += static_cast<std::uint64_t>(layout.ranks()) * bags.per_table;
      if (layout.table(t).split == EmbeddingSplit::replicated) shared += layout.table(t).rows;
    }
    shared = std::min(shared, sizes.ids);
    extra = next<float>(first, parts * width);
    extra_places = next<Slot>(first, sizes.max * parts * width);
    const std::uint64_t behind = std::exchange(bytes, before);
    shared_rows = next<Slot>(first, shared);
    shared_counts = next<Slot>(first, shared);
    shared_values = next<float>(first, shared * width);
    bytes = std::max(bytes, behind);
    products = next<float>(first, sizes.shares * sizes.ids);
  }

 private:
  template <class T>
  T* next(std::byte* first, std::uint64_t count) {
    constexpr std::uint64_t kAlign = 256;  // bytes
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    T* const place = reinterpret_cast<T*>(first + bytes);
    bytes += count * sizeof(T);
    return place;
  }
};

}  // namespace plait
