#include "plait/nn/batches/sample_room.h"

#include <bit>

#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/kernels/cuda/padded_copy.h"
#include "plait/nn/operations/torch_device.h"

namespace plait {
namespace {

// Returns a tensor of zeros like the rows of another one, with room for `rows`; undefined if that
// is.
torch::Tensor enlarged(const torch::Tensor& like, std::uint64_t rows) {
  if (!like.defined()) return {};
  std::vector<std::int64_t> sizes = like.sizes().vec();
  sizes[0] = static_cast<std::int64_t>(rows);
  return torch::zeros(sizes, like.options());
}

std::vector<GraphRef> graphs_like(const SampledBatch& like, std::span<const SampleCounts> rooms,
                                  const GraphRef& placed) {
  const torch::Device device = placed->device();
  const OnGpuOf gpu(device);
  std::vector<std::unique_ptr<Aggregator>> edges =
      make_gpu_sample_rooms(rooms, current_stream(device));
  std::vector<GraphRef> graphs;
  for (std::size_t l = 0; l < rooms.size(); ++l) {
    const SampleScales& scales = like.graphs[l]->sample_scales();
    graphs.push_back(c10::make_intrusive<GraphHandle>(
        placed, std::move(edges[l]), rooms[l].own,
        SampleScales{enlarged(scales.gcn_normalization, rooms[l].inputs),
                     enlarged(scales.sums, rooms[l].own),
                     enlarged(scales.inverse_degree, rooms[l].own)}));
  }
  return graphs;
}

// Copies numbers that all stand at 0 behind the batch's.
class Copies {
 public:
  void add(const torch::Tensor& from, const torch::Tensor& room) {
    if (!room.defined()) return;
    all.push_back({.from = from.const_data_ptr(),
                   .to = room.mutable_data_ptr(),
                   .bytes = from.nbytes(),
                   .room = room.nbytes()});
  }
  void add_number(std::uint64_t number, const torch::Tensor& room) {
    all.push_back(
        {.to = room.mutable_data_ptr(),
         .room = room.nbytes(),
         .pad = {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)}});
  }
  std::vector<PaddedCopy> all;
};

}  // namespace

std::vector<SampleCounts> counts_of(const SampledBatch& batch) {
  std::vector<SampleCounts> counts;
  for (const GraphRef& graph : batch.graphs) counts.push_back(sample_counts(graph->sample_edges()));
  return counts;
}

SampleRoom::SampleRoom(const SampledBatch& like, std::span<const SampleCounts> rooms,
                       const GraphRef& placed, const Dropout& dropout)
    : dropout_(dropout),
      rooms_(rooms.begin(), rooms.end()),
      rows_(enlarged(like.input.dense({&dropout, like.step}), rooms.front().inputs)),
      numbers_(enlarged(like.input.numbers(), rooms.front().inputs)),
      count_(torch::zeros({}, like.targets.rows.options())),
      share_(torch::zeros({}, rows_.options().dtype(torch::kFloat64))),
      step_at_(torch::zeros({}, rows_.options().dtype(torch::kInt32))),
      targets_{torch::arange(static_cast<std::int64_t>(rooms.back().own), count_.options()),
               enlarged(like.targets.labels, rooms.back().own)},
      graphs_(graphs_like(like, rooms, placed)),
      input_(rows_, {numbers_, numbers_}, {&dropout}) {}

bool SampleRoom::fits(const SampledBatch& batch) const {
  const std::vector<SampleCounts> counts = counts_of(batch);
  for (std::size_t l = 0; l < counts.size(); ++l)
    if (!plait::fits(counts[l], rooms_[l])) return false;
  return true;
}

void SampleRoom::take(const SampledBatch& batch) {
  Copies copies;
  copies.add(batch.input.dense({&dropout_, batch.step}), rows_);
  copies.add(batch.input.numbers(), numbers_);
  copies.add(batch.targets.labels, targets_.labels);
  copies.add_number(static_cast<std::uint64_t>(batch.targets.rows.numel()), count_);
  copies.add_number(std::bit_cast<std::uint64_t>(1 / batch.examples), share_);
  copies.add_number(batch.step, step_at_);
  for (std::size_t l = 0; l < graphs_.size(); ++l) {
    const SampleScales &from = batch.graphs[l]->sample_scales(),
                       &room = graphs_[l]->sample_scales();
    copies.add(from.gcn_normalization, room.gcn_normalization);
    copies.add(from.sums, room.sums);
    copies.add(from.inverse_degree, room.inverse_degree);
    move_in(batch.graphs[l]->sample_edges(), graphs_[l]->sample_edges(), copies.all);
  }
  const OnGpuOf gpu(rows_.device());
  gpu_copy_padded(copies.all, current_stream(rows_.device()));
}

DropoutStep SampleRoom::dropout_step() const {
  const auto* const at = reinterpret_cast<const std::uint32_t*>(step_at_.const_data_ptr<int>());
  return {&dropout_, 0, 0, at};
}

}  // namespace plait
