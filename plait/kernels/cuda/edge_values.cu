// Values of edges on the GPU.
//
//   - Sums give each lane columns of its own, as attention.cu does; groups of cut rows leave
//     partial sums, which spmm_partial_sums.cu adds.
//   - Scores give a few lanes one head of one edge each. The row of a stands in a cache, since all
//     edges of a group read the same one.
//   - Rows, one per edge, are written by lanes that take the columns of all edges one after the
//     other, so that none is idle where rows are narrow.
//   - Softmax is in edge_softmax.cuh.
#include <algorithm>

#include "plait/base/error.h"
#include "plait/kernels/cuda/edge_softmax.cuh"
#include "plait/kernels/cuda/edge_values.h"
#include "plait/kernels/cuda/spmm_partial_sums.cuh"
#include "plait/kernels/cuda/warp_edges.cuh"
#include "plait/kernels/edge_term.h"
#include "plait/kernels/row_cut.h"

namespace plait {
namespace {

// Heads of scores: a group has at most 2^19 edges, so that its pairs of an edge and a head are
// counted in 32 bits.
constexpr std::uint64_t kMostHeads = 1 << 12;

struct View {
  EdgeLists lists;
  std::uint32_t heads, features, width;
  const float* a;
  const float* b;
  const float* m;
  const float* factor;
  const float* weights;
  float slope;
  float* out;
  float* partial_sums;  // one row of `width` per group of a cut row
};

// The columns of `a` and of `factor` of one place in the rows.
template <EdgeTerm kTerm, int kVec>
struct Columns {
  Floats<kVec> a{}, factor{};

  __device__ Columns(const View& v, std::uint32_t row, std::uint32_t column) {
    if constexpr (reads_a(kTerm))
      a = Floats<kVec>::load(v.a + std::uint64_t{row} * v.width + column);
    if constexpr (reads_factor(kTerm)) factor = Floats<kVec>::load(v.factor + column);
  }
  // Returns the terms of an edge.
  __device__ Floats<kVec> terms(const View& v, const Floats<kVec>& b, const Floats<kVec>& m) const {
    Floats<kVec> t;
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      t.value[i] = term_of<kTerm>(a.value[i], b.value[i], m.value[i], factor.value[i], v.slope);
    return t;
  }
};

template <int kVec>
__device__ Floats<kVec> row_of(const float* rows, std::uint64_t row, const View& v,
                               std::uint32_t column) {
  return rows == nullptr ? Floats<kVec>{} : Floats<kVec>::load(rows + row * v.width + column);
}

template <int kVec>
__device__ void put(float* to, const Floats<kVec>& values) {
  if constexpr (kVec == 4)
    *reinterpret_cast<float4*>(to) = {values.value[0], values.value[1], values.value[2],
                                      values.value[3]};
  else
    *to = values.value[0];
}

// Tells each lane that works on an edge the edge's number in the caller's order.
struct PlaceOf {
  const std::uint32_t* place;
  __device__ std::uint32_t operator()(Slot, EdgeOffset edge) const { return __ldcs(place + edge); }
};

template <EdgeTerm kTerm, int kVec, int kLanes>
__global__ void __launch_bounds__(kThreads) sum_terms(const __grid_constant__ View v) {
  const EdgeGroup mine(v.lists);
  if (!mine.there) return;
  const int lane = threadIdx.x % kWarp;
  const std::uint32_t column = (blockIdx.y * kLanes + lane % kLanes) * kVec;
  const bool inside = column < v.width;  // other lanes read the first columns, for nothing
  const std::uint32_t here = inside ? column : 0, head = here / v.features;
  const Columns<kTerm, kVec> columns(v, mine.row, here);

  Floats<kVec> sum{};
  for_edges<kLanes>(
      mine.group, v.lists.columns, PlaceOf{v.lists.place}, [&](const EdgeBatch& batch) {
        Floats<kVec> b[kInFlight], m[kInFlight];
        float weight[kInFlight];
#pragma unroll
        for (int k = 0; k < kInFlight; ++k) {
          b[k] = m[k] = {};
          weight[k] = 0;
          if (!batch.there[k]) continue;
          const std::uint64_t place = batch.mark[k];
          if constexpr (reads_b(kTerm)) b[k] = row_of<kVec>(v.b, batch.slot[k], v, here);
          m[k] = row_of<kVec>(v.m, place, v, here);
          weight[k] = v.weights == nullptr ? 1.0f : __ldg(v.weights + place * v.heads + head);
        }
#pragma unroll
        for (int k = 0; k < kInFlight; ++k) {
          if (!batch.there[k]) continue;
          const Floats<kVec> t = columns.terms(v, b[k], m[k]);
#pragma unroll
          for (int i = 0; i < kVec; ++i) sum.value[i] = fmaf(weight[k], t.value[i], sum.value[i]);
        }
      });
#pragma unroll
  for (int distance = kLanes; distance < kWarp; distance *= 2)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum.value[i] += __shfl_xor_sync(kAll, sum.value[i], distance);

  if (lane >= kLanes || !inside) return;
  const std::uint64_t row = mine.partial ? mine.record : mine.row;
  put((mine.partial ? v.partial_sums : v.out) + row * v.width + here, sum);
}

// kLanes lanes work on one head of one edge.
template <EdgeTerm kTerm, int kVec, int kLanes>
__global__ void __launch_bounds__(kThreads) score_terms(const __grid_constant__ View v) {
  constexpr std::uint32_t kAtOnce = kWarp / kLanes;
  const EdgeGroup mine(v.lists);
  if (!mine.there) return;
  const std::uint32_t lane = threadIdx.x % kWarp, part = lane % kLanes * kVec;
  const std::uint32_t pairs = mine.group.edges * v.heads;
  for (std::uint32_t first = 0; first < pairs; first += kAtOnce * kInFlight) {
    std::uint64_t slot[kInFlight], place[kInFlight];
    std::uint32_t head[kInFlight];
    float sum[kInFlight] = {};
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint32_t pair = min(first + k * kAtOnce + lane / kLanes, pairs - 1);
      const EdgeOffset edge = mine.group.begin + pair / v.heads;
      slot[k] = __ldg(v.lists.columns + edge);
      place[k] = __ldg(v.lists.place + edge);
      head[k] = pair % v.heads;
    }
    for (std::uint32_t column = part; column < v.features; column += kLanes * kVec) {
      Floats<kVec> b[kInFlight], m[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        b[k] = row_of<kVec>(v.b, slot[k], v, head[k] * v.features + column);
        m[k] = row_of<kVec>(v.m, place[k], v, head[k] * v.features + column);
      }
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        const Columns<kTerm, kVec> columns(v, mine.row, head[k] * v.features + column);
        const Floats<kVec> t = columns.terms(v, b[k], m[k]);
#pragma unroll
        for (int i = 0; i < kVec; ++i) sum[k] += t.value[i];
      }
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
#pragma unroll
      for (int distance = 1; distance < kLanes; distance *= 2)
        sum[k] += __shfl_xor_sync(kAll, sum[k], distance);
      if (part == 0 && first + k * kAtOnce + lane / kLanes < pairs)
        v.out[place[k] * v.heads + head[k]] = sum[k];
    }
  }
}

template <EdgeTerm kTerm, int kVec>
__global__ void __launch_bounds__(kThreads) row_of_terms(const __grid_constant__ View v) {
  const EdgeGroup mine(v.lists);
  if (!mine.there) return;
  const std::uint32_t pieces = v.width / kVec;  // of a row
  const std::uint64_t all = std::uint64_t{mine.group.edges} * pieces;
  for (std::uint64_t i = threadIdx.x % kWarp; i < all; i += kWarp) {
    const auto in_group = static_cast<std::uint32_t>(i / pieces);
    const std::uint32_t column = (static_cast<std::uint32_t>(i) - in_group * pieces) * kVec;
    const EdgeOffset edge = mine.group.begin + in_group;
    const std::uint64_t place = __ldg(v.lists.place + edge);
    const float weight =
        v.weights == nullptr ? 1.0f : __ldg(v.weights + place * v.heads + column / v.features);
    const Columns<kTerm, kVec> columns(v, mine.row, column);
    Floats<kVec> b{};
    if constexpr (reads_b(kTerm)) b = row_of<kVec>(v.b, __ldg(v.lists.columns + edge), v, column);
    Floats<kVec> t = columns.terms(v, b, row_of<kVec>(v.m, place, v, column));
#pragma unroll
    for (int k = 0; k < kVec; ++k) t.value[k] *= weight;
    put(v.out + place * v.width + column, t);
  }
}

}  // namespace

struct GpuEdgeGroups::Groups {
  RowGroups of;

  EdgeLists lists(const EdgeRows& edges, const std::uint32_t* place) const {
    return {of.groups(), of.partial_rows(), of.size(), edges.columns, place};
  }
  bool nothing_to_do(std::uint64_t width) const { return of.size() == 0 || width == 0; }
  View view(const EdgeValues& args, float* out, float* partial_sums) const {
    constexpr std::uint64_t kMost = 1 << 16;
    require<UsageError>(args.width() < kMost, "rows of {} floats on a GPU are not below {}",
                        args.width(), kMost);
    return {.lists = lists(args.edges, args.place),
            .heads = static_cast<std::uint32_t>(args.heads),
            .features = static_cast<std::uint32_t>(args.features),
            .width = static_cast<std::uint32_t>(args.width()),
            .a = args.a,
            .b = args.edges.x.base,
            .m = args.m,
            .factor = args.factor,
            .weights = args.weights,
            .slope = args.slope,
            .out = out,
            .partial_sums = partial_sums};
  }
};

namespace {

// Tells whether all rows can be read four floats at a time, each four from one head.
bool in_vectors(const View& v) {
  return v.features % 4 == 0 && on_16_bytes(v.a) && on_16_bytes(v.b) && on_16_bytes(v.m) &&
         on_16_bytes(v.factor) && on_16_bytes(v.out);
}

}  // namespace

GpuEdgeGroups::GpuEdgeGroups(const EdgeOffset* begin, std::uint64_t rows, EdgeOffset edges,
                             void* stream)
    : groups_(std::make_unique<const Groups>(
          Groups{RowGroups(begin, begin + 1, rows, {.most = group_size(edges, rows)},
                           static_cast<cudaStream_t>(stream))})) {}

GpuEdgeGroups::~GpuEdgeGroups() = default;

std::uint64_t GpuEdgeGroups::scratch_of_sums(std::uint64_t width) const {
  return groups_->of.partial_sums() * width;
}
std::uint64_t GpuEdgeGroups::scratch_of_softmax(std::uint64_t heads) const {
  return groups_->of.partial_sums() * 2 * heads;
}

void GpuEdgeGroups::scores(const EdgeValues& args, float* z, void* stream) const {
  require<UsageError>(args.heads <= kMostHeads, "{} heads on a GPU are more than {}", args.heads,
                      kMostHeads);
  const View v = groups_->view(args, z, nullptr);
  if (groups_->nothing_to_do(args.width())) return;
  const unsigned blocks = (groups_->of.size() + kWarpsOfBlock - 1) / kWarpsOfBlock;
  with_score(args.term, [&](auto term) {
    const auto launch = [&](auto vec) {
      for_lanes<1>((args.features + vec - 1) / vec, [&](auto lanes) {
        score_terms<term(), vec(), lanes()>
            <<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(v);
      });
    };
    in_vectors(v) ? launch(std::integral_constant<int, 4>{})
                  : launch(std::integral_constant<int, 1>{});
  });
  check_cuda(cudaGetLastError(), "scores of edges");
}

void GpuEdgeGroups::sums(const EdgeValues& args, float* y, float* scratch, void* stream) const {
  const View v = groups_->view(args, y, scratch);
  if (groups_->nothing_to_do(args.width())) return;
  const auto on = static_cast<cudaStream_t>(stream);
  with_sum(args.term, [&](auto term) {
    with_lanes(in_vectors(v), v.width, [&](auto vec, auto lanes) {
      sum_terms<term(), vec(), lanes()>
          <<<grid_of<vec(), lanes()>(groups_->of.size(), v.width), kThreads, 0, on>>>(v);
    });
  });
  check_cuda(cudaGetLastError(), "sums over edges");
  if (groups_->of.cut_size() == 0) return;
  SpmmView joined{};
  joined.width = joined.y_stride = joined.partial_stride = v.width;
  joined.y = y;
  joined.partial_sums = scratch;
  add_partial_sums(joined, cut_rows_of(groups_->of), DType::f32, on);
}

void GpuEdgeGroups::rows(const EdgeValues& args, float* r, void* stream) const {
  const View v = groups_->view(args, r, nullptr);
  if (groups_->nothing_to_do(args.width())) return;
  const unsigned blocks = (groups_->of.size() + kWarpsOfBlock - 1) / kWarpsOfBlock;
  with_row(args.term, [&](auto term) {
    const auto launch = [&](auto vec) {
      row_of_terms<term(), vec()><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(v);
    };
    in_vectors(v) ? launch(std::integral_constant<int, 4>{})
                  : launch(std::integral_constant<int, 1>{});
  });
  check_cuda(cudaGetLastError(), "rows of edges");
}

void GpuEdgeGroups::softmax(const EdgeSoftmax& args, float* p, float* scratch, void* stream) const {
  if (groups_->nothing_to_do(args.heads)) return;
  const EdgeSoftmaxView v{groups_->lists(args.edges, args.place),
                          static_cast<std::uint32_t>(args.heads),
                          args.z,
                          args.dp,
                          p,
                          scratch};
  const auto on = static_cast<cudaStream_t>(stream);
  args.dp == nullptr ? launch_softmax<false>(v, groups_->of, on)
                     : launch_softmax<true>(v, groups_->of, on);
  check_cuda(cudaGetLastError(), "softmax over edges");
}

}  // namespace plait
