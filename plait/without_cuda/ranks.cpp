// Replaces the folders cuda/ of the rooms of ranks in a build without CUDA.
#include "plait/aggregate/cuda/aggregator.h"
#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/base/gpu.h"
#include "plait/embedding/cuda/gpu_embeddings.h"
#include "plait/embedding/cuda/update_rows.h"
#include "plait/exchange/cuda/all_reduce.h"
#include "plait/symmetric/peer_access.h"
#include "plait/table/sharded/cuda/gpu_array.h"
#include "plait/table/sharded/cuda/gpu_table.h"

namespace plait {

std::string unreached_peer(World&) { return {}; }
void require_peer_access(World&) {}

std::unique_ptr<GpuAllReduce> make_gpu_all_reduce(World&, void*) {
  use_gpu(0);  // throws
  return nullptr;
}

std::unique_ptr<Exchange> make_gpu_exchange(World&, const AnyCsr&, bool, const Partition&,
                                            const ExchangeOptions&) {
  use_gpu(0);  // throws
  return nullptr;
}

std::unique_ptr<GpuAggregator> make_gpu_aggregator(World&, const AnyCsr&, bool, const Partition&,
                                                   const ExchangeOptions&) {
  use_gpu(0);  // throws
  return nullptr;
}

std::unique_ptr<Aggregator> on_host_memory(std::unique_ptr<GpuAggregator> aggregator) {
  return aggregator;
}

std::unique_ptr<Embeddings> make_gpu_embeddings(World&, const EmbeddingLayout&,
                                                const EmbeddingRules&, std::uint64_t) {
  use_gpu(0);  // throws
  return nullptr;
}

void gpu_update_rows(const RowUpdate&, void*) { use_gpu(0); }
void gpu_fill_first_weights(const FirstWeights&, void*) { use_gpu(0); }

std::unique_ptr<Table> make_gpu_table(World&, const TableSettings&, const TableSource&) {
  use_gpu(0);  // throws
  return nullptr;
}
std::unique_ptr<GpuArray> GpuArray::replicated(std::span<const std::byte>) {
  use_gpu(0);  // throws
  return nullptr;
}
std::unique_ptr<GpuArray> GpuArray::sharded(World&, std::span<const std::byte>) {
  use_gpu(0);  // throws
  return nullptr;
}

std::unique_ptr<Aggregator> make_gpu_sample_aggregator(GpuSampledEdges, const SampleStreams&,
                                                       WantsGradients) {
  use_gpu(0);  // throws
  return nullptr;
}
SampleCounts sample_counts(const Aggregator&) { return {}; }
std::vector<std::unique_ptr<Aggregator>> make_gpu_sample_rooms(std::span<const SampleCounts>,
                                                               void*) {
  use_gpu(0);  // throws
  return {};
}
void move_in(const Aggregator&, const Aggregator&, std::vector<PaddedCopy>&) {}

}  // namespace plait
