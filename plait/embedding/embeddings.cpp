#include "plait/embedding/embeddings.h"

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/embedding/cpu/cpu_embeddings.h"
#include "plait/embedding/cuda/gpu_embeddings.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/together.h"

namespace plait {

std::unique_ptr<Embeddings> Embeddings::create(World& world, const EmbeddingLayout& layout,
                                               const EmbeddingRules& rules, Device device) {
  if (device == Device::gpu) return make_gpu_embeddings(world, layout, rules);
  return std::make_unique<CpuEmbeddings>(world, layout, rules);
}

Embeddings::Embeddings(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules)
    : world_(world), layout_(layout), rules_(rules) {
  require_on_all<UsageError>(layout_.tables() > 0 && layout_.tables() == rules_.padding.size(),
                             "{} embedding tables have {} ids of padding", layout_.tables(),
                             rules_.padding.size());
  on_all_or_none(world_, [&] {
    fault_point();
    tables_.padding = rules_.padding;
    for (std::size_t t = 0; t < layout_.tables(); ++t)
      tables_.rows.push_back(layout_.table(t).rows);
  });
}

std::uint64_t Embeddings::forward(const GivenBags& bags, const TablePieces& pieces,
                                  const BagResults& out, void* stream) {
  require_usable();
  return together(world_, kInEmbeddingStep, [&] { return run_forward(bags, pieces, out, stream); });
}

std::vector<RowGradients> Embeddings::backward(const GivenBags& bags, std::uint64_t number,
                                               const BagGradients& gradients, const Room& room,
                                               void* stream) {
  require_usable();
  return together(world_, kInEmbeddingStep,
                  [&] { return run_backward(bags, number, gradients, room, stream); });
}

void Embeddings::require_usable() const {
  require(has_memory(), "the memory of the embedding tables is lost; end the program");
  step_.require_ended();
}

}  // namespace plait
