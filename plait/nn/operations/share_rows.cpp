#include "plait/nn/operations/share_rows.h"

#include <cstring>
#include <optional>

#include "plait/base/parallel.h"
#include "plait/base/timer.h"
#include "plait/nn/layers/dropout.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/gather_rows.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = 256;  // rows

// Adds the time to the handle's, on the CPU; a GPU's work goes on behind.
class SharingTime {
 public:
  explicit SharingTime(GraphHandle& graph) {
    if (graph.device().is_cpu()) time_.emplace(graph.sharing_seconds());
  }

 private:
  std::optional<AddTime> time_;
};

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

// Numbers of rows, on the CPU or the GPU where the rows are.
struct RowNumbers {
  const std::uint64_t* data;
  std::uint64_t count;

  RowNumbers(const RawVector<std::uint64_t>& here, const torch::Tensor& there)
      : data(there.defined() ? ids_of(there) : here.data()),
        count(there.defined() ? static_cast<std::uint64_t>(there.numel()) : here.size()) {}
};

torch::Tensor gathered(const StoredRows& from, const RowNumbers& numbers,
                       const torch::Tensor& like) {
  torch::Tensor out = rows_like(like, numbers.count);
  const GatherRows args{.from = from,
                        .ids = numbers.data,
                        .count = numbers.count,
                        .width = from.stride,
                        .out = static_cast<std::byte*>(out.mutable_data_ptr()),
                        .out_stride = from.stride};
  if (numbers.count == 0 || from.stride == 0) return out;
  if (like.is_cpu())
    gather_rows(args);
  else
    gpu_gather_rows(args, current_stream(like.device()));
  return out;
}

// Copies the gradient of each input to where its row came from: `own`, or `foreign` behind it.
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
  const auto& [rows, sent, places] = *graph.shared_rows();
  const OnGpuOf gpu(x.device());
  const SharingTime time(graph);
  const torch::Tensor out = gathered(stored(x), {rows.sent, sent}, x);
  const torch::Tensor received = graph.exchange_rows(out, rows.sent_to, rows.received_from);
  return gathered(stored(x, received), {rows.places, places}, x);
}

// Returns the gradient for this rank's own rows from the gradients for the inputs of all ranks.
torch::Tensor gradient_of_own(GraphHandle& graph, const torch::Tensor& gradient) {
  const Phase phase("sharing gradients of rows", "share gradients");
  const auto& [rows, sent, places] = *graph.shared_rows();
  const OnGpuOf gpu(gradient.device());
  const SharingTime time(graph);
  const auto own_count = static_cast<std::int64_t>(rows.own);
  const torch::Tensor all = rows_like(gradient, rows.own + rows.received()).zero_();
  torch::Tensor own = all.narrow(0, 0, own_count);
  torch::Tensor foreign = all.narrow(0, own_count, all.size(0) - own_count);
  if (gradient.is_cpu())
    deal(gradient, rows, own, foreign);
  else
    all.index_copy_(0, places, gradient);  // each row is at one place
  const torch::Tensor back = graph.exchange_rows(foreign, rows.received_from, rows.sent_to);
  const RowNumbers to(rows.sent, sent);
  const auto width = static_cast<std::uint64_t>(gradient.size(1));
  const AddRows sums{.to = stored(own),
                     .ids = to.data,
                     .count = to.count,
                     .width = width,
                     .rows = back.const_data_ptr<float>(),
                     .rows_stride = width};
  if (to.count == 0 || width == 0) return own;
  if (own.is_cpu())
    add_rows(sums);
  else
    graph.add_in_order(sums);
  return own;
}

}  // namespace

torch::Tensor share_rows(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph) {
  TORCH_CHECK(graph->shared_rows() != nullptr, "plait: no rows of this graph are shared");
  const auto own = static_cast<std::int64_t>(graph->shared_rows()->rows.own);
  TORCH_CHECK(x.device() == graph->device() && x.dim() == 2 && x.scalar_type() == torch::kFloat32 &&
                  x.size(0) == own,
              "plait: x must be ", own, " rows of float32 on ", graph->device(), ", but is ",
              x.sizes(), " of ", x.scalar_type(), " on ", x.device());
  return linear_map(
      x, [graph](const torch::Tensor& rows) { return rows_of_inputs(*graph, rows); },
      [graph](const torch::Tensor& gradient) { return gradient_of_own(*graph, gradient); });
}

}  // namespace plait
