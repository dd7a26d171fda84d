#include "plait/nn/operations/graph_handle.h"

#include <numeric>
#include <span>
#include <vector>

#include "plait/aggregate/run_memory.h"
#include "plait/base/error.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/plan/route.h"
#include "plait/world/difference.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

void check_device(const torch::Tensor& t, const char* name, const torch::Device& device) {
  TORCH_CHECK(t.is_cpu() ? device.is_cpu() : t.device() == device, "plait: ", name, " must be on ",
              device, ", where the graph is, but is on ", t.device());
}

void check_scale(const torch::Tensor& scale, const char* name, std::int64_t rows,
                 const GraphHandle& graph) {
  if (!scale.defined()) return;
  TORCH_CHECK(scale.scalar_type() == torch::kFloat32 && scale.dim() == 1 && scale.size(0) == rows,
              "plait: ", name, " must be ", rows, " float32 numbers, one per row, but is ",
              scale.sizes(), " of ", scale.scalar_type());
  check_device(scale, name, graph.device());
}

using Sum = void (Aggregator::*)(const Scaling&, const float*, float*, std::uint64_t);

// A direction of the sum, and the rows of its result.
struct SumAlong {
  Sum sum;
  std::int64_t rows;
};

torch::Tensor run(GraphHandle& graph, const SumAlong& along, const torch::Tensor& x,
                  const torch::Tensor& pre, const torch::Tensor& post, bool weighted) {
  const auto data_or_null = [](const torch::Tensor& t) {
    return t.defined() ? t.const_data_ptr<float>() : nullptr;
  };
  torch::Tensor y = torch::empty({along.rows, x.size(1)}, x.options());
  const auto width = static_cast<std::uint64_t>(x.size(1));
  const auto aggregator = graph.aggregator(width);
  ((*aggregator).*along.sum)({data_or_null(pre), data_or_null(post), weighted},
                             x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), width);
  return y;
}

}  // namespace

GraphHandle::GraphHandle(World& world, const AnyCsr& graph, bool symmetric,
                         const Partition& partition, const ExchangeOptions& options)
    : world_(&world),
      device_(torch_device(options.route.gpu)),
      vertices_(vertex_count(graph)),
      exact_(options.route.exact) {
  const Phase phase("placing the graph", "place graph");
  resolved(options.route);  // what is not possible is refused before ranks meet
  together(world, "while placing a graph", [&] {
    require_run_fits(
        world, graph, symmetric, partition,
        {.route = options.route, .shards = options.shards, .widths = {options.max_width}},
        "the graph");
    ExchangeOptions placed = options;
    if (options.route.gpu) {
      stream_ = work_stream(device_);
      placed.stream = stream_->native_handle();
    }
    aggregator_ = process_owned(make_aggregator(world, graph, symmetric, partition, placed));
  });
  gpu_aggregator_ = dynamic_cast<GpuAggregator*>(aggregator_.get());
}

GraphHandle::GraphHandle(World& world, std::unique_ptr<Aggregator> aggregator,
                         std::uint64_t vertices)
    : world_(&world),
      device_(torch::kCPU),
      aggregator_(process_owned(std::move(aggregator))),
      vertices_(vertices) {}

GraphHandle::GraphHandle(c10::intrusive_ptr<GraphHandle> placed, std::unique_ptr<Aggregator> sample,
                         std::uint64_t vertices, SampleScales scales,
                         std::optional<RowSharing> rows)
    : GraphHandle(placed->world(), std::move(sample), vertices) {
  shared_rows_ = std::move(rows);
  device_ = placed->device();
  if (device_.is_cuda()) stream_ = current_torch_stream(device_);
  normalization_ = scales.gcn_normalization;
  inverse_degree_ = scales.inverse_degree;
  scales_ = std::move(scales);
  placed_ = std::move(placed);
}

GraphHandle::GraphHandle(World& world, std::unique_ptr<Aggregator> edges, const c10::Stream& stream,
                         torch::Tensor counts)
    : GraphHandle(world, std::move(edges), static_cast<std::uint64_t>(counts.numel())) {
  device_ = stream.device();
  stream_ = stream;
  counts_ = std::move(counts);
}

GraphHandle::~GraphHandle() {
  try {
    const OnGpuOf gpu(device_);
    ordered_sums_.reset();
    aggregator_.reset();
  } catch (const std::exception&) {
    // The process ends, and CUDA has gone before.
  }
}

GraphHandle::Use GraphHandle::aggregator(std::uint64_t width) { return {*this, width}; }

GraphHandle::Use::Use(GraphHandle& graph, std::uint64_t width)
    : gpu_(graph.device_), aggregator_(*graph.aggregator_) {
  if (graph.stream_) order_.emplace(*graph.stream_);  // the aggregator sees whether it is captured
  if (graph.gpu_aggregator_ != nullptr && !graph.agreed_widths_.contains(width)) {
    agree(*graph.world_, fmt::format("an operation on a graph of {} nodes with rows of width {}",
                                     graph.vertices_, width));
    graph.agreed_widths_.insert(width);
  }
  aggregator_.reserve(width);
}

torch::Tensor GraphHandle::edge_counts() const {
  if (counts_.defined()) {
    { const StreamOrder order(*stream_); }  // behind which the counts were written
    counts_.record_stream(current_torch_stream(device_));
    return counts_.clone();
  }
  const std::vector<float> counts = aggregator_->edge_counts();
  return torch::tensor(counts, torch::kFloat32).to(device_);
}

torch::Tensor GraphHandle::degree() {
  if (counts_.defined()) {  // then the edges are on the GPU, and are summed there
    const torch::Tensor ones = torch::ones({inputs(), 1}, counts_.options());
    return run(*this, {&Aggregator::forward, own()}, ones, {}, {}, true).view(-1);
  }
  const auto degree = aggregator_->degree();
  return torch::from_blob(const_cast<float*>(degree.data()), {own()}, torch::kFloat32)
      .clone()
      .to(device_);
}

void GraphHandle::all_reduce_sum(torch::Tensor& values) {
  if (placed_) return placed_->all_reduce_sum(values);
  auto* const data = values.mutable_data_ptr<float>();
  const auto count = static_cast<std::size_t>(values.numel());
  if (gpu_aggregator_ == nullptr) return world_->all_reduce_sum(std::span(data, count));
  gpu_aggregator_->all_reduce_sum(data, count);
  if (!host_sums_) return;
  sum_over_hosts(values);
  gpu_aggregator_->all_reduce_sum(data, count);
}

// The array is summed over this host. Leaves the sum over all on the host's first rank, and zeros
// on the others.
void GraphHandle::sum_over_hosts(torch::Tensor& values) {
  if (!host_sums_->takes_part()) {
    values.zero_();
    return host_sums_->sum({});
  }
  about_to_wait();
  const torch::Tensor here = values.to(torch::kCPU);
  check();  // a lost rank's number goes to no other host
  host_sums_->sum({here.mutable_data_ptr<float>(), static_cast<std::size_t>(here.numel())});
  values.copy_(here);
}

void GraphHandle::sum_over(World& all) {
  if (&all != world_) host_sums_.emplace(all);
}

void GraphHandle::wait_before_sums() {
  if (!host_sums_ || !host_sums_->takes_part()) return;
  about_to_wait();
  current_torch_stream(device_).synchronize();
}

torch::Tensor GraphHandle::exchange_rows(const torch::Tensor& rows,
                                         std::span<const std::uint64_t> counts,
                                         std::span<const std::uint64_t> coming) {
  if (placed_) return placed_->exchange_rows(rows, counts, coming);
  torch::Tensor received = torch::empty(
      {static_cast<std::int64_t>(std::accumulate(coming.begin(), coming.end(), std::uint64_t{0})),
       rows.size(1)},
      rows.options());
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(rows.size(1)) * rows.element_size();
  const SentRows send{static_cast<const std::byte*>(rows.const_data_ptr()), counts, row_bytes};
  const ReceivedRows receive{static_cast<std::byte*>(received.mutable_data_ptr()), coming,
                             row_bytes};
  if (gpu_aggregator_ != nullptr) {
    const OnGpuOf gpu(device_);
    const StreamOrder order(*stream_);
    gpu_aggregator_->exchange_rows(send, receive);
  } else {
    world_->all_to_all(send.parts(), receive.parts());
  }
  return received;
}

void GraphHandle::add_in_order(const AddRows& args) {
  if (placed_) return placed_->add_in_order(args);
  const OnGpuOf gpu(device_);
  if (!ordered_sums_) ordered_sums_.emplace();
  ordered_sums_->add(args, current_stream(device_));
}

void GraphHandle::sum_on_hosts(torch::Tensor& values) {
  if (world_->size() == 1) return;
  about_to_wait();
  torch::Tensor here = values.to(torch::kCPU);
  world_->all_reduce_sum(
      std::span(here.mutable_data_ptr<double>(), static_cast<std::size_t>(here.numel())));
  values.copy_(here);
}

void GraphHandle::max_on_hosts(torch::Tensor& values) {
  if (world_->size() == 1) return;
  about_to_wait();
  // This takes one exchange, of as many numbers on each rank; World's all_gather() takes two.
  const torch::Tensor here = values.to(torch::kCPU).contiguous();
  torch::Tensor all = torch::empty({world_->size(), here.numel()});
  const std::span mine(here.const_data_ptr<float>(), static_cast<std::size_t>(here.numel()));
  const std::span of_all(all.mutable_data_ptr<float>(), static_cast<std::size_t>(all.numel()));
  const auto ranks = static_cast<std::size_t>(world_->size());
  const std::vector<std::span<const std::byte>> send(ranks, std::as_bytes(mine));
  std::vector<std::span<std::byte>> receive;
  for (std::size_t r = 0; r < ranks; ++r)
    receive.push_back(std::as_writable_bytes(of_all.subspan(r * mine.size(), mine.size())));
  world_->all_to_all(send, receive);
  values.copy_(all.amax(0).view_as(values));
}

const torch::Tensor& GraphHandle::gcn_normalization() {
  if (!normalization_.defined()) {
    const torch::Tensor sums = degree();
    normalization_ = torch::where(sums > 0, sums.rsqrt(), 0.0);
  }
  return normalization_;
}

const torch::Tensor& GraphHandle::inverse_degree() {
  if (!inverse_degree_.defined()) {
    const torch::Tensor counts = edge_counts();
    inverse_degree_ = torch::where(counts > 0, counts.reciprocal(), 0.0);
  }
  return inverse_degree_;
}

torch::Tensor aggregate(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                        bool weighted, const std::optional<torch::Tensor>& pre,
                        const std::optional<torch::Tensor>& post) {
  TORCH_CHECK(x.dim() == 2 && x.size(0) == graph->inputs(), "plait: x must be ", graph->inputs(),
              " rows, one for each vertex, but its shape is ", x.sizes());
  TORCH_CHECK(x.scalar_type() == torch::kFloat32, "plait: x must be float32, but is ",
              x.scalar_type());
  check_device(x, "x", graph->device());
  const auto scale = [&](const std::optional<torch::Tensor>& given, const char* name,
                         std::int64_t rows) {
    const torch::Tensor t = given.value_or(torch::Tensor());
    check_scale(t, name, rows, *graph);
    return t.defined() ? t.contiguous() : t;
  };
  const auto along = [graph, weighted, before = scale(pre, "pre", graph->inputs()),
                      after = scale(post, "post", graph->own())](const SumAlong& sum) {
    return [=](const torch::Tensor& t) { return run(*graph, sum, t, before, after, weighted); };
  };
  return linear_map(x, along({&Aggregator::forward, graph->own()}),
                    along({&Aggregator::backward, graph->inputs()}));
}

torch::Tensor sum_over_ranks(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph) {
  const auto sum = [graph](const torch::Tensor& mine) {
    torch::Tensor all = mine.clone();
    graph->all_reduce_sum(all);
    return all;
  };
  return linear_map(x, sum, sum);
}

}  // namespace plait
