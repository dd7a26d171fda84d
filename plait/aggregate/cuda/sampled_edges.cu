// The edges of a batch live for one step. So all memory is the pool's (FromPool), and planning
// happens on a stream beside the work of the step before: it waits for two small copies from the
// GPU (RowGroups), and nothing else does.
//
// Gradients run over the edges turned round. One stable sort by column does that: edges of a column
// keep the order of their rows, as on the CPU, so that sums have the same bits each time. Sums and
// the other operations are the kernels of whole graphs.
//
// A room is the same with memory of its own, for the largest sample: the edges of a sample are
// copied into it with their plans, and whatever is left over is filled so that no kernel sees it.
#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <numeric>
#include <optional>

#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/error.h"
#include "plait/base/lower_bound.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/attention.cuh"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/kernels/cuda/extremum.cuh"
#include "plait/kernels/cuda/pair_attention.cuh"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/kernels/row_cut.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// Returns the copy of an array into a larger one, whose rest is not read.
template <class T>
PaddedCopy all_of(const T* from, const T* room, std::uint64_t count) {
  return {.from = from,
          .to = const_cast<T*>(room),
          .bytes = count * sizeof(T),
          .room = count * sizeof(T)};
}

// Edges by the rows of one of their ends. The columns are rows of the other. The arrays belong to
// others.
struct Rows {
  std::uint64_t rows = 0;
  EdgeOffset edges = 0;
  const EdgeOffset* offsets = nullptr;
  const Slot* columns = nullptr;
  const float* weights = nullptr;  // or null
  std::optional<RowGroups> groups = {};

  std::span<const EdgeOffset> begin() const { return {offsets, rows}; }
  std::span<const EdgeOffset> end() const { return {offsets + 1, rows}; }

  // Appends the copies that move these rows into the rows of a room.
  void move_in(const Rows& room, std::vector<PaddedCopy>& copies) const {
    const auto low = static_cast<std::uint32_t>(edges),
               high = static_cast<std::uint32_t>(edges >> 32);
    copies.push_back({.from = offsets,
                      .to = const_cast<EdgeOffset*>(room.offsets),
                      .bytes = (rows + 1) * sizeof(EdgeOffset),
                      .room = (room.rows + 1) * sizeof(EdgeOffset),
                      .pad = {low, high, low, high}});
    copies.push_back(all_of(columns, room.columns, edges));
    if (room.weights != nullptr) copies.push_back(all_of(weights, room.weights, edges));
    room.groups->take(*groups, rows, room.rows, copies);
  }

  // Waits for the stream of the pool.
  void plan(FromPool pool) {
    groups.emplace(offsets, offsets + 1, rows,
                   RowGroupOptions{.most = group_size(edges, rows), .pool = pool}, pool.stream);
  }
};

// The data that an edge takes along when edges are turned round.
struct EdgeEnd {
  Slot row;
  float weight;
};

// One thread per edge.
__global__ void write_ends(const EdgeOffset* offsets, std::uint64_t rows, const float* weights,
                           std::uint64_t edges, EdgeEnd* ends) {
  const std::uint64_t e = item_of_thread();
  if (e >= edges) return;
  // The last row that begins at e or before has it, because rows behind an empty one begin there.
  const std::uint64_t row = lower_bound(offsets, 0, rows + 1, e + 1) - 1;
  ends[e] = {static_cast<Slot>(row), weights != nullptr ? weights[e] : 1.0f};
}

// The edges in the order of their columns.
struct ByColumn {
  const Slot* columns;
  const EdgeEnd* ends;
  std::uint64_t edges, count;  // columns are below `count`
};

// Writes rows of edges that are turned round: one thread per edge and one per offset, at least.
__global__ void write_turned_round(ByColumn sorted, EdgeOffset* offsets, Slot* rows,
                                   float* weights) {
  const std::uint64_t i = item_of_thread();
  if (i <= sorted.count) offsets[i] = lower_bound(sorted.columns, 0, sorted.edges, i);
  if (i >= sorted.edges) return;
  rows[i] = sorted.ends[i].row;
  if (weights != nullptr) weights[i] = sorted.ends[i].weight;
}

// Edges by their columns, with their arrays.
struct TurnedRound {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<Slot> rows;
  DeviceArray<float> weights;
  Rows edges;

  // Makes room; `room.against` is set.
  explicit TurnedRound(const SampleCounts& room)
      : offsets(room.inputs + 1),
        rows(room.edges),
        weights(room.weighted ? room.edges : 0),
        edges{room.inputs, room.edges, offsets.data(), rows.data(), weights.data()} {
    edges.groups.emplace(*room.against);
  }

  // The columns of `of` are below `count`; the edges of a column keep their order.
  TurnedRound(const Rows& of, std::uint64_t count, FromPool pool)
      : offsets(count + 1, pool),
        rows(of.edges, pool),
        weights(of.weights != nullptr ? of.edges : 0, pool),
        edges{count, of.edges, offsets.data(), rows.data(),
              of.weights != nullptr ? weights.data() : nullptr} {
    const FromPool scratch = pool.scratch();
    DeviceArray<EdgeEnd> ends(of.edges, scratch), sorted_ends(of.edges, scratch);
    DeviceArray<Slot> sorted(of.edges, scratch);
    if (of.edges > 0) {
      write_ends<<<blocks_of_items(of.edges), kThreadsOfItems, 0, pool.stream>>>(
          of.offsets, of.rows, of.weights, of.edges, ends.data());
      check_cuda(cudaGetLastError(), "turning edges round");
      const int bits = std::max(1, static_cast<int>(std::bit_width(count - 1)));
      with_scratch("turning edges round", scratch, [&](void* memory, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortPairs(memory, bytes, of.columns, sorted.data(),
                                               ends.data(), sorted_ends.data(), of.edges, 0, bits,
                                               pool.stream);
      });
    }
    write_turned_round<<<blocks_of_items(std::max(of.edges, count + 1)), kThreadsOfItems, 0,
                         pool.stream>>>({sorted.data(), sorted_ends.data(), of.edges, count},
                                        offsets.data(), rows.data(),
                                        weights.size() > 0 ? weights.data() : nullptr);
    check_cuda(cudaGetLastError(), "turning edges round");
    edges.plan(pool);
  }
};

// Memory of operations that come one after the other, which only grows.
struct KeptScratch {
  DeviceArray<float> copied, sums;
};

// The arrays of a room.
struct RoomArrays {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<Slot> sources;
  DeviceArray<float> weights;
  DeviceArray<std::uint64_t> vertices;

  explicit RoomArrays(const SampleCounts& room)
      : offsets(room.own + 1),
        sources(room.edges),
        weights(room.weighted ? room.edges : 0),
        vertices(room.has_vertices ? room.inputs : 0) {}

  static GpuSampledEdges edges(const SampleCounts& room) {
    const auto arrays = std::make_shared<const RoomArrays>(room);
    return {.own = room.own,
            .inputs = room.inputs,
            .edges = room.edges,
            .offsets = arrays->offsets.data(),
            .sources = arrays->sources.data(),
            .weights = arrays->weights.data(),
            .vertices = arrays->vertices.data(),
            .arrays = arrays};
  }
};

class GpuSampleAggregator : public Aggregator {
 public:
  // Makes a room.
  GpuSampleAggregator(const SampleCounts& room, cudaStream_t stream,
                      std::shared_ptr<KeptScratch> scratch)
      : stream_(stream),
        sample_(RoomArrays::edges(room)),
        along_{sample_.own, sample_.edges, sample_.offsets, sample_.sources, sample_.weights},
        scratch_(std::move(scratch)) {
    along_.groups.emplace(room.along);
    if (room.against) against_.emplace(room);
  }
  GpuSampleAggregator(GpuSampledEdges edges, const SampleStreams& streams, WantsGradients gradients)
      : stream_(static_cast<cudaStream_t>(streams.work)),
        sample_(std::move(edges)),
        along_{sample_.own, sample_.edges, sample_.offsets, sample_.sources, sample_.weights},
        wanted_(std::move(gradients)) {
    auto* const prepare = static_cast<cudaStream_t>(streams.prepare);
    along_.plan({prepare, stream_});
    if (wanted_->load()) against_.emplace(along_, sample_.inputs, FromPool{prepare, stream_});
  }

  void reserve(std::uint64_t) override {}
  void forward(const Scaling& s, const float* x, float* y, std::uint64_t width) override {
    sum(Direction::along, {x, s.pre, width}, s.post, s.weighted, y);
  }
  void backward(const Scaling& s, const float* dy, float* dx, std::uint64_t width) override {
    sum(Direction::against, {dy, s.post, width}, s.pre, s.weighted, dx);
  }
  void over_edges(const float* given, const EdgeOperation& any) override {
    const Phase phase("aggregate");
    const auto run = [&](auto operation) {
      constexpr Direction kDirection = decltype(operation)::kDirection;
      const Rows& edges = of(kDirection);
      operation.edges = {edges.begin(),
                         edges.end(),
                         edges.columns,
                         {.base = given,
                          .stride = operation.row_width(),
                          .own = static_cast<Slot>(read_rows(kDirection))}};
      set_vertices(operation, {sample_.vertices, sample_.vertices != nullptr ? sample_.inputs : 0});
      const std::span<const RowGroups> pass(&*edges.groups, 1);
      const Scratch scratch = sums_scratch(scratch_floats(operation, pass));
      apply(operation, EdgePass{pass, 0}, scratch.data, stream_);
    };
    std::visit(run, any);
  }

  SampleCounts counts() const {
    SampleCounts counts{.own = own(),
                        .inputs = inputs(),
                        .edges = edges(),
                        .weighted = sample_.weights != nullptr,
                        .has_vertices = sample_.vertices != nullptr,
                        .along = along_.groups->counts()};
    if (against_) counts.against = against_->edges.groups->counts();
    return counts;
  }
  void move_in(const GpuSampleAggregator& room, std::vector<PaddedCopy>& copies) const {
    along_.move_in(room.along_, copies);
    if (room.sample_.vertices != nullptr)
      copies.push_back(all_of(sample_.vertices, room.sample_.vertices, inputs()));
    if (room.against_) against_->edges.move_in(room.against_->edges, copies);
  }

  ExchangeCost cost() const override { return {}; }
  std::uint64_t own() const override { return sample_.own; }
  std::uint64_t inputs() const override { return sample_.inputs; }
  EdgeOffset edges() const override { return sample_.edges; }
  std::span<const float> degree() const override {
    if (degree_.size() == own()) return degree_;
    const auto weights = read(sample_.weights, sample_.weights != nullptr ? edges() : 0);
    const auto offsets = read(sample_.offsets, own() + 1);
    for (std::uint64_t i = 0; i < own(); ++i)
      degree_.push_back(weights.empty() ? static_cast<float>(offsets[i + 1] - offsets[i])
                                        : std::accumulate(weights.data() + offsets[i],
                                                          weights.data() + offsets[i + 1], 0.0f));
    return degree_;
  }
  std::vector<float> edge_counts() const override {
    const auto offsets = read(sample_.offsets, own() + 1);
    std::vector<float> counts(own());
    for (std::uint64_t i = 0; i < own(); ++i)
      counts[i] = static_cast<float>(offsets[i + 1] - offsets[i]);
    return counts;
  }

 private:
  struct Scaled {
    const float* rows;
    const float* factors;  // one per row, or null
    std::uint64_t width;
  };

  template <class T>
  static std::vector<T> read(const T* from, std::uint64_t count) {
    std::vector<T> values(count);
    if (count > 0) copy_to_host(values.data(), from, count * sizeof(T));
    return values;
  }
  FromPool scratch_pool() const { return {stream_, stream_}; }

  // Memory of one operation: of the pool or, in a room, memory that stays.
  struct Scratch {
    DeviceArray<float> own;
    float* data = nullptr;
  };
  Scratch scratch_of(DeviceArray<float>* kept, std::uint64_t size) const {
    Scratch scratch;
    if (kept != nullptr) {
      kept->reserve(size);
      scratch.data = kept->data();
    } else {
      scratch.own = DeviceArray<float>(size, scratch_pool());
      scratch.data = scratch.own.data();
    }
    return scratch;
  }
  Scratch sums_scratch(std::uint64_t size) const {
    return scratch_of(scratch_ ? &scratch_->sums : nullptr, size);
  }
  Scratch copied_scratch(std::uint64_t size) const {
    return scratch_of(scratch_ ? &scratch_->copied : nullptr, size);
  }

  const Rows& of(Direction direction) {
    if (direction == Direction::along) return along_;
    if (!against_) {
      require(wanted_ != nullptr, "the edges in a room were not turned round");
      wanted_->store(true);
      against_.emplace(along_, sample_.inputs, scratch_pool());
    }
    return against_->edges;
  }
  // Returns the number of rows that edges of the direction read.
  std::uint64_t read_rows(Direction direction) const {
    return direction == Direction::along ? inputs() : own();
  }

  void sum(Direction direction, const Scaled& x, const float* post, bool weighted, float* y) {
    const Phase phase("aggregate");
    const Rows& edges = of(direction);
    const std::uint64_t rows = read_rows(direction);
    const bool copied = is_copied(x, rows);
    const std::uint64_t stride = copied ? row_stride(x.width) : x.width;
    const Scratch copy = copied_scratch(copied ? rows * stride : 0);
    if (copied)
      copy_rows({.from = x.rows,
                 .from_stride = x.width,
                 .scale = x.factors,
                 .count = rows,
                 .width = x.width,
                 .to = copy.data},
                stream_);
    const Scratch partial_sums = sums_scratch(spmm_scratch(*edges.groups, x.width));
    spmm({.groups = &*edges.groups,
          .columns = edges.columns,
          .weights = weighted ? edges.weights : nullptr,
          .x = {copied ? copy.data : x.rows, DType::f32, stride},
          .x_rows = rows,
          .width = x.width,
          .y = {y, DType::f32, x.width},
          .row_scale = post,
          .partial_sums = partial_sums.data},
         stream_);
  }

  // Tells whether rows are copied before they are summed: to scale them, or so that they are read
  // 16 bytes at a time if edges read each twice or more.
  bool is_copied(const Scaled& x, std::uint64_t rows) const {
    const bool in_vectors = x.width % 4 == 0 && reinterpret_cast<std::uintptr_t>(x.rows) % 16 == 0;
    return x.factors != nullptr || (!in_vectors && x.width > 4 && edges() >= 2 * rows);
  }

  cudaStream_t stream_;
  const GpuSampledEdges sample_;
  Rows along_;
  std::optional<TurnedRound> against_;               // made for the first gradient
  const WantsGradients wanted_ = {};                 // null: a room
  const std::shared_ptr<KeptScratch> scratch_ = {};  // of a room
  mutable std::vector<float> degree_;
};

const GpuSampleAggregator& on_gpu(const Aggregator& sample) {
  return dynamic_cast<const GpuSampleAggregator&>(sample);
}

}  // namespace

std::unique_ptr<Aggregator> make_gpu_sample_aggregator(GpuSampledEdges edges,
                                                       const SampleStreams& streams,
                                                       WantsGradients gradients) {
  constexpr std::uint64_t kMostEdges = (std::uint64_t{1} << 31) - 1;
  require<UsageError>(edges.edges <= kMostEdges,
                      "{} edges of a sample are more than 2^31 - 1; use smaller batches",
                      edges.edges);
  try {
    return std::make_unique<GpuSampleAggregator>(std::move(edges), streams, std::move(gradients));
  } catch (...) {
    // Memory that was freed in the order of the other stream may still be in use on this one, and
    // must not be given to others before.
    cudaStreamSynchronize(static_cast<cudaStream_t>(streams.prepare));
    throw;
  }
}

SampleCounts sample_counts(const Aggregator& sample) { return on_gpu(sample).counts(); }

std::vector<std::unique_ptr<Aggregator>> make_gpu_sample_rooms(std::span<const SampleCounts> rooms,
                                                               void* stream) {
  const auto scratch = std::make_shared<KeptScratch>();
  std::vector<std::unique_ptr<Aggregator>> made;
  for (const SampleCounts& room : rooms)
    made.push_back(
        std::make_unique<GpuSampleAggregator>(room, static_cast<cudaStream_t>(stream), scratch));
  return made;
}

void move_in(const Aggregator& sample, const Aggregator& room, std::vector<PaddedCopy>& copies) {
  on_gpu(sample).move_in(on_gpu(room), copies);
}

}  // namespace plait
