// Attention of pairs of rows on the GPU: one warp per neighbour group and slice of heads
// (warp_edges.cuh).
//
//   - A head has 1, 2, 4 ... 32 lanes of an edge, of four columns each, or several times four where
//     it is wider than a warp. They add up the terms of the score by shuffles, so that all of them
//     know it, and then add the columns that they have read to their sums. As many heads as fit
//     into a warp are worked on side by side, and each row of x is read once for these.
//   - Rows of several edges are under way at a time. Forward, every lane keeps the greatest score
//     so far of its head, and scales down its sums before these edges are added. Gradients know the
//     norm, and are plain sums.
//   - The groups of a cut row leave records, which a second kernel joins in order.
//   - Results of a forward pass stand as those of a softmax over the edges so far, with its norm; a
//     later pass scales both sides to the norm of all edges and adds them (online softmax: Milakov
//     and Gimelshein, 2018, section 3.1).
#include <algorithm>
#include <bit>

#include "plait/base/error.h"
#include "plait/kernels/cuda/attention_rows.cuh"
#include "plait/kernels/cuda/pair_attention.cuh"

namespace plait {
namespace {

struct PairView {
  const RowGroup* groups;
  const std::uint32_t* partial_rows;
  std::uint32_t group_count;
  bool merge;                             // results of earlier passes stand
  bool in_passes;                         // of which there are several
  const EdgeOffset *row_begin, *row_end;  // all edges of each row, of whatever pass
  const Slot* columns;
  const float* x;
  std::uint64_t x_stride;
  std::uint32_t heads, features, head_stride;
  std::uint32_t head_lanes;   // of an edge, a power of 2
  std::uint32_t slice_heads;  // that a warp works on, a power of 2; the last slice may lack some
  std::uint32_t second;       // where v, or dy, begins in a row of x
  std::uint32_t tail;         // where norm begins in a row of x, backward
  float slope;
  bool dropped;
  AttentionDropout dropout;
  const float* q;      // rows x width: q, or p backward
  const float* other;  // dy, or v backward
  const float* f;
  const float *norm, *c;  // of rows
  float *first, *last;    // results: y; dq and df or null; dp and dv
  float* norms;           // forward: of the edges so far, or null
  // One record per group of a cut row: forward [sum | of each head: most | total], else [sums of
  // `first` | sums of `last`].
  float* records;

  __host__ __device__ std::uint32_t width() const { return heads * features; }
  __host__ __device__ std::uint64_t record_size() const {
    return 2 * std::uint64_t{width()} + 2 * heads;
  }
};

// The columns of one head that a lane has: kChunks times four, kLanes times four apart if there are
// several. A lane without a head has no columns, and the number of another head.
template <int kLanes, int kChunks>
struct PairColumns {
  std::uint32_t head, in_slice, lane, features;

  __device__ PairColumns(const PairView& a, std::uint32_t slice, std::uint32_t lane_of_edge)
      : in_slice(lane_of_edge / a.head_lanes), lane(lane_of_edge % a.head_lanes) {
    const std::uint32_t wanted = slice * a.slice_heads + in_slice;
    head = min(wanted, a.heads - 1);
    features = wanted < a.heads ? a.features : 0;
  }
  __device__ std::uint32_t at(int chunk) const { return (chunk * kLanes + lane) * 4; }
};

using Four = float[4];

// Reads columns of a row without gaps; those behind the head are 0.
template <int kLanes, int kChunks>
__device__ void read_own(Four (&to)[kChunks], const float* row, const PairView& a,
                         const PairColumns<kLanes, kChunks>& columns) {
#pragma unroll
  for (int n = 0; n < kChunks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t column = columns.at(n) + i;
      to[n][i] = row != nullptr && column < columns.features
                     ? __ldg(row + columns.head * a.features + column)
                     : 0.0f;
    }
}

// Reads columns of a row of x, if there is one; those behind the head are 0, and so are all
// without.
template <int kLanes, int kChunks>
__device__ void read_edge(Four (&to)[kChunks], const float* row, bool there, const PairView& a,
                          const PairColumns<kLanes, kChunks>& columns) {
#pragma unroll
  for (int n = 0; n < kChunks; ++n) {
    const std::uint32_t column = columns.at(n);
    Floats<4> four{};
    if (there && column < columns.features)
      four = Floats<4>::load(row + columns.head * a.head_stride + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[n][i] = column + i < columns.features ? four.value[i] : 0.0f;
  }
}

// Replaces each number by its sum over the lanes of a head.
template <int kLanes, int kNumbers>
__device__ void over_lanes(float (&values)[kNumbers], std::uint32_t head_lanes) {
#pragma unroll
  for (std::uint32_t distance = 1; distance < kLanes; distance *= 2)
    if (distance < head_lanes)
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) values[k] += __shfl_xor_sync(kAll, values[k], distance);
}

template <int kChunks>
__device__ float product_of(const Four (&one)[kChunks], const Four (&other)[kChunks]) {
  float sum = 0;
#pragma unroll
  for (int n = 0; n < kChunks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum = fmaf(one[n][i], other[n][i], sum);
  return sum;
}

__device__ inline float leaky(float z, float slope) { return z > 0 ? z : z * slope; }

// The terms of a score in this lane's columns, and sums of their derivatives.
template <PairScore kScore, int kChunks>
struct PairTerms {
  float slope;
  Four q[kChunks], f[kChunks];

  __device__ float score(const Four (&p)[kChunks]) const {
    if constexpr (kScore == PairScore::product) return product_of(q, p);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kChunks; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum = fmaf(f[n][i], leaky(q[n][i] + p[n][i], slope), sum);
    return sum;
  }
  // Adds g times the derivative for q.
  __device__ void add_derivative(Four (&sums)[kChunks], float g, const Four (&p)[kChunks]) const {
#pragma unroll
    for (int n = 0; n < kChunks; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float term = kScore == PairScore::product
                               ? p[n][i]
                               : f[n][i] * (q[n][i] + p[n][i] > 0 ? 1.0f : slope);
        sums[n][i] = fmaf(g, term, sums[n][i]);
      }
  }
  // Adds g times the derivative for f.
  __device__ void add_factor(Four (&sums)[kChunks], float g, const Four (&p)[kChunks]) const {
#pragma unroll
    for (int n = 0; n < kChunks; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[n][i] = fmaf(g, leaky(q[n][i] + p[n][i], slope), sums[n][i]);
  }
};

template <int kChunks>
__device__ void add_row(Four (&sums)[kChunks], float weight, const Four (&row)[kChunks]) {
#pragma unroll
  for (int n = 0; n < kChunks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = fmaf(weight, row[n][i], sums[n][i]);
}

template <int kChunks, class F>
__device__ void each(Four (&values)[kChunks], F&& f) {
#pragma unroll
  for (int n = 0; n < kChunks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) values[n][i] = f(values[n][i]);
}

// Returns bits for the heads of a slice: bit k tells that its head k of the edge is kept.
struct KeptOfSlice {
  const PairView& a;
  const Dropout& dropout;
  std::uint32_t row, first;  // head
  bool along;

  __device__ std::uint32_t operator()(Slot slot, EdgeOffset) const {
    if (!a.dropped) return ~0u;
    const std::uint64_t here = a.dropout.row_vertex[row], there = a.dropout.slot_vertex[slot];
    const std::uint64_t target = along ? here : there, source = along ? there : here;
    const std::uint32_t epoch = a.dropout.step.current_epoch(), layer = a.dropout.step.layer;
    std::uint32_t kept = 0;
    for (std::uint32_t head = first / 4 * 4; head < min(first + a.slice_heads, a.heads);
         head += 4) {
      const Philox::Block four = dropout.edge_numbers(target, source, epoch, layer, head);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (head + k >= first && head + k < first + a.slice_heads && dropout.keeps(four[k]))
          kept |= 1u << (head + k - first);
    }
    return kept;
  }
};

// The three operations: what a lane does with the edges, and with its sums.
enum class PairKind { forward, own, backward };

// Returns the least number of blocks per SM for which registers are left: gradients need more.
constexpr int blocks_of(PairKind kind, int chunks) {
  if (chunks > 1) return 1;
  return kind == PairKind::forward ? 3 : 2;
}

// kValues: v, or dy, has columns of its own in rows of x.
template <PairKind kKind, PairScore kScore, bool kValues, int kLanes, int kChunks>
struct PairWork {
  static constexpr int kAtOnce = kInFlight / kChunks;  // edges
  using Columns = PairColumns<kLanes, kChunks>;
  const PairView& a;
  const Columns columns;
  const float scale;  // of heads that are kept
  PairTerms<kScore, kChunks> terms;
  Four other[kChunks] = {};  // dy, or v backward
  float norm = 0, c = 0;     // of the row, in `own`
  Four sum[kChunks] = {}, last[kChunks] = {};
  float most = kLeastScore, total = 0;  // forward

  __device__ PairWork(const PairView& view, std::uint32_t row, const Columns& of, float kept_scale)
      : a(view), columns(of), scale(kept_scale) {
    const std::uint64_t at = std::uint64_t{row} * a.width();
    terms.slope = a.slope;
    read_own(terms.q, a.q + at, a, columns);
    read_own(terms.f, a.f, a, columns);
    if constexpr (kKind != PairKind::forward) read_own(other, a.other + at, a, columns);
    if constexpr (kKind == PairKind::own) {
      norm = a.norm[std::uint64_t{row} * a.heads + columns.head];
      c = a.c[std::uint64_t{row} * a.heads + columns.head];
    }
  }

  // Returns m of an edge by its mark.
  __device__ float factor(std::uint32_t mark) const {
    return (mark >> columns.in_slice & 1u) != 0 ? scale : 0.0f;
  }

  __device__ void raise_to(float greater) {
    const float down = expf(most - greater);
    each(sum, [&](float value) { return value * down; });
    total *= down;
    most = greater;
  }

  // Adds edges of a batch from `first` on. Lanes without an edge take part in shuffles.
  __device__ void add(const EdgeBatch& batch, int first) {
    Four p[kAtOnce][kChunks], values[kValues ? kAtOnce : 1][kChunks];
    const float* rows[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      rows[k] = a.x + std::uint64_t{batch.slot[first + k]} * a.x_stride;
      read_edge(p[k], rows[k], batch.there[first + k], a, columns);
      if constexpr (kValues)
        read_edge(values[k], rows[k] + a.second, batch.there[first + k], a, columns);
    }
    const auto v = [&](int k) -> const Four(&)[kChunks] {
      if constexpr (kValues)
        return values[k];
      else
        return p[k];
    };
    float z[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) z[k] = terms.score(p[k]);
    over_lanes<kLanes>(z, a.head_lanes);
    if constexpr (kKind == PairKind::forward) {
      float greatest = most;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (batch.there[first + k]) greatest = fmaxf(greatest, z[k]);
      raise_to(greatest);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float weight = batch.there[first + k] ? expf(z[k] - most) : 0.0f;
        total += weight;
        add_row(sum, factor(batch.mark[first + k]) * weight, v(k));
      }
    } else {
      float product[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) product[k] = product_of(other, v(k));
      over_lanes<kLanes>(product, a.head_lanes);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        constexpr bool kOwn = kKind == PairKind::own;
        const float m = factor(batch.mark[first + k]);
        const float of_norm = kOwn ? norm : __ldg(rows[k] + a.tail + columns.head);
        const float of_c = kOwn ? c : __ldg(rows[k] + a.tail + a.heads + columns.head);
        const float weight = batch.there[first + k] ? expf(z[k] - of_norm) : 0.0f;
        const float g = batch.there[first + k] ? weight * fmaf(m, product[k], -of_c) : 0.0f;
        terms.add_derivative(sum, g, p[k]);
        if constexpr (kOwn) {
          if (a.last != nullptr) terms.add_factor(last, g, p[k]);
        } else {
          add_row(last, m * weight, v(k));
        }
      }
    }
  }

  // Adds up what the lanes of the warp's other edges have.
  __device__ void join_lanes() {
    if constexpr (kKind == PairKind::forward && kLanes < kWarp) {
      float greatest = most;
#pragma unroll
      for (int distance = kLanes; distance < kWarp; distance *= 2)
        greatest = fmaxf(greatest, __shfl_xor_sync(kAll, greatest, distance));
      raise_to(greatest);
    }
#pragma unroll
    for (int distance = kLanes; distance < kWarp; distance *= 2) {
      const auto add_other = [&](float value) {
        return value + __shfl_xor_sync(kAll, value, distance);
      };
      each(sum, add_other);
      if constexpr (kKind != PairKind::forward) each(last, add_other);
      total = add_other(total);
    }
  }
};

// Writes one column of a row's result, to which the results of earlier passes are added. `factor`:
// of these.
__device__ inline void put_result(float* to, float value, bool merge, float factor = 1) {
  *to = merge ? fmaf(factor, *to, value) : value;
}

// Turns the numbers of a pass into those of all edges so far: returns the factor of the pass's
// sums, sets the factor of results that stand, and the norm. As normalise() of attention_rows.cuh.
struct PairNorm {
  float here = 0, before = 1, norm = 0;

  PairNorm() = default;
  __device__ PairNorm(const PairView& a, std::uint32_t row, std::uint32_t head, bool empty,
                      float most, float total) {
    const bool none = a.row_begin[row] == a.row_end[row];
    const float standing = a.merge ? a.norms[std::uint64_t{row} * a.heads + head] : kLeastScore;
    norm = none ? 0.0f : standing;
    if (empty) return;
    const float greater = fmaxf(standing, most), of_pass = expf(most - greater),
                of_standing = standing == kLeastScore ? 0.0f : expf(standing - greater);
    const float all = fmaf(of_pass, total, of_standing);
    if (all == 0 && a.in_passes) {  // a later pass may have edges of weight
      norm = kLeastScore;
      return;
    }
    here = of_pass / all, before = of_standing / all;
    norm = greater + logf(all);
  }
};

template <PairKind kKind, PairScore kScore, bool kValues, int kLanes, int kChunks>
__global__ void __launch_bounds__(kThreads, blocks_of(kKind, kChunks))
    pair_kernel(const __grid_constant__ PairView a, const __grid_constant__ Dropout dropout) {
  const std::uint32_t number = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (number >= a.group_count) return;
  const RowGroup group = a.groups[number];
  const bool partial = (group.target & RowGroup::kPartial) != 0;
  const std::uint32_t record = group.target & ~RowGroup::kPartial;
  const std::uint32_t row = partial ? a.partial_rows[record] : group.target;
  const std::uint32_t lane = threadIdx.x % kWarp;
  const PairColumns<kLanes, kChunks> columns(a, blockIdx.y, lane % kLanes);
  PairWork<kKind, kScore, kValues, kLanes, kChunks> work(a, row, columns,
                                                         a.dropped ? dropout.scale() : 1.0f);
  const KeptOfSlice kept{a, dropout, row, blockIdx.y * a.slice_heads, kKind != PairKind::backward};
  for_edges<kLanes>(group, a.columns, kept, [&](const EdgeBatch& batch) {
#pragma unroll
    for (int first = 0; first < kInFlight; first += work.kAtOnce) work.add(batch, first);
  });
  work.join_lanes();

  const std::uint32_t head = columns.head;
  const bool first_of_head = lane < kLanes && columns.lane == 0 && columns.features > 0;
  float* const to_record = a.records + record * a.record_size();
  const std::uint64_t of_head = std::uint64_t{row} * a.heads + head;
  PairNorm norm;
  if (kKind == PairKind::forward && !partial) {
    norm = PairNorm(a, row, head, group.edges == 0, work.most, work.total);
    __syncwarp();  // all lanes have read the norm that stands before one writes
    if (first_of_head && a.norms != nullptr) a.norms[of_head] = norm.norm;
  }
  if (lane >= kLanes) return;
  if (kKind == PairKind::forward && partial && first_of_head) {
    to_record[2 * a.width() + head] = work.most;
    to_record[2 * a.width() + a.heads + head] = work.total;
  }
#pragma unroll
  for (int n = 0; n < kChunks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t column = columns.at(n) + i;
      if (column >= columns.features) continue;
      const std::uint32_t in_row = head * a.features + column;
      const std::uint64_t at = std::uint64_t{row} * a.width() + in_row;
      if (partial) {
        to_record[in_row] = work.sum[n][i];
        if constexpr (kKind != PairKind::forward) to_record[a.width() + in_row] = work.last[n][i];
      } else if constexpr (kKind == PairKind::forward) {
        put_result(a.first + at, group.edges == 0 ? 0.0f : norm.here * work.sum[n][i], a.merge,
                   norm.before);
      } else {
        put_result(a.first + at, work.sum[n][i], a.merge);
        if (a.last != nullptr) put_result(a.last + at, work.last[n][i], a.merge);
      }
    }
}

// One block per cut row.
template <PairKind kKind>
__global__ void __launch_bounds__(kThreads)
    join_pair_records(const CutRow* rows, const __grid_constant__ PairView a) {
  const CutRow row = rows[blockIdx.x];
  if (row.count == 0) return;  // no row (RowGroups::take)
  const auto record = [&](std::uint32_t k) {
    return a.records + (std::uint64_t{row.first} + k) * a.record_size();
  };
  // A slice is worked on in one round. Its heads are its own but for the first and the last, whose
  // norms another slice may need, too: they are written when all slices are done.
  for (std::uint32_t first = 0; first < a.width(); first += kThreads) {
    const std::uint32_t column = first + threadIdx.x;
    if (column >= a.width()) continue;
    const std::uint64_t at = std::uint64_t{row.row} * a.width() + column;
    const std::uint32_t head = column / a.features;
    float sum = 0, last = 0;
    if constexpr (kKind == PairKind::forward) {
      float most = kLeastScore, total = 0;
      for (std::uint32_t k = 0; k < row.count; ++k)
        most = fmaxf(most, record(k)[2 * a.width() + head]);
      for (std::uint32_t k = 0; k < row.count; ++k) {
        const float factor = expf(record(k)[2 * a.width() + head] - most);
        sum = fmaf(factor, record(k)[column], sum);
        total = fmaf(factor, record(k)[2 * a.width() + a.heads + head], total);
      }
      const PairNorm norm(a, row.row, head, false, most, total);
      put_result(a.first + at, norm.here * sum, a.merge, norm.before);
    } else {
#pragma unroll 4
      for (std::uint32_t k = 0; k < row.count; ++k) {
        sum += record(k)[column];
        last += record(k)[a.width() + column];
      }
      put_result(a.first + at, sum, a.merge);
      if (a.last != nullptr) put_result(a.last + at, last, a.merge);
    }
  }
  if constexpr (kKind == PairKind::forward) {
    __syncthreads();  // all have read the norms that stand
    if (a.norms == nullptr) return;
    for (std::uint32_t head = threadIdx.x; head < a.heads; head += kThreads) {
      float most = kLeastScore, total = 0;
      for (std::uint32_t k = 0; k < row.count; ++k)
        most = fmaxf(most, record(k)[2 * a.width() + head]);
      for (std::uint32_t k = 0; k < row.count; ++k)
        total = fmaf(expf(record(k)[2 * a.width() + head] - most),
                     record(k)[2 * a.width() + a.heads + head], total);
      a.norms[std::uint64_t{row.row} * a.heads + head] =
          PairNorm(a, row.row, head, false, most, total).norm;
    }
  }
}

template <PairKind kKind, PairScore kScore, bool kValues>
void launch(PairView a, const RowGroups& groups, cudaStream_t stream) {
  if (groups.size() == 0) return;
  const Dropout dropout = a.dropped ? *a.dropout.step.dropout : Dropout(0, 0);
  const std::uint32_t fours = (a.features + 3) / 4;
  a.head_lanes = std::min<std::uint32_t>(std::bit_ceil(fours), kWarp);
  // An edge has kInFlight lanes or more, if need be for heads that there are not.
  a.slice_heads = std::clamp<std::uint32_t>(
      std::bit_ceil(a.heads), (kInFlight - 1) / a.head_lanes + 1, kWarp / a.head_lanes);
  const std::uint32_t lanes = a.slice_heads * a.head_lanes;
  const dim3 grid((groups.size() + kThreads / kWarp - 1) / (kThreads / kWarp),
                  (a.heads + a.slice_heads - 1) / a.slice_heads);
  const auto run = [&](auto of_edge, auto chunks) {
    pair_kernel<kKind, kScore, kValues, of_edge(), chunks()>
        <<<grid, kThreads, 0, stream>>>(a, dropout);
  };
  if (fours <= kWarp)
    for_lanes<kInFlight>(lanes,
                         [&](auto of_edge) { run(of_edge, std::integral_constant<int, 1>{}); });
  else if (fours <= 2 * kWarp)
    run(std::integral_constant<int, kWarp>{}, std::integral_constant<int, 2>{});
  else
    run(std::integral_constant<int, kWarp>{}, std::integral_constant<int, 4>{});
  if (groups.cut_size() > 0)
    join_pair_records<kKind><<<groups.cut_size(), kThreads, 0, stream>>>(groups.cut_rows(), a);
  check_cuda(cudaGetLastError(), "attention of pairs of rows");
}

template <PairKind kKind, PairScore kScore>
void launch(const PairView& a, const RowGroups& groups, cudaStream_t stream) {
  if constexpr (kKind == PairKind::backward)
    launch<kKind, kScore, true>(a, groups, stream);
  else
    a.second > 0 ? launch<kKind, kScore, true>(a, groups, stream)
                 : launch<kKind, kScore, false>(a, groups, stream);
}

// Makes the part of the view that the operations have in common, and runs it.
template <PairKind kKind, class Args>
void run(PairView view, const Args& args, const EdgePass& pass, cudaStream_t stream) {
  require<UsageError>(args.edges.x.peers == nullptr, "attention on a GPU reads no rows of peers");
  if (args.shape.width() == 0) return;
  const RowGroups& groups = pass.groups();
  view.groups = groups.groups();
  view.partial_rows = groups.partial_rows();
  view.group_count = groups.size();
  view.merge = !pass.first();
  view.in_passes = pass.all.size() > 1;
  view.row_begin = args.edges.begin.data();
  view.row_end = args.edges.end.data();
  view.columns = args.edges.columns;
  view.x = args.edges.x.base;
  view.x_stride = args.edges.x.stride;
  view.heads = static_cast<std::uint32_t>(args.shape.heads);
  view.features = static_cast<std::uint32_t>(args.shape.features);
  view.head_stride = static_cast<std::uint32_t>(args.shape.head_stride());
  view.slope = args.shape.slope;
  view.f = args.shape.score == PairScore::leaky ? args.f : nullptr;
  view.dropped = args.dropout.step.active();
  view.dropout = args.dropout;
  args.shape.score == PairScore::product ? launch<kKind, PairScore::product>(view, groups, stream)
                                         : launch<kKind, PairScore::leaky>(view, groups, stream);
}

std::uint64_t record_floats(std::span<const RowGroups> passes, const PairShape& shape) {
  require<UsageError>(shape.features <= kMostPairFeatures,
                      "{} features per head of attention on a GPU are more than {}", shape.features,
                      kMostPairFeatures);
  return most_partial_sums(passes) * 2 * (shape.width() + shape.heads);
}

}  // namespace

std::uint64_t scratch_floats(const PairForward& args, std::span<const RowGroups> passes) {
  // Also where norms are kept elsewhere: operations of one kind take their scratch once.
  const std::uint64_t norms = passes.size() > 1 ? args.edges.begin.size() * args.shape.heads : 0;
  return record_floats(passes, args.shape) + norms;
}
std::uint64_t scratch_floats(const PairOwnGradient& args, std::span<const RowGroups> passes) {
  return record_floats(passes, args.shape);
}
std::uint64_t scratch_floats(const PairBackward& args, std::span<const RowGroups> passes) {
  return record_floats(passes, args.shape);
}

void apply(const PairForward& args, const EdgePass& pass, float* scratch, cudaStream_t stream) {
  PairView view{};
  view.second = static_cast<std::uint32_t>(args.shape.values());
  view.q = args.q;
  view.first = args.y;
  view.norms = args.norm;
  if (args.norm == nullptr && pass.all.size() > 1)
    view.norms = scratch + record_floats(pass.all, args.shape);
  view.records = scratch;
  run<PairKind::forward>(view, args, pass, stream);
}

void apply(const PairOwnGradient& args, const EdgePass& pass, float* scratch, cudaStream_t stream) {
  PairView view{};
  view.second = static_cast<std::uint32_t>(args.shape.values());
  view.q = args.q;
  view.other = args.dy;
  view.norm = args.norm;
  view.c = args.c;
  view.first = args.dq;
  view.last = args.df;
  view.records = scratch;
  run<PairKind::own>(view, args, pass, stream);
}

void apply(const PairBackward& args, const EdgePass& pass, float* scratch, cudaStream_t stream) {
  PairView view{};
  view.second = static_cast<std::uint32_t>(args.shape.part());
  view.tail = static_cast<std::uint32_t>(2 * args.shape.part());
  view.q = args.p;
  view.other = args.v;
  view.first = args.dp;
  view.last = args.dv;
  view.records = scratch;
  run<PairKind::backward>(view, args, pass, stream);
}

}  // namespace plait
