// Embedding tables on the CPU, as Embeddings::create() makes them.
#pragma once

#include <span>

#include "plait/embedding/bag_edges.h"
#include "plait/embedding/embedding_part.h"
#include "plait/embedding/embeddings.h"

namespace plait {

// Sums by row: the rows of a piece, ascending, and `columns` floats for each, in memory that the
// caller has given.
struct SummedRows {
  std::vector<Slot> rows;
  std::span<float> values;
  std::vector<Slot> ids;  // by row the number of ids that name it, if they were counted
};

class CpuEmbeddings : public Embeddings {
 public:
  CpuEmbeddings(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules);

 protected:
  std::uint64_t run_forward(const GivenBags& bags, const TablePieces& pieces, const BagResults& out,
                            void* stream) override;
  std::vector<RowGradients> run_backward(const GivenBags& bags, std::uint64_t number,
                                         const BagGradients& gradients, const Room& room,
                                         void* stream) override;

 private:
  // The sums of the bags of table t of a reader.
  struct Sum {
    int reader;
    std::size_t t;
  };

  void begin(const EmbeddingStepOf& step, const GivenBags& bags);
  void publish(const GivenBags& given);
  EmbeddingPart part(int rank) const;
  void add_edges(std::size_t t, int reader, Slot first, GradientEdges& edges) const;
  void limit_rows(const TablePieces& pieces) const;
  void sum_for(const Sum& sum, const TablePieces& pieces, const BagResults& out);
  void sum_owned(const Sum& sum, const TablePieces& pieces);
  void collect(const BagResults& out) const;
  void collect_owned(std::size_t t, const BagResults& out) const;
  SummedRows gradients_of(std::size_t t, const BagGradients& g, const Room& room) const;
  bool multiply_for_readers(const BagGradients& gradients) const;
  void collect_weights(const GivenBags& bags, float* out) const;
  std::uint64_t offer(std::size_t t, const SummedRows& mine, std::uint64_t start);
  SummedRows join(std::size_t t, const Room& room) const;

  // By table of split `rows`, by owner: this rank's bags whose sums the owner sends.
  std::vector<std::vector<std::vector<Slot>>> sent_;
};

}  // namespace plait
