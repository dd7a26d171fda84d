// The arrays of a rank's part of the heap, in a step on embedding tables on the CPU.
#pragma once

#include "plait/embedding/bags.h"
#include "plait/embedding/embedding_layout.h"

namespace plait {

// The sizes of a batch, from which everyone knows where its arrays stand.
struct EmbeddingSizes {
  std::uint64_t per_table = 0;  // bags
  std::uint64_t ids = 0;
  std::uint64_t extra = 0;   // rows beside one per bag
  std::uint64_t shares = 0;  // of each id's product, that ranks write for this one
  bool weighted = false;
  bool max = false;  // sums are maxima, which have places (bag_maxima.h)
};
// Returns the sizes of a batch, of sums. `products`: owners write products of rows for this rank.
EmbeddingSizes embedding_sizes(const GivenBags& bags, const EmbeddingLayout& layout, bool products);

// Returns the rows beside one per bag that a batch needs at most, of so many ids by table.
std::uint64_t extra_rows(const EmbeddingLayout& layout, std::uint64_t per_table,
                         std::span<const std::uint64_t> ids);

// Returns the number of shares that the products of a table's ids have. If there are several, share
// r is the share of rank r.
std::uint64_t shares_of(const EmbeddingLayout& layout, std::size_t t);

// A rank's part of the heap. Every rank reads it; the owner of a piece writes sums there.
struct EmbeddingPart {
  EmbeddingSizes* sizes = nullptr;
  EdgeOffset* offsets = nullptr;
  Slot* ids = nullptr;
  float* weights = nullptr;
  // per_table x tables x width: sums, or their gradients, and the places of maxima. A rank alone
  // needs none.
  float* rows = nullptr;
  Slot* places = nullptr;
  // Rows beside one per bag, of table t and rank r from starts[t * (ranks + 1) + r] on. Forward:
  // the sums of this rank's bags by owners of rows; backward, with r = 0: this rank's gradients of
  // a replicated table, and the rows of the table that they are of.
  std::uint64_t* starts = nullptr;
  Slot* extra_ids = nullptr;
  Slot* extra_counts = nullptr;  // of the ids that name these rows
  float* extra = nullptr;
  Slot* extra_places = nullptr;  // of maxima, forward
  // shares x ids. It stands last, because a batch may get along without it at first.
  float* products = nullptr;
  std::uint64_t bytes = 0;

  // `first` may be null, to find out the bytes.
  EmbeddingPart(std::byte* first, const EmbeddingSizes& s, const EmbeddingLayout& layout);
  Bags bags() const {
    return {offsets, ids, sizes->weighted ? weights : nullptr, sizes->per_table};
  }
};

}  // namespace plait
