// Embedding tables over ranks on the CPU: sums over bags of ids, and the gradients of rows.
//
// Ranks of one host publish their bags in the symmetric heap. The owner of a piece sums the rows of
// each bag and writes the sum where the reader has room for it, so that one row per bag and owner
// moves instead of one row per id. If a table is divided by rows, a rank sends nothing for a bag
// that names none of its rows. Gradients take the same way back: an owner reads the gradient of
// each bag and adds it to the rows that the bag names. Ranks wait for each other only at barriers.
//
// Determinism: a bag is summed in the order of its ids, and the sums of owners are added in the
// order of ranks. A row's gradient is summed in the order of (rank, bag, id). No bit depends on the
// number of threads, and gradients of replicated tables have the same bits on all ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plait/base/raw_vector.h"
#include "plait/embedding/bag_edges.h"
#include "plait/embedding/bags.h"
#include "plait/embedding/embedding_layout.h"
#include "plait/embedding/embedding_part.h"
#include "plait/embedding/embedding_rules.h"
#include "plait/embedding/embedding_step.h"
#include "plait/embedding/piece_rows.h"
#include "plait/symmetric/heap.h"

namespace plait {

// The gradient of a piece: its rows that have a gradient, ascending, and `columns` floats for each.
struct RowGradients {
  std::vector<Slot> rows;
  RawVector<float> values;
  std::vector<Slot> ids;  // by row the number of ids that name it, if they were counted
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

class Embeddings {
 public:
  // Collective. Layout and rules are the same on all ranks. Throws UsageError for ranks on several
  // hosts. The world outlives this object.
  Embeddings(World& world, EmbeddingLayout layout, const EmbeddingRules& rules);
  ~Embeddings();

  const EmbeddingLayout& layout() const { return layout_; }

  // Collective; ranks give any numbers of bags, also none. A step that fails on one rank alone, for
  // a reason that is not named below, loses this rank for the others (together()). Writes
  // out.sums[b][t], `width` floats each: the sum of bag b of table t, or what the rules make of it.
  // `pieces`: this rank's pieces. Rows are changed if their norms are limited. Returns the number
  // of the batch, for backward(). Throws UsageError on all ranks if the bags of one rank are wrong,
  // DoesNotFitError if there is no memory.
  std::uint64_t forward(const GivenBags& bags, const TablePieces& pieces, const BagResults& out);
  // Collective. Returns by table the gradient of this rank's piece. `number`: the number that
  // forward() returned for these bags, which need not be the last bags. Throws UsageError on all
  // ranks if pieces that are needed are missing on any rank.
  std::vector<RowGradients> backward(const GivenBags& bags, std::uint64_t number,
                                     const BagGradients& gradients);

 private:
  // The sums of the bags of table t of a reader.
  struct Sum {
    int reader;
    std::size_t t;
  };

  void require_usable() const;
  void begin(const EmbeddingStepOf& step, const GivenBags& bags);
  // forward() and backward(), within together().
  std::uint64_t sum_bags(const GivenBags& bags, const TablePieces& pieces, const BagResults& out);
  std::vector<RowGradients> sum_gradients(const GivenBags& bags, std::uint64_t number,
                                          const BagGradients& gradients);
  void publish(const GivenBags& given);
  EmbeddingPart part(int rank) const;
  void add_edges(std::size_t t, int reader, Slot first, GradientEdges& edges) const;
  void limit_rows(const TablePieces& pieces) const;
  void sum_for(const Sum& sum, const TablePieces& pieces, const BagResults& out);
  void sum_owned(const Sum& sum, const TablePieces& pieces);
  void collect(const BagResults& out) const;
  void collect_owned(std::size_t t, const BagResults& out) const;
  RowGradients gradients_of(std::size_t t, const BagGradients& g) const;
  bool multiply_for_readers(const BagGradients& gradients) const;
  void collect_weights(const GivenBags& bags, float* out) const;
  std::uint64_t offer(std::size_t t, const RowGradients& mine, std::uint64_t start);
  RowGradients join(std::size_t t) const;

  World& world_;
  const EmbeddingLayout layout_;
  const EmbeddingRules rules_;
  BagTables tables_;
  std::unique_ptr<SymmetricHeap> heap_;
  StepUnderWay step_;
  std::uint64_t number_ = 0;     // of the last batch
  std::uint64_t published_ = 0;  // the number of the batch that the heap has; 0: none
  // By table of split `rows`, by owner: this rank's bags whose sums the owner sends.
  std::vector<std::vector<std::vector<Slot>>> sent_;
};

}  // namespace plait
