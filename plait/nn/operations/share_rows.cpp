#include "plait/nn/operations/share_rows.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "plait/base/parallel.h"
#include "plait/base/timer.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/store/gather_rows.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = 256;  // rows

torch::Tensor rows_like(const torch::Tensor& x, std::uint64_t rows) {
  return torch::empty({static_cast<std::int64_t>(rows), x.size(1)}, x.options());
}

// Returns a view of rows that stand in one or two tensors, one behind the other.
StoredRows stored(const torch::Tensor& first, const torch::Tensor& second = {}) {
  StoredRows rows;
  for (const torch::Tensor& t : {first, second}) {
    if (!t.defined()) break;
    rows.base[rows.ranks++] = static_cast<const std::byte*>(t.const_data_ptr());
    rows.rows += static_cast<std::uint64_t>(t.size(0));
    rows.starts[rows.ranks] = rows.rows;
  }
  rows.stride = static_cast<std::uint64_t>(first.size(1)) * sizeof(float);
  return rows;
}

torch::Tensor gathered(const StoredRows& from, const RawVector<std::uint64_t>& ids,
                       const torch::Tensor& like) {
  torch::Tensor out = rows_like(like, ids.size());
  gather_rows({.from = from,
               .ids = ids.data(),
               .count = ids.size(),
               .width = from.stride,
               .out = static_cast<std::byte*>(out.mutable_data_ptr()),
               .out_stride = from.stride});
  return out;
}

// Collective. Sends the first counts[0] rows to rank 0, the next ones to rank 1, and so on; returns
// the rows that come, in the order of ranks.
torch::Tensor exchanged(World& world, const torch::Tensor& rows,
                        const std::vector<std::uint64_t>& counts,
                        const std::vector<std::uint64_t>& coming) {
  const std::size_t row_bytes = static_cast<std::size_t>(rows.size(1)) * sizeof(float);
  torch::Tensor received =
      rows_like(rows, std::accumulate(coming.begin(), coming.end(), std::uint64_t{0}));
  const auto* from = static_cast<const std::byte*>(rows.const_data_ptr());
  auto* to = static_cast<std::byte*>(received.mutable_data_ptr());
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    send.emplace_back(from, counts[r] * row_bytes);
    receive.emplace_back(to, coming[r] * row_bytes);
    from += send[r].size(), to += receive[r].size();
  }
  world.all_to_all(send, receive);
  return received;
}

// Copies the gradient of each input to where its row came from.
void deal(const torch::Tensor& gradient, const SharedRows& rows, torch::Tensor& own,
          torch::Tensor& foreign) {
  const auto width = static_cast<std::size_t>(gradient.size(1));
  if (width == 0) return;
  const float* const from = gradient.const_data_ptr<float>();
  float* const here = own.mutable_data_ptr<float>();
  float* const there = foreign.mutable_data_ptr<float>();
  parallel_blocks(rows.places.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t place = rows.places[i];
      float* const to =
          place < rows.own ? here + place * width : there + (place - rows.own) * width;
      std::memcpy(to, from + i * width, width * sizeof(float));
    }
  });
}

// Returns the rows of a layer's inputs.
torch::Tensor rows_of_inputs(GraphHandle& graph, const torch::Tensor& x) {
  const Phase phase("sharing rows", "share rows");
  AddTime time(graph.sharing_seconds());
  const SharedRows& rows = *graph.shared_rows();
  const torch::Tensor sent = gathered(stored(x), rows.sent, x);
  const torch::Tensor received = exchanged(graph.world(), sent, rows.sent_to, rows.received_from);
  return gathered(stored(x, received), rows.places, x);
}

// Returns the gradient for this rank's own rows from the gradients for the inputs of all ranks.
torch::Tensor gradient_of_own(GraphHandle& graph, const torch::Tensor& gradient) {
  const Phase phase("sharing gradients of rows", "share gradients");
  AddTime time(graph.sharing_seconds());
  const SharedRows& rows = *graph.shared_rows();
  torch::Tensor own = rows_like(gradient, rows.own).zero_();
  torch::Tensor foreign = rows_like(gradient, rows.received());
  deal(gradient, rows, own, foreign);
  const torch::Tensor back = exchanged(graph.world(), foreign, rows.received_from, rows.sent_to);
  const auto width = static_cast<std::uint64_t>(gradient.size(1));
  add_rows({.to = stored(own),
            .ids = rows.sent.data(),
            .count = rows.sent.size(),
            .width = width,
            .rows = back.const_data_ptr<float>(),
            .rows_stride = width});
  return own;
}

}  // namespace

torch::Tensor share_rows(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph) {
  TORCH_CHECK(graph->shared_rows() != nullptr, "plait: no rows of this graph are shared");
  TORCH_CHECK(x.is_cpu() && x.dim() == 2 && x.scalar_type() == torch::kFloat32 &&
                  x.size(0) == static_cast<std::int64_t>(graph->shared_rows()->own),
              "plait: x must be ", graph->shared_rows()->own,
              " rows of float32 on the CPU, but is ", x.sizes(), " of ", x.scalar_type());
  return linear_map(
      x, [graph](const torch::Tensor& own) { return rows_of_inputs(*graph, own); },
      [graph](const torch::Tensor& gradient) { return gradient_of_own(*graph, gradient); });
}

}  // namespace plait
