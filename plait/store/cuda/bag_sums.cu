// Sums of short bags read rows at random: their speed is that of memory, if enough rows are on
// their way at once. A group of lanes works on bags that stand one behind the other, each lane on
// columns of its own: 16 bytes per row if rows allow it. The group reads the ids of all its bags as
// one stream, as many at once as a warp has lanes, and the next ones before they are needed,
// because ids of other ranks' bags come over the link. It loads kBatch rows before it adds the
// first of them, whichever bags they are of; ids are added in their order, so that sums do not
// depend on the groups. At 32 warps per SM, 32 x 8 rows of 512 bytes are on their way, more than
// the memory of an H200 needs. One kernel sums for all readers, so that no reader's last bags leave
// the GPU idle. Sums for other ranks are stored straight into their memory: no copy on this side.
#include <algorithm>

#include "plait/base/cuda/warp.cuh"
#include "plait/store/bag_maxima.h"
#include "plait/store/cuda/bag_sums.cuh"

namespace plait {
namespace {

// Rows on their way per group: as many bytes of each type of numbers.
template <class T>
constexpr int kBatch = 8 * sizeof(float) / sizeof(T);

template <class T, int kVec>
struct alignas(kVec * sizeof(T)) Columns {
  T value[kVec];
};

// Returns the place in BagSums::parts of the row of a rank and a bag.
__device__ std::uint64_t part_of(const DevicePieces& pieces, const DevicePiece& piece,
                                 const DeviceBags& bags, int rank, std::uint64_t b) {
  const std::uint64_t part = std::uint64_t{piece.divided} * pieces.ranks + rank;
  return (part * bags.per_table + b) * pieces.width;
}
// Returns the place in BagSums::whole of the first column of a piece.
__device__ std::uint64_t whole_of(const DevicePieces& pieces, const DevicePiece& piece,
                                  const BagPlace& at) {
  return (at.b * pieces.tables + at.t) * pieces.width + piece.first_column;
}

// A group of lanes.
template <int kLanes>
struct Group {
  unsigned lane = threadIdx.x % kLanes;
  unsigned mask = kLanes == kWarp
                      ? kAll
                      : ((1u << kLanes % kWarp) - 1) << threadIdx.x % kWarp / kLanes * kLanes;

  template <class Number>
  __device__ Number from(Number value, unsigned of_lane) const {
    return __shfl_sync(mask, value, static_cast<int>(of_lane), kLanes);
  }
  // Returns one bit per lane.
  __device__ unsigned ballot(bool of_lane) const {
    return (__ballot_sync(mask, of_lane) & mask) >> threadIdx.x % kWarp / kLanes * kLanes;
  }
  // Returns the bits that any lane has.
  __device__ unsigned any_bits(unsigned of_lane) const { return __reduce_or_sync(mask, of_lane); }
};

// As many ids of the stream of a group as a warp has lanes: lane l has ids l, kLanes + l, ...
template <int kLanes>
struct StreamedIds {
  static constexpr int kOfLane = kWarp / kLanes;
  Slot id[kOfLane];
  float weight[kOfLane];

  __device__ void load(const DeviceBags& bags, EdgeOffset first, EdgeOffset end) {
#pragma unroll
    for (int p = 0; p < kOfLane; ++p) {
      const EdgeOffset e = first + p * kLanes;
      id[p] = e < end ? bags.ids[e] : kNoRow;
      weight[p] = e < end && bags.weights != nullptr ? bags.weights[e] : 1.0f;
    }
  }
};

// The sum of the bag that a group is at, in a lane's columns.
template <class T, int kVec>
struct BagSum {
  Columns<float, kVec> sum{};
  std::uint32_t counted = 0;  // ids that are no padding
  bool any = false;           // one of them names a row of this rank

  __device__ void add(const Columns<T, kVec>& row, float weight) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum.value[i] = fmaf(weight, widened(row.value[i]), sum.value[i]);
  }
  __device__ void store(const DevicePieces& pieces, const DevicePiece& piece, const BagWork& work,
                        std::uint64_t b, std::uint64_t c) {
    const bool in_parts = piece.split == EmbeddingSplit::rows;
    if (c < piece.columns && (any || !in_parts)) {
      if (pieces.mode == BagMode::mean) {
        const float share = 1.0f / static_cast<float>(max(counted, 1u));
#pragma unroll
        for (int i = 0; i < kVec; ++i) sum.value[i] *= share;
      }
      float* const row = in_parts
                             ? work.to.parts + part_of(pieces, piece, work.bags, pieces.rank, b)
                             : work.to.whole + whole_of(pieces, piece, {work.table, b, 0, 0});
      *reinterpret_cast<Columns<float, kVec>*>(row + c) = sum;
    }
    *this = {};
  }
};

// Sums the bags of a group in columns c .. c + kVec - 1 of each lane.
template <class T, int kLanes, int kVec>
class BagStream {
 public:
  // `offset` of lane k: where bag k of the group begins, or the last one ends.
  __device__ BagStream(const DevicePieces& pieces, const DevicePiece& piece, const BagWork& work,
                       std::uint64_t first_bag, unsigned bags, EdgeOffset offset, std::uint64_t c)
      : pieces_(pieces),
        piece_(piece),
        work_(work),
        first_bag_(first_bag),
        bags_(bags),
        offset_(offset),
        c_(c),
        has_columns_(c < piece.columns),
        first_column_(static_cast<const std::byte*>(piece.rows) + c * sizeof(T)),
        stride_(static_cast<std::uint32_t>(piece.columns * sizeof(T))) {}

  __device__ void sum() {
    EdgeOffset e = group_.from(offset_, 0);
    const EdgeOffset end = group_.from(offset_, bags_);
    bag_end_ = group_.from(offset_, 1);
    StreamedIds<kLanes> next;
    next.load(work_.bags, e + group_.lane, end);
    while (e < end) {
      const StreamedIds<kLanes> ids = next;
      next.load(work_.bags, e + kWarp + group_.lane, end);
      const unsigned ends = ends_from(e);
#pragma unroll
      for (int p = 0; p < ids.kOfLane; ++p, e += kLanes)
        if (e < end) add(ids.id[p], ids.weight[p], e, end, ends >> p * kLanes % kWarp);
    }
    while (bag_ < bags_) end_bag();
  }

 private:
  static constexpr int kRows = kBatch<T> < kLanes ? kBatch<T> : kLanes;
  using Row = Columns<T, kVec>;

  // Returns bit k if a bag ends before id e + k, of as many ids as a warp has lanes.
  __device__ unsigned ends_from(EdgeOffset e) const {
    const bool is_end = group_.lane > 0 && group_.lane <= bags_ && offset_ >= e;
    return group_.any_bits(is_end && offset_ - e < kWarp ? 1u << (offset_ - e) : 0u);
  }
  // Adds the rows of ids e .. e + kLanes - 1, as far as there are so many: one id per lane. Most
  // batches of long bags are of one bag, and this rank has all their rows.
  __device__ void add(Slot id, float weight, EdgeOffset e, EdgeOffset end, unsigned ends) {
    constexpr unsigned kFull = (1u << kRows) - 1;
    const Slot own = own_row(pieces_, piece_, id);
    const unsigned counts = group_.ballot(id != kNoRow), rows = group_.ballot(own != kNoRow);
    const auto here = static_cast<unsigned>(min(end - e, EdgeOffset{kLanes}));
    for (unsigned j = 0; j < here; j += kRows) {
      const bool whole = (rows >> j & kFull) == kFull && (ends >> j & kFull) == 0;
      Row loaded[kRows];
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const Slot row = group_.from(own, j + k);
        loaded[k] = {};
        if (has_columns_ && (whole || row != kNoRow)) loaded[k] = row_at(row);
      }
      if (whole) {
        add_all(loaded, weight, j);
        continue;
      }
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const float of_id = group_.from(weight, j + k);
        if (j + k >= here) break;
        if (ends >> (j + k) & 1)
          while (e + j + k == bag_end_) end_bag();
        at_.counted += counts >> (j + k) & 1;
        if ((rows >> (j + k) & 1) == 0) continue;
        at_.any = true;
        at_.add(loaded[k], of_id);
      }
    }
  }
  __device__ void add_all(const Row (&loaded)[kRows], float weight, unsigned j) {
    at_.counted += kRows;
    at_.any = true;
    const bool weighted = work_.bags.weights != nullptr;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      at_.add(loaded[k], weighted ? group_.from(weight, j + k) : 1.0f);
  }
  __device__ Row row_at(Slot row) const {
    return *reinterpret_cast<const Row*>(first_column_ + std::uint64_t{row} * stride_);
  }
  __device__ void end_bag() {
    at_.store(pieces_, piece_, work_, first_bag_ + bag_, c_);
    bag_end_ = group_.from(offset_, min(++bag_ + 1, bags_));
  }

  const DevicePieces& pieces_;
  const DevicePiece& piece_;
  const BagWork& work_;
  const std::uint64_t first_bag_;
  const unsigned bags_;
  const EdgeOffset offset_;
  const std::uint64_t c_;
  const bool has_columns_;
  const std::byte* const first_column_;  // of row 0, of this lane
  const std::uint32_t stride_;           // bytes of a row
  const Group<kLanes> group_ = {};
  EdgeOffset bag_end_ = 0;
  unsigned bag_ = 0;
  BagSum<T, kVec> at_ = {};
};

template <class T, int kLanes, int kVec>
__device__ void sum_group(const DevicePieces& pieces, const DevicePiece& piece,
                          const BagWork& work) {
  const std::uint64_t group =
      ((blockIdx.x - work.first_block) * std::uint64_t{kBagThreads} + threadIdx.x) / kLanes;
  const std::uint64_t first = group * work.bags_of_group;
  if (first >= work.bags.per_table) return;
  const auto bags =
      static_cast<unsigned>(min(work.bags.per_table - first, std::uint64_t{work.bags_of_group}));
  const unsigned lane = threadIdx.x % kLanes;
  const EdgeOffset offset =
      work.bags.offsets[work.table * work.bags.per_table + first + min(lane, bags)];
  for (std::uint64_t c = 0; c < piece.columns; c += kLanes * kVec)
    BagStream<T, kLanes, kVec>(pieces, piece, work, first, bags, offset, c + lane * kVec).sum();
}

template <class T, int kVec>
__global__ void __launch_bounds__(kBagThreads)
    sum_kernel(const __grid_constant__ DevicePieces pieces, const BagWork* works, unsigned count) {
  int before = 0;  // works that begin at this block or before
  for (unsigned first = 0; first < count; first += kBagThreads) {
    const unsigned k = first + threadIdx.x;
    before += __syncthreads_count(k < count && works[k].first_block <= blockIdx.x);
  }
  const BagWork work = works[before - 1];
  const DevicePiece piece = pieces.at[work.table];
  switch (work.lanes) {
    case 8:
      return sum_group<T, 8, kVec>(pieces, piece, work);
    case 16:
      return sum_group<T, 16, kVec>(pieces, piece, work);
    default:
      return sum_group<T, kWarp, kVec>(pieces, piece, work);
  }
}

template <class T, int kLanes>
__global__ void __launch_bounds__(kBagThreads)
    maxima_kernel(const __grid_constant__ DevicePieces pieces,
                  const __grid_constant__ DeviceBags bags, bool own,
                  const __grid_constant__ BagSums to) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const DevicePiece piece = pieces.at[at.t];
  if (piece.columns == 0 || (piece.split == EmbeddingSplit::replicated && !own)) return;
  const bool in_parts = piece.split == EmbeddingSplit::rows;
  const std::uint64_t first =
      in_parts ? part_of(pieces, piece, bags, pieces.rank, at.b) : whole_of(pieces, piece, at);
  for (std::uint64_t c = threadIdx.x % kLanes; c < piece.columns; c += kLanes) {
    Placed most;
    for (EdgeOffset e = at.begin; e < at.end; ++e) {
      const Slot row = own_row(pieces, piece, bags.ids[e]);
      if (row != kNoRow)
        most.take({widened(row_of<T>(piece, row)[c]), static_cast<Slot>(e - at.begin)});
    }
    if (in_parts && most.place == kNoPlace) return;
    (in_parts ? to.parts : to.whole)[first + c] = most.value;
    (in_parts ? to.part_places : to.whole_places)[first + c] = most.place;
  }
}

// Returns one bit per rank, of at most 32, that has a row of a bag: all lanes of the group get it.
template <int kLanes>
__device__ unsigned owners_of(const DevicePieces& pieces, const DevicePiece& piece,
                              const DeviceBags& bags, EdgeOffset begin, EdgeOffset end) {
  const Group<kLanes> group;
  unsigned owners = 0;
  for (EdgeOffset e = begin + group.lane; e < end; e += kLanes)
    if (bags.ids[e] != kNoRow) owners |= 1u << place_in(pieces, piece, bags.ids[e]).rank;
  return group.any_bits(owners);
}

template <int kLanes, int kVec>
__global__ void __launch_bounds__(kBagThreads)
    collect_kernel(const __grid_constant__ DevicePieces pieces,
                   const __grid_constant__ DeviceBags bags, const __grid_constant__ BagSums from,
                   const __grid_constant__ BagSums out) {
  using Sums = Columns<float, kVec>;
  const std::uint64_t bag = (blockIdx.x * std::uint64_t{kBagThreads} + threadIdx.x) / kLanes;
  if (bag >= pieces.tables * bags.per_table) return;
  const std::uint64_t t = bag / bags.per_table, b = bag % bags.per_table;
  const DevicePiece piece = pieces.at[t];
  if (piece.split == EmbeddingSplit::replicated) return;
  const std::uint64_t first = (b * pieces.tables + t) * pieces.width;
  const unsigned lane = threadIdx.x % kLanes;
  const bool max = pieces.mode == BagMode::max;
  if (piece.split == EmbeddingSplit::rows) {
    const unsigned owners =
        owners_of<kLanes>(pieces, piece, bags, bags.offsets[bag], bags.offsets[bag + 1]);
    for (std::uint64_t c = lane; c < pieces.width; c += kLanes) {
      float sum = 0;
      Placed most;
      for (int r = 0; r < pieces.ranks; ++r) {
        if ((owners >> r & 1) == 0) continue;
        const std::uint64_t part = part_of(pieces, piece, bags, r, b) + c;
        max ? most.take({from.parts[part], from.part_places[part]})
            : static_cast<void>(sum += from.parts[part]);
      }
      out.whole[first + c] = max ? most.value : sum;
      if (max) out.whole_places[first + c] = most.place;
    }
    return;
  }
  for (std::uint64_t c = lane * kVec; c < pieces.width; c += kLanes * kVec) {
    if (c >= piece.first_column && c < piece.first_column + piece.columns) continue;
    *reinterpret_cast<Sums*>(out.whole + first + c) =
        *reinterpret_cast<const Sums*>(from.whole + first + c);
    for (int i = 0; max && i < kVec; ++i)
      out.whole_places[first + c + i] = from.whole_places[first + c + i];
  }
}

}  // namespace

void BagWorks::add(const DeviceBags& bags, const BagSums& to, std::size_t t, std::uint64_t ids,
                   std::uint64_t columns, int vec) {
  constexpr std::uint64_t kIdsOfGroup = 64, kMostBags = 16;
  if (bags.per_table == 0) return;
  BagWork work{.bags = bags, .to = to, .table = static_cast<std::uint32_t>(t)};
  work.lanes = 8;
  while (work.lanes < kWarp && work.lanes * static_cast<std::uint64_t>(vec) < columns)
    work.lanes *= 2;
  const std::uint64_t of_bag = std::max<std::uint64_t>(ids / bags.per_table, 1);
  work.bags_of_group = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      kIdsOfGroup / of_bag, 1, std::min<std::uint64_t>(kMostBags, work.lanes - 1)));
  work.first_block = blocks_;
  const std::uint64_t of_block =
      std::uint64_t{work.bags_of_group} * static_cast<unsigned>(kBagThreads) / work.lanes;
  blocks_ += static_cast<std::uint32_t>((bags.per_table + of_block - 1) / of_block);
  works_.push_back(work);
}

void sum_bags(const DevicePieces& pieces, const BagWorks& works, const BagWork* works_there,
              cudaStream_t stream) {
  if (works.blocks() == 0) return;
  const auto count = static_cast<unsigned>(works.works().size());
  with_number(pieces.type, [&]<class T>(T) {
    pieces.in_vectors
        ? sum_kernel<T, 4><<<works.blocks(), kBagThreads, 0, stream>>>(pieces, works_there, count)
        : sum_kernel<T, 1><<<works.blocks(), kBagThreads, 0, stream>>>(pieces, works_there, count);
  });
  check_cuda(cudaGetLastError(), "sums of bags");
}

void take_maxima(const DevicePieces& pieces, const DeviceBags& bags, bool own, const BagSums& to,
                 cudaStream_t stream) {
  if (bags.per_table == 0) return;
  with_number(pieces.type, [&]<class T>(T) {
    for_lanes<4>(pieces.width, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      maxima_kernel<T, kLanes>
          <<<blocks_of_bags(pieces, bags, kLanes), kBagThreads, 0, stream>>>(pieces, bags, own, to);
    });
  });
  check_cuda(cudaGetLastError(), "maxima of bags");
}

void collect_bags(const DevicePieces& pieces, const DeviceBags& bags, const BagSums& from,
                  const BagSums& out, cudaStream_t stream) {
  if (bags.per_table == 0 || pieces.ranks == 1) return;
  const auto launch = [&](auto vec) {
    constexpr int kVec = decltype(vec)::value;
    for_lanes<4>(pieces.width / kVec, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      collect_kernel<kLanes, kVec>
          <<<blocks_of_bags(pieces, bags, kLanes), kBagThreads, 0, stream>>>(pieces, bags, from,
                                                                             out);
    });
  };
  pieces.in_vectors ? launch(std::integral_constant<int, 4>{})
                    : launch(std::integral_constant<int, 1>{});
  check_cuda(cudaGetLastError(), "sums of bags");
}

}  // namespace plait
