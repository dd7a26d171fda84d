// The numbers that a lane of attention.cu reads of an edge, sums, and writes of a row. Internal to
// this room.
#pragma once

#include <cfloat>

#include "plait/kernels/cuda/attention.cuh"
#include "plait/kernels/cuda/warp_edges.cuh"

namespace plait {

constexpr float kLeastScore = -FLT_MAX;  // finite: a difference of two is not NaN

struct AttentionView {
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
struct AttentionSums {
  float sum[kVec] = {}, slope_sum[kPair ? kVec : 1] = {};
  float most = kLeastScore;  // the greatest score, forward
  float total = 0;           // of a, forward
  float score_sum = 0;       // of a r, times c backward

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
struct AttentionPlace {
  std::uint32_t row, column, head;
  __device__ bool begins_head(const AttentionView& a) const {
    return column == head * a.head_stride;
  }
  // The place of the norm that stands for this head in this slice, and whether it is the first of
  // the columns that share it.
  __device__ std::uint64_t standing(const AttentionView& a) const {
    return std::uint64_t{row} * a.standing_stride + head + column / a.slice;
  }
  __device__ bool begins_standing(const AttentionView& a) const {
    return begins_head(a) || column % a.slice == 0;
  }
};

// Stores the first `count` values. `aligned`: `to` is a multiple of 16 bytes.
template <int kVec>
__device__ void store_first(float* to, const float (&values)[kVec], int count = kVec,
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
__device__ inline float standing_norm(const AttentionView& a, const AttentionPlace& at) {
  return a.merge ? a.standing[at.standing(a)] : kLeastScore;
}

// Turns the sums of a pass with edges into those of all edges so far, and returns their norm.
// `factor`: becomes the factor of results that stand. Where all scores so far are -infinity, other
// passes decide: the norm is the least number.
template <bool kPair, int kVec>
__device__ float normalise(const AttentionView& a, float standing, AttentionSums<kPair, kVec>& s,
                           float& factor) {
  const float most = fmaxf(standing, s.most), here = expf(s.most - most),
              before = standing == kLeastScore ? 0.0f : expf(standing - most);
  const float total = fmaf(here, s.total, before);
  if (total == 0 && a.standing != nullptr) return kLeastScore;
  s.scale(here / total);
  factor = before / total;
  return most + logf(total);
}

// Writes the results of a row, to which the results of earlier passes are added. `empty`: the pass
// has no edge of the row. If other passes have, its norm then stands as the least number, with
// which its zeros have no weight. `standing`: forward, standing_norm().
template <bool kForward, bool kPair, int kVec>
__device__ void finish(const AttentionView& a, const AttentionPlace& at, bool empty,
                       AttentionSums<kPair, kVec> s, float standing) {
  const std::uint64_t head = std::uint64_t{at.row} * a.heads + at.head;
  const std::uint32_t within = at.column - at.head * a.head_stride;
  const std::uint64_t first = head * a.features + within;
  const int count = static_cast<int>(a.features) - static_cast<int>(within);
  float factor = 1, norm = 0;
  if constexpr (kForward) {
    if (!empty)
      norm = normalise(a, standing, s, factor);
    else if (a.row_begin[at.row] < a.row_end[at.row])
      norm = kLeastScore;
    if (a.standing != nullptr && at.begins_standing(a)) a.standing[at.standing(a)] = norm;
    if (a.norm != nullptr && at.begins_head(a)) a.norm[head] = norm;
  }
  if (a.merge) add_standing(s.sum, a.sum + first, count, a.aligned, factor);
  store_first(a.sum + first, s.sum, count, a.aligned);
  if constexpr (kPair) {
    if (a.merge) add_standing(s.slope_sum, a.slope_sum + first, count, a.aligned, factor);
    store_first(a.slope_sum + first, s.slope_sum, count, a.aligned);
    if (!at.begins_head(a)) return;
    a.score_sum[head] = a.merge ? fmaf(factor, a.score_sum[head], s.score_sum) : s.score_sum;
  }
}

template <bool kPair, int kVec>
__device__ void put_record(const AttentionView& a, std::uint32_t number, const AttentionPlace& at,
                           const AttentionSums<kPair, kVec>& s) {
  float* const record = a.records + number * a.record_size();
  store_first(record + at.column, s.sum);
  if constexpr (kPair) store_first(record + a.width + at.column, s.slope_sum);
  if (!at.begins_head(a)) return;
  float* const of_head = record + 2 * a.width + at.head;
  of_head[0] = s.most;
  of_head[a.heads] = s.total;
  of_head[2 * a.heads] = s.score_sum;
}

// Returns bits for heads first .. last: bit k tells that head k of the edge is kept.
template <bool kForward>
struct KeptHeads {
  const AttentionView& a;
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
struct AttentionRows {
  Floats<kVec> x[kInFlight];
  float score[kInFlight], norm[kInFlight], c[kInFlight];  // norm and c: backward

  // `x` and `tail`: the lane's columns and its head's numbers, in row 0.
  __device__ AttentionRows(const AttentionView& a, const EdgeBatch& batch, const float* x_at,
                           const float* tail) {
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

}  // namespace plait
