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
#include <cfloat>

#include "plait/base/error.h"
#include "plait/kernels/cuda/attention.cuh"
#include "plait/kernels/cuda/warp_edges.cuh"

namespace plait {
namespace {

constexpr std::uint64_t kMostHeads = 32;  // bits of a mark
constexpr int kBlocks = 3;                // at least, per SM: leaves enough registers
constexpr float kLeast = -FLT_MAX;        // finite: a difference of two is not NaN

struct View {
  const RowGroup* groups;
  const std::uint32_t* partial_rows;
  std::uint32_t group_count;
  bool merge;    // results of earlier passes stand
  bool aligned;  // rows of sum and slope_sum begin at multiples of 16 bytes
  const EdgeOffset *row_begin, *row_end;  // all edges of each row, of whatever pass
  std::uint32_t heads, features;
  std::uint32_t head_stride, width;  // of rows of x, and of records: all heads are `width` floats
  const Slot* columns;
  const float* x;
  std::uint64_t x_stride;
  const float* own;  // t forward, s backward
  std::uint64_t own_stride;
  float slope;
  bool dropped;
  AttentionDropout dropout;
  float* sum;        // y or dh
  float* slope_sum;  // u or v
  float* score_sum;  // b, or ds before it is complete
  float* norm;       // or null
  // The norms that a later pass reads, or null if there is none. Each slice of a row, of `slice`
  // columns, has its own copy of the norms of the heads in it, at [head + number of the slice],
  // because warps that work on other slices write theirs at other times.
  float* standing;
  std::uint32_t standing_stride, slice;
  // One record per group of a cut row: [sum | slope_sum | of each head: most | total | score_sum].
  // The first two are padded as rows of x are.
  float* records;

  __host__ __device__ std::uint64_t record_size() const { return 2 * width + 3 * heads; }
};

// The sums of kVec columns of one head.
template <bool kPair, int kVec>
struct Sums {
  float sum[kVec] = {}, slope_sum[kPair ? kVec : 1] = {};
  float most = kLeast;  // the greatest score, forward
  float total = 0;      // of a, forward
  float score_sum = 0;  // of a r, times c backward

  __device__ void add(float weight, float slope, const Floats<kVec>& x) {
    const float slope_weight = weight * slope;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      sum[i] = fmaf(weight, x.value[i], sum[i]);
      if constexpr (kPair) slope_sum[i] = fmaf(slope_weight, x.value[i], slope_sum[i]);
    }
  }
  // Replaces each number, except the greatest score, by f of it.
  template <class F>
  __device__ void each(F&& f) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      sum[i] = f(sum[i]);
      if constexpr (kPair) slope_sum[i] = f(slope_sum[i]);
    }
    total = f(total);
    score_sum = f(score_sum);
  }
  __device__ void scale(float factor) {
    each([&](float value) { return value * factor; });
  }
  // Scales the sums as if `greater`, no less than `most`, had been subtracted from all scores.
  __device__ void raise_to(float greater) {
    scale(expf(most - greater));
    most = greater;
  }
};

// The place of kVec columns from `column` on.
struct Place {
  std::uint32_t row, column, head;
  __device__ bool begins_head(const View& a) const { return column == head * a.head_stride; }
  // The place of the norm that stands for this head in this slice, and whether it is the first of
  // the columns that share it.
  __device__ std::uint64_t standing(const View& a) const {
    return std::uint64_t{row} * a.standing_stride + head + column / a.slice;
  }
  __device__ bool begins_standing(const View& a) const {
    return begins_head(a) || column % a.slice == 0;
  }
};

// Stores the first `count` values. `aligned`: `to` is a multiple of 16 bytes.
template <int kVec>
__device__ void store(float* to, const float (&values)[kVec], int count = kVec,
                      bool aligned = false) {
  if constexpr (kVec == 4) {
    if (aligned && count >= kVec) {
      *reinterpret_cast<float4*>(to) = {values[0], values[1], values[2], values[3]};
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    if (i < count) to[i] = values[i];
}

// Adds factor times the values that stand at `from` to the first `count` values.
template <int kVec>
__device__ void add_standing(float (&values)[kVec], const float* from, int count, bool aligned,
                             float factor) {
  if constexpr (kVec == 4) {
    if (aligned && count >= kVec) {
      const float4 standing = *reinterpret_cast<const float4*>(from);
      values[0] = fmaf(factor, standing.x, values[0]);
      values[1] = fmaf(factor, standing.y, values[1]);
      values[2] = fmaf(factor, standing.z, values[2]);
      values[3] = fmaf(factor, standing.w, values[3]);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    if (i < count) values[i] = fmaf(factor, from[i], values[i]);
}

// Returns the norm of a row's edges in earlier passes.
__device__ float standing_norm(const View& a, const Place& at) {
  return a.merge ? a.standing[at.standing(a)] : kLeast;
}

// Turns the sums of a pass with edges into those of all edges so far, and returns their norm.
// `factor`: becomes the factor of results that stand. Where all scores so far are -infinity, other
// passes decide: the norm is the least number.
template <bool kPair, int kVec>
__device__ float normalise(const View& a, float standing, Sums<kPair, kVec>& s, float& factor) {
  const float most = fmaxf(standing, s.most), here = expf(s.most - most),
              before = standing == kLeast ? 0.0f : expf(standing - most);
  const float total = fmaf(here, s.total, before);
  if (total == 0 && a.standing != nullptr) return kLeast;
  s.scale(here / total);
  factor = before / total;
  return most + logf(total);
}

// Writes the results of a row, to which the results of earlier passes are added. `empty`: the pass
// has no edge of the row. If other passes have, its norm then stands as the least number, with
// which its zeros have no weight. `standing`: forward, standing_norm().
template <bool kForward, bool kPair, int kVec>
__device__ void finish(const View& a, const Place& at, bool empty, Sums<kPair, kVec> s,
                       float standing) {
  const std::uint64_t head = std::uint64_t{at.row} * a.heads + at.head;
  const std::uint32_t within = at.column - at.head * a.head_stride;
  const std::uint64_t first = head * a.features + within;
  const int count = static_cast<int>(a.features) - static_cast<int>(within);
  float factor = 1, norm = 0;
  if constexpr (kForward) {
    if (!empty)
      norm = normalise(a, standing, s, factor);
    else if (a.row_begin[at.row] < a.row_end[at.row])
      norm = kLeast;
    if (a.standing != nullptr && at.begins_standing(a)) a.standing[at.standing(a)] = norm;
    if (a.norm != nullptr && at.begins_head(a)) a.norm[head] = norm;
  }
  if (a.merge) add_standing(s.sum, a.sum + first, count, a.aligned, factor);
  store(a.sum + first, s.sum, count, a.aligned);
  if constexpr (kPair) {
    if (a.merge) add_standing(s.slope_sum, a.slope_sum + first, count, a.aligned, factor);
    store(a.slope_sum + first, s.slope_sum, count, a.aligned);
    if (!at.begins_head(a)) return;
    a.score_sum[head] = a.merge ? fmaf(factor, a.score_sum[head], s.score_sum) : s.score_sum;
  }
}

template <bool kPair, int kVec>
__device__ void put_record(const View& a, std::uint32_t number, const Place& at,
                           const Sums<kPair, kVec>& s) {
  float* const record = a.records + number * a.record_size();
  store(record + at.column, s.sum);
  if constexpr (kPair) store(record + a.width + at.column, s.slope_sum);
  if (!at.begins_head(a)) return;
  float* const of_head = record + 2 * a.width + at.head;
  of_head[0] = s.most;
  of_head[a.heads] = s.total;
  of_head[2 * a.heads] = s.score_sum;
}

// Returns bits for heads first .. last: bit k tells that head k of the edge is kept.
template <bool kForward>
struct KeptHeads {
  const View& a;
  const Dropout& dropout;
  std::uint32_t row, first, last;

  __device__ std::uint32_t operator()(Slot slot, EdgeOffset) const {
    if (!a.dropped) return 0;
    const std::uint64_t here = a.dropout.row_vertex[row], there = a.dropout.slot_vertex[slot];
    const std::uint64_t target = kForward ? here : there, source = kForward ? there : here;
    const std::uint32_t epoch = a.dropout.step.current_epoch(), layer = a.dropout.step.layer;
    std::uint32_t kept = 0;
    for (std::uint32_t head = first / 4 * 4; head <= last; head += 4) {
      const Philox::Block four = dropout.edge_numbers(target, source, epoch, layer, head);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (dropout.keeps(four[k])) kept |= 1u << (head + k);
    }
    return kept;
  }
};

// The numbers that a lane reads for some edges.
template <bool kForward, int kVec>
struct Rows {
  Floats<kVec> x[kInFlight];
  float score[kInFlight], norm[kInFlight], c[kInFlight];  // norm and c: backward

  // `x` and `tail`: the lane's columns and its head's numbers, in row 0.
  __device__ Rows(const View& a, const EdgeBatch& batch, const float* x_at, const float* tail) {
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      x[k] = {};
      score[k] = norm[k] = 0;
      c[k] = 1;
      if (!batch.there[k]) continue;
      const std::uint64_t offset = std::uint64_t{batch.slot[k]} * a.x_stride;
      x[k] = Floats<kVec>::load(x_at + offset);
      score[k] = __ldg(tail + offset);
      if constexpr (!kForward) {
        norm[k] = __ldg(tail + offset + a.heads);
        c[k] = __ldg(tail + offset + 2 * a.heads);
      }
    }
  }
};

template <bool kForward, bool kPair, int kVec, int kLanes>
__global__ void __launch_bounds__(kThreads, kBlocks)
    attention_kernel(const __grid_constant__ View a, const __grid_constant__ Dropout dropout) {
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
  const Place at{partial ? a.partial_rows[sum_number] : group.target, here, here / a.head_stride};
  const float own = a.own[at.row * a.own_stride + at.head];
  const float* const x = a.x + at.column;
  const float* const tail = a.x + a.width + at.head;
  const std::uint32_t slice_end = min(slice + kLanes * kVec, a.width);
  const KeptHeads<kForward> kept{a, dropout, at.row, slice / a.head_stride,
                                 (slice_end - 1) / a.head_stride};

  Sums<kPair, kVec> s;
  for_edges<kLanes>(group, a.columns, kept, [&](const EdgeBatch& batch) {
    Rows<kForward, kVec> rows(a, batch, x, tail);
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

  const float standing = kForward && !partial ? standing_norm(a, at) : kLeast;
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
    join_records(const CutRow* rows, const __grid_constant__ View a) {
  const CutRow row = rows[blockIdx.x];
  if (row.count == 0) return;  // no row (RowGroups::take)
  // A slice is worked on in one round, as it is a divisor of kThreads.
  for (std::uint32_t first = 0; first < a.width; first += kThreads) {
    const std::uint32_t column = first + threadIdx.x;
    const bool inside = column < a.width;
    const Place at{row.row, column, column / a.head_stride};
    const float standing = kForward && inside ? standing_norm(a, at) : kLeast;
    __syncthreads();  // all threads have read it before one writes
    if (!inside) continue;
    const auto record = [&](std::uint32_t k) {
      return a.records + (std::uint64_t{row.first} + k) * a.record_size();
    };
    const std::uint64_t of_head = 2 * a.width + at.head;
    Sums<kPair, 1> s;
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
// on one. Rows of h may have gaps, those of v have none.
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
void launch(View a, const RowGroups& groups, cudaStream_t stream) {
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
View make_view(const EdgeRows& edges, const AttentionShape& shape, const AttentionDropout& dropout,
               const EdgePass& pass) {
  require<UsageError>(edges.x.peers == nullptr, "attention on a GPU reads no rows of peers");
  const RowGroups& groups = pass.groups();
  View view{};
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
void set_wide_results(View& view, float* sum, float* slope_sum) {
  view.sum = sum;
  view.slope_sum = slope_sum;
  view.aligned = on_16_bytes(sum, view.features) && on_16_bytes(slope_sum, view.features);
}

// Returns the floats of the records of the groups of cut rows, and what is missing to 16 bytes.
std::uint64_t record_floats(std::span<const RowGroups> passes, const AttentionShape& shape) {
  require<UsageError>(shape.heads <= kMostHeads, "{} heads of attention on a GPU are more than {}",
                      shape.heads, kMostHeads);
  const std::uint64_t floats = most_partial_sums(passes) * (2 * shape.tail() + 3 * shape.heads);
  return (floats + 3) / 4 * 4;
}

// Returns the most floats of a row of norms that stand between passes (View::standing), no more
// than a row of h has. Where there are several slices, each has at least kWarp columns.
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
  View view = make_view(args.edges, args.shape, args.dropout, pass);
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
  View view = make_view(args.edges, args.shape, args.dropout, pass);
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
