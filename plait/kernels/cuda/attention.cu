// Attention on the GPU: one warp per neighbour group (warp_edges.cuh). Each row of x is read once.
//
//   - Forward and backward are the same sums by weights w = m a and w r, of rows of h or of dy
//     (attention.h); only forward has to find the norm. It keeps the greatest score so far, for
//     each head in every lane that works on it, and scales down its sums before four edges at
//     a time are added.
//   - A lane computes the scores of the head whose columns it adds: all lanes of a head compute the
//     same, but without a shuffle, and the kernel waits for memory.
//   - One lane per edge draws which heads are dropped, one bit per head.
//   - The groups of a cut row leave records, which a second kernel joins in order.
//   - Results of a forward pass stand as those of a softmax over the edges so far, with its norm. A
//     later pass scales both sides to the norm of all edges and adds them (online softmax:
//     Milakov and Gimelshein, 2018, section 3.1). Results of a backward pass are plain sums.
#include "plait/base/error.h"
#include "plait/kernels/cuda/attention.cuh"
#include "plait/kernels/cuda/attention_rows.cuh"

namespace plait {
namespace {

static_assert(kMostAttentionHeads <= 32);  // bits of a mark
constexpr int kBlocks = 3;                 // at least, per SM: leaves enough registers

template <bool kForward, bool kPair, int kVec, int kLanes>
__global__ void __launch_bounds__(kThreads, kBlocks)
    attention_kernel(const __grid_constant__ AttentionView a,
                     const __grid_constant__ Dropout dropout) {
  const std::uint32_t number = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (number >= a.group_count) return;
  const RowGroup group = a.groups[number];
  const bool partial = (group.target & RowGroup::kPartial) != 0;
  const std::uint32_t sum_number = group.target & ~RowGroup::kPartial;
  const int lane = threadIdx.x % kWarp;
  const std::uint32_t slice = blockIdx.y * (kLanes * kVec);
  const std::uint32_t column = slice + lane % kLanes * kVec;
  const bool inside =
      column < a.width;  // lanes beyond the width read the first columns, for nothing
  const std::uint32_t here = inside ? column : 0;
  const AttentionPlace at{partial ? a.partial_rows[sum_number] : group.target, here,
                          here / a.head_stride};
  const float own = a.own[at.row * a.own_stride + at.head];
  const float* const x = a.x + at.column;
  const float* const tail = a.x + a.width + at.head;
  const std::uint32_t slice_end = min(slice + kLanes * kVec, a.width);
  const KeptHeads<kForward> kept{a, dropout, at.row, slice / a.head_stride,
                                 (slice_end - 1) / a.head_stride};

  AttentionSums<kPair, kVec> s;
  for_edges<kLanes>(group, a.columns, kept, [&](const EdgeBatch& batch) {
    AttentionRows<kForward, kVec> rows(a, batch, x, tail);
    float slope[kInFlight], most = s.most;
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const float argument = rows.score[k] + own;
      slope[k] = argument > 0 ? 1.0f : a.slope;
      rows.score[k] = argument * slope[k];
      if (batch.there[k]) most = fmaxf(most, rows.score[k]);
    }
    if constexpr (kForward) s.raise_to(most);
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const float power = expf(rows.score[k] - (kForward ? most : rows.norm[k]));
      const float weight = batch.there[k] ? power : 0.0f;
      s.total += weight;
      s.score_sum = fmaf(weight * slope[k], rows.c[k], s.score_sum);
      const bool keep = (batch.mark[k] >> at.head & 1u) != 0;
      s.add(!a.dropped ? weight : keep ? weight * dropout.scale() : 0.0f, slope[k], rows.x[k]);
    }
  });

  if constexpr (kForward) {
    float most = s.most;
#pragma unroll
    for (int distance = kLanes; distance < kWarp; distance *= 2)
      most = fmaxf(most, __shfl_xor_sync(kAll, most, distance));
    if constexpr (kLanes < kWarp) s.raise_to(most);
  }
#pragma unroll
  for (int distance = kLanes; distance < kWarp; distance *= 2)
    s.each([&](float value) { return value + __shfl_xor_sync(kAll, value, distance); });

  const float standing = kForward && !partial ? standing_norm(a, at) : kLeastScore;
  __syncwarp();  // all lanes have read it before one writes
  if (lane >= kLanes || !inside) return;
  if (partial)
    put_record(a, sum_number, at, s);
  else
    finish<kForward>(a, at, group.edges == 0, s, standing);
}

// One block per cut row.
template <bool kForward, bool kPair>
__global__ void __launch_bounds__(kThreads)
    join_records(const CutRow* rows, const __grid_constant__ AttentionView a) {
  const CutRow row = rows[blockIdx.x];
  if (row.count == 0) return;  // no row (RowGroups::take)
  // A slice is worked on in one round, as it is a divisor of kThreads.
  for (std::uint32_t first = 0; first < a.width; first += kThreads) {
    const std::uint32_t column = first + threadIdx.x;
    const bool inside = column < a.width;
    const AttentionPlace at{row.row, column, column / a.head_stride};
    const float standing = kForward && inside ? standing_norm(a, at) : kLeastScore;
    __syncthreads();  // all threads have read it before one writes
    if (!inside) continue;
    const auto record = [&](std::uint32_t k) {
      return a.records + (std::uint64_t{row.first} + k) * a.record_size();
    };
    const std::uint64_t of_head = 2 * a.width + at.head;
    AttentionSums<kPair, 1> s;
    if constexpr (kForward) {
#pragma unroll 8
      for (std::uint32_t k = 0; k < row.count; ++k) s.most = fmaxf(s.most, record(k)[of_head]);
    }
#pragma unroll 4
    for (std::uint32_t k = 0; k < row.count; ++k) {
      const float* const from = record(k);
      const float factor = kForward ? expf(from[of_head] - s.most) : 1.0f;
      s.sum[0] = fmaf(factor, from[column], s.sum[0]);
      if constexpr (kPair) s.slope_sum[0] = fmaf(factor, from[a.width + column], s.slope_sum[0]);
      s.total = fmaf(factor, from[of_head + a.heads], s.total);
      s.score_sum = fmaf(factor, from[of_head + 2 * a.heads], s.score_sum);
    }
    finish<kForward>(a, at, false, s, standing);
  }
}

// ds = <h, v> - ds, for each head of each row: blockDim.x lanes, a power of two up to a warp, work
// on one head. Rows of h may have gaps, rows of v have none.
struct Products {
  const float* h;
  std::uint64_t h_stride;
  const float* v;
  float* ds;
  std::uint64_t count;  // rows x heads
  std::uint32_t heads, features;
};

__global__ void __launch_bounds__(kThreads) subtract_from_products(const Products a) {
  const std::uint64_t wanted = blockIdx.x * std::uint64_t{blockDim.y} + threadIdx.y;
  // All lanes of a warp stay for the shuffles.
  const std::uint64_t number = min(wanted, a.count - 1), row = number / a.heads;
  const float* const h = a.h + row * a.h_stride + number % a.heads * a.features;
  const float* const v = a.v + number * a.features;
  float product = 0;
  for (std::uint32_t j = threadIdx.x; j < a.features; j += blockDim.x)
    product = fmaf(h[j], v[j], product);
  for (unsigned distance = 1; distance < blockDim.x; distance *= 2)
    product += __shfl_xor_sync(kAll, product, distance);
  if (threadIdx.x == 0 && wanted < a.count) a.ds[number] = product - a.ds[number];
}

template <bool kForward, bool kPair>
void launch(AttentionView a, const RowGroups& groups, cudaStream_t stream) {
  if (groups.size() == 0) return;
  const Dropout dropout = a.dropped ? *a.dropout.step.dropout : Dropout(0, 0);
  const bool vectors = a.head_stride % 4 == 0 && on_16_bytes(a.x, a.x_stride);
  with_lanes(vectors, a.width, [&](auto vec, auto lanes) {
    constexpr int kVec = decltype(vec)::value, kLanes = decltype(lanes)::value;
    a.slice = kLanes * kVec;
    a.standing_stride = a.heads + (a.width - 1) / a.slice;
    attention_kernel<kForward, kPair, kVec, kLanes>
        <<<grid_of<kVec, kLanes>(a.group_count, a.width), kThreads, 0, stream>>>(a, dropout);
  });
  if (groups.cut_size() > 0)
    join_records<kForward, kPair><<<groups.cut_size(), kThreads, 0, stream>>>(groups.cut_rows(), a);
  check_cuda(cudaGetLastError(), "attention");
}

// Makes the part of the view that forward and backward have in common.
AttentionView make_view(const EdgeRows& edges, const AttentionShape& shape,
                        const AttentionDropout& dropout, const EdgePass& pass) {
  require<UsageError>(edges.x.peers == nullptr, "attention on a GPU reads no rows of peers");
  const RowGroups& groups = pass.groups();
  AttentionView view{};
  view.groups = groups.groups();
  view.partial_rows = groups.partial_rows();
  view.group_count = groups.size();
  view.merge = !pass.first();
  view.row_begin = edges.begin.data();
  view.row_end = edges.end.data();
  view.heads = static_cast<std::uint32_t>(shape.heads);
  view.features = static_cast<std::uint32_t>(shape.features);
  view.head_stride = static_cast<std::uint32_t>(shape.head_stride());
  view.width = static_cast<std::uint32_t>(shape.tail());
  view.columns = edges.columns;
  view.x = edges.x.base;
  view.x_stride = edges.x.stride;
  view.slope = shape.slope;
  view.dropped = dropout.step.active();
  view.dropout = dropout;
  return view;
}

// Sets the results whose rows are as wide as h.
void set_wide_results(AttentionView& view, float* sum, float* slope_sum) {
  view.sum = sum;
  view.slope_sum = slope_sum;
  view.aligned = on_16_bytes(sum, view.features) && on_16_bytes(slope_sum, view.features);
}

// Returns the floats of the records of the groups of cut rows, and what is missing to 16 bytes.
std::uint64_t record_floats(std::span<const RowGroups> passes, const AttentionShape& shape) {
  require<UsageError>(shape.heads <= kMostAttentionHeads,
                      "{} heads of attention on a GPU are more than {}", shape.heads,
                      kMostAttentionHeads);
  const std::uint64_t floats = most_partial_sums(passes) * (2 * shape.tail() + 3 * shape.heads);
  return (floats + 3) / 4 * 4;
}

// Returns the most floats of a row of norms that stand between passes (AttentionView::standing), no
// more than a row of h has. Where there are several slices, each has at least kWarp columns.
std::uint64_t standing_floats(const AttentionShape& shape) {
  return shape.heads + (std::max<std::uint64_t>(shape.tail(), 1) - 1) / kWarp;
}

}  // namespace

std::uint64_t scratch_floats(const AttentionForward& args, std::span<const RowGroups> passes) {
  const std::uint64_t standing =
      passes.size() > 1 ? args.edges.begin.size() * standing_floats(args.shape) : 0;
  return record_floats(passes, args.shape) + standing;
}

std::uint64_t scratch_floats(const AttentionBackward& args, std::span<const RowGroups> passes) {
  return record_floats(passes, args.shape) + args.edges.begin.size() * args.shape.width();
}

void apply(const AttentionForward& args, const EdgePass& pass, float* scratch,
           cudaStream_t stream) {
  AttentionView view = make_view(args.edges, args.shape, args.dropout, pass);
  if (args.shape.width() == 0) return;
  view.own = args.t;
  view.own_stride = args.shape.heads;
  set_wide_results(view, args.y, args.u);
  view.score_sum = args.b;
  view.norm = args.norm;
  view.records = scratch;
  if (pass.all.size() > 1) view.standing = scratch + record_floats(pass.all, args.shape);
  args.u ? launch<true, true>(view, pass.groups(), stream)
         : launch<true, false>(view, pass.groups(), stream);
}

void apply(const AttentionBackward& args, const EdgePass& pass, float* scratch,
           cudaStream_t stream) {
  AttentionView view = make_view(args.edges, args.shape, args.dropout, pass);
  const std::uint64_t count = args.edges.begin.size() * args.shape.heads;
  if (count == 0 || args.shape.width() == 0) return;
  float* const v = scratch + record_floats(pass.all, args.shape);
  view.own = args.s;
  view.own_stride = args.s_stride;
  set_wide_results(view, args.dh, v);
  view.score_sum = args.ds;
  view.records = scratch;
  launch<false, true>(view, pass.groups(), stream);
  if (!pass.last()) return;  // v is not complete

  const auto lanes =
      static_cast<unsigned>(std::bit_ceil(std::min<std::uint64_t>(args.shape.features, kWarp)));
  const dim3 block(lanes, kThreads / lanes);
  const auto blocks = static_cast<unsigned>((count + block.y - 1) / block.y);
  const Products products{args.h, args.h_stride, v, args.ds, count, view.heads, view.features};
  subtract_from_products<<<blocks, block, 0, stream>>>(products);
  check_cuda(cudaGetLastError(), "attention");
}

}  // namespace plait
