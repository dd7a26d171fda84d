// Embedding tables over ranks: sums over bags of ids, and the gradients of rows.
//
// Ranks of one host publish their bags in the symmetric heap. The owner of a piece sums the rows of
// each bag and writes the sum where the reader has room for it, so that one row per bag and owner
// moves instead of one row per id. On the CPU, if a table is divided by rows, a rank sends nothing
// for a bag that names none of its rows. Gradients take the same way back: an owner reads the
// gradient of each bag and adds it to the rows that the bag names. Ranks wait for each other only
// at barriers.
//
// On GPUs, bags, sums and gradients of all ranks are in the symmetric heap on GPUs, and an owner's
// kernel stores the sums of a reader's bags straight into the reader's memory, over NVLink. Hosts
// meet where ranks must, after their streams have ended: no kernel waits for another GPU, so that a
// lost rank is an error of the host's barrier. A step takes two to four such meetings, and if norms
// are limited a step forward takes one more per table that is divided by columns.
//
// Determinism: on the CPU a bag is summed in the order of its ids, and the sums of owners are added
// in the order of ranks. A row's gradient is summed in the order of (rank, bag, id). No bit depends
// on the number of threads. GPUs add in another order; their bits are the same each time. On either
// device, gradients of replicated tables have the same bits on all ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plait/base/device.h"
#include "plait/embedding/bags.h"
#include "plait/embedding/embedding_layout.h"
#include "plait/embedding/embedding_rules.h"
#include "plait/embedding/embedding_step.h"
#include "plait/embedding/piece_rows.h"
#include "plait/symmetric/heap.h"

namespace plait {

// The gradient of a piece: its rows that have a gradient, ascending, and `columns` floats for each.
// It is in memory of the tables' device that the caller of backward() has given.
struct RowGradients {
  const std::int64_t* rows = nullptr;
  const float* values = nullptr;
  std::uint64_t count = 0;
};

// The arrays that a step forward writes.
struct BagResults {
  float* sums = nullptr;   // samples x tables x width
  Slot* places = nullptr;  // likewise, in mode max: the places of the maxima (bag_maxima.h)
  bool backward = false;   // a step backward will follow, on all ranks or on none
};

// The gradients that a step backward reads and writes, beside the gradients of rows.
struct BagGradients {
  const float* sums = nullptr;   // the gradients of the sums that forward() has written
  const Slot* places = nullptr;  // in mode max: the places that forward() has written
  // The gradients of the weights of ids are written here, one per id; null: they are not wanted.
  float* weights = nullptr;
  // The pieces, as forward() has read them: needed if any rank wants gradients of weights.
  TablePieces pieces = {};
};

// Tables of one width, whose rows stay with the caller.
class Embeddings {
 public:
  // Returns memory of the tables' device, of so many bytes, that outlives what is put there.
  using Room = std::function<void*(std::uint64_t bytes)>;

  // Collective; on GPUs for the current GPU of each rank, and for at most 32 ranks. Layout, rules
  // and device are the same on all ranks. The world outlives this object. Throws UsageError for
  // ranks on several hosts. On GPUs, throws Error if they do not reach each other's memory, and
  // UsageError on all ranks if a group of tables (embedding/row_numbers.h) has too many rows on one
  // of them, or, where norms are limited, if all tables have 2^32 - 1 or more.
  static std::unique_ptr<Embeddings> create(World& world, const EmbeddingLayout& layout,
                                            const EmbeddingRules& rules, Device device);
  virtual ~Embeddings() = default;

  const EmbeddingLayout& layout() const { return layout_; }

  // Collective; ranks give any numbers of bags, also none. All arrays are in memory of the device.
  // On a GPU, work is enqueued on the cudaStream_t, which is waited for at meetings. A step that
  // fails on one rank alone, for a reason that is not named below, loses this rank for the others
  // (together()). Writes out.sums[b][t], `width` floats each: the sum of bag b of table t, or what
  // the rules make of it. `pieces`: this rank's pieces. Rows are changed if their norms are
  // limited. Returns the number of the batch, for backward(). Throws UsageError on all ranks if the
  // bags of one rank are wrong, DoesNotFitError if there is no memory.
  std::uint64_t forward(const GivenBags& bags, const TablePieces& pieces, const BagResults& out,
                        void* stream = nullptr);
  // Collective, likewise. Returns by table the gradient of this rank's piece, in memory of `room`.
  // `number`: the number that forward() returned for these bags, which need not be the last bags.
  // Throws UsageError on all ranks if pieces that are needed are missing on any rank.
  std::vector<RowGradients> backward(const GivenBags& bags, std::uint64_t number,
                                     const BagGradients& gradients, const Room& room,
                                     void* stream = nullptr);

 protected:
  // Collective.
  Embeddings(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules);

  // Tells whether the memory of all ranks is there.
  virtual bool has_memory() const { return heap_ != nullptr; }
  // forward() and backward(), within together().
  virtual std::uint64_t run_forward(const GivenBags& bags, const TablePieces& pieces,
                                    const BagResults& out, void* stream) = 0;
  virtual std::vector<RowGradients> run_backward(const GivenBags& bags, std::uint64_t number,
                                                 const BagGradients& gradients, const Room& room,
                                                 void* stream) = 0;

  World& world_;
  const EmbeddingLayout layout_;
  const EmbeddingRules rules_;
  BagTables tables_;
  std::unique_ptr<SymmetricHeap> heap_;  // of the host
  StepUnderWay step_;
  std::uint64_t number_ = 0;     // of the last batch
  std::uint64_t published_ = 0;  // the number of the batch that ranks have published; 0: none

 private:
  void require_usable() const;
};

}  // namespace plait
