// The extremum over neighbours on the GPU: one warp per neighbour group (warp_edges.cuh). The
// groups of a cut row leave records, which a second kernel joins in order. A pass after the first
// adds its results to those that stand.
#include "plait/base/error.h"
#include "plait/kernels/cuda/extremum.cuh"
#include "plait/kernels/cuda/warp_edges.cuh"
#include "plait/kernels/extremum_rule.h"

namespace plait {
namespace {

struct View {
  const RowGroup* groups;
  const std::uint32_t* partial_rows;
  std::uint32_t group_count, width;
  bool merge;                             // results of earlier passes stand
  const EdgeOffset *row_begin, *row_end;  // all edges of each row, of whatever pass
  const Slot* columns;
  const float* x;
  std::uint64_t x_stride;
  std::uint32_t half;  // backward: floats from y to dy
  const float* own;    // backward: what forward has read
  float* result;       // y or dx
  float* ties;         // forward, or null
  float* records;      // of groups of cut rows, 2 x width: [extreme | ties] or [sum | not used]
};

// The extreme values and their ties.
template <int kVec, Extremum kWhich>
struct Extremes {
  using One = Extreme<kWhich>;
  One extreme[kVec];

  __device__ Extremes(const View&, std::uint32_t, std::uint32_t) {
#pragma unroll
    for (One& one : extreme) one = One::of_nothing();
  }
  // The numbers of a row of x in the lane's columns.
  struct Read {
    Floats<kVec> x;
  };
  static __device__ Read read(const View&, const float* row) { return {Floats<kVec>::load(row)}; }
  __device__ void add(const Read& read) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) extreme[i].add(read.x.value[i]);
  }
  __device__ void add_lane(int distance) {
#pragma unroll
    for (One& one : extreme) {
      const float value = __shfl_xor_sync(kAll, one.value, distance);
      one.add(value, __shfl_xor_sync(kAll, one.ties, distance));
    }
  }
  __device__ void add_record(const View& a, const float* record) {
    extreme[0].add(record[0], record[a.width]);
  }
  __device__ void put_record(const View& a, float* record, int i) const {
    record[i] = extreme[i].value;
    record[a.width + i] = extreme[i].ties;
  }
  // A row whose edges are all in other passes stands as the extremum of nothing, without ties.
  __device__ void finish(const View& a, std::uint32_t row, std::uint32_t column, bool empty,
                         int i) const {
    const std::uint64_t at = std::uint64_t{row} * a.width + column;
    One one = extreme[i];
    if (a.merge) one.add(a.result[at], a.ties != nullptr ? a.ties[at] : 0.0f);
    if (empty && a.row_begin[row] == a.row_end[row]) one.value = 0;
    a.result[at] = one.value;
    if (a.ties != nullptr) a.ties[at] = one.ties;
  }
};

template <int kVec>
using Greatest = Extremes<kVec, Extremum::greatest>;
template <int kVec>
using Least = Extremes<kVec, Extremum::least>;

// The sums of the gradients of those extrema that the row's own values reach.
template <int kVec>
struct Gradient {
  float own[kVec], sum[kVec] = {};

  __device__ Gradient(const View& a, std::uint32_t row, std::uint32_t column) {
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      own[i] = column + i < a.width ? a.own[std::uint64_t{row} * a.width + column + i] : 0.0f;
  }
  struct Read {
    Floats<kVec> y, dy;
  };
  static __device__ Read read(const View& a, const float* row) {
    return {Floats<kVec>::load(row), Floats<kVec>::load(row + a.half)};
  }
  __device__ void add(const Read& read) {
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      sum[i] += reaches(own[i], read.y.value[i]) ? read.dy.value[i] : 0.0f;
  }
  __device__ void add_lane(int distance) {
#pragma unroll
    for (float& one : sum) one += __shfl_xor_sync(kAll, one, distance);
  }
  __device__ void add_record(const View&, const float* record) { sum[0] += record[0]; }
  __device__ void put_record(const View&, float* record, int i) const { record[i] = sum[i]; }
  __device__ void finish(const View& a, std::uint32_t row, std::uint32_t column, bool,
                         int i) const {
    const std::uint64_t at = std::uint64_t{row} * a.width + column;
    a.result[at] = a.merge ? a.result[at] + sum[i] : sum[i];
  }
};

template <template <int> class Kind, int kVec, int kLanes>
__global__ void __launch_bounds__(kThreads) extremum_kernel(const __grid_constant__ View a) {
  const std::uint32_t number = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (number >= a.group_count) return;
  const RowGroup group = a.groups[number];
  const bool partial = (group.target & RowGroup::kPartial) != 0;
  const std::uint32_t record = group.target & ~RowGroup::kPartial;
  const std::uint32_t row = partial ? a.partial_rows[record] : group.target;
  const int lane = threadIdx.x % kWarp;
  const std::uint32_t column = (blockIdx.y * kLanes + lane % kLanes) * kVec;
  const bool inside =
      column < a.width;  // lanes beyond the width read the first columns, for nothing
  const float* const x = a.x + (inside ? column : 0);
  using State = Kind<kVec>;

  State state(a, row, inside ? column : 0);
  for_edges<kLanes>(group, a.columns, NoMark{}, [&](const EdgeBatch& batch) {
    typename State::Read read[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)  // without an edge, row 0 is read for nothing
      read[k] = State::read(a, x + std::uint64_t{batch.slot[k]} * a.x_stride);
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (batch.there[k]) state.add(read[k]);
  });
#pragma unroll
  for (int distance = kLanes; distance < kWarp; distance *= 2) state.add_lane(distance);

  if (lane >= kLanes) return;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (column + i >= a.width) continue;
    if (partial)
      state.put_record(a, a.records + record * kExtremumRecord * a.width + column, i);
    else
      state.finish(a, row, column + i, group.edges == 0, i);
  }
}

// One block per cut row.
template <template <int> class Kind>
__global__ void __launch_bounds__(kThreads)
    join_records(const CutRow* rows, const __grid_constant__ View a) {
  const CutRow row = rows[blockIdx.x];
  if (row.count == 0) return;  // no row (RowGroups::take)
  for (std::uint32_t column = threadIdx.x; column < a.width; column += kThreads) {
    Kind<1> state(a, row.row, column);
#pragma unroll 4
    for (std::uint32_t k = 0; k < row.count; ++k)
      state.add_record(a, a.records + (row.first + k) * kExtremumRecord * a.width + column);
    state.finish(a, row.row, column, false, 0);
  }
}

// `vectors`: true if rows of edges.x can be read four floats at a time.
template <template <int> class Kind>
void launch(View a, const EdgeRows& edges, const EdgePass& pass, bool vectors,
            cudaStream_t stream) {
  require<UsageError>(edges.x.peers == nullptr, "extrema on a GPU read no rows of peers");
  const RowGroups& groups = pass.groups();
  if (groups.size() == 0 || a.width == 0) return;
  a.groups = groups.groups();
  a.partial_rows = groups.partial_rows();
  a.group_count = groups.size();
  a.merge = !pass.first();
  a.row_begin = edges.begin.data();
  a.row_end = edges.end.data();
  a.columns = edges.columns;
  a.x = edges.x.base;
  a.x_stride = edges.x.stride;
  with_lanes(vectors && on_16_bytes(a.x, a.x_stride), a.width, [&](auto vec, auto lanes) {
    constexpr int kVec = decltype(vec)::value, kLanes = decltype(lanes)::value;
    extremum_kernel<Kind, kVec, kLanes>
        <<<grid_of<kVec, kLanes>(a.group_count, a.width), kThreads, 0, stream>>>(a);
  });
  if (groups.cut_size() > 0)
    join_records<Kind><<<groups.cut_size(), kThreads, 0, stream>>>(groups.cut_rows(), a);
  check_cuda(cudaGetLastError(), "the extremum over neighbours");
}

}  // namespace

std::uint64_t scratch_floats(const ExtremumForward& args, std::span<const RowGroups> passes) {
  return most_partial_sums(passes) * kExtremumRecord * args.width;
}
std::uint64_t scratch_floats(const ExtremumBackward& args, std::span<const RowGroups> passes) {
  return most_partial_sums(passes) * kExtremumRecord * args.width;
}

void apply(const ExtremumForward& args, const EdgePass& pass, float* scratch, cudaStream_t stream) {
  View view{};
  view.width = static_cast<std::uint32_t>(args.width);
  view.result = args.y;
  view.ties = args.ties;
  view.records = scratch;
  // Padding up to the next four floats is read too.
  const bool vectors = (args.width + 3) / 4 * 4 <= args.edges.x.stride;
  if (args.which == Extremum::greatest)
    launch<Greatest>(view, args.edges, pass, vectors, stream);
  else
    launch<Least>(view, args.edges, pass, vectors, stream);
}

void apply(const ExtremumBackward& args, const EdgePass& pass, float* scratch,
           cudaStream_t stream) {
  View view{};
  view.width = static_cast<std::uint32_t>(args.width);
  view.half = static_cast<std::uint32_t>(row_stride(args.width));
  view.own = args.x;
  view.result = args.dx;
  view.records = scratch;
  launch<Gradient>(view, args.edges, pass, view.half % 4 == 0, stream);
}

}  // namespace plait
