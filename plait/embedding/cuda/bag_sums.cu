// Sums of short bags read rows at random: their speed is that of memory, if enough rows are on
// their way at once. A group of lanes works on bags that stand one behind the other, each lane on
// columns of its own: 16 bytes of a row if rows allow it. The group reads the ids of all its
// bags as one stream, as many at once as a warp has lanes, and the next ones before they are
// needed, because ids of other ranks' bags come over the link. It loads kRows rows before it adds
// the first of them, whichever bags they are of; ids are added in their order, so that sums do not
// depend on the groups. At 16 warps per SM, 16 x 8 rows of 512 bytes are on their way, more than
// the memory of an H200 needs. One kernel sums for all readers, so that no reader's last bags leave
// the GPU idle. Sums for other ranks are stored straight into their memory: no copy on this side.
#include <algorithm>

#include "plait/base/cuda/warp.cuh"
#include "plait/embedding/bag_maxima.h"
#include "plait/embedding/cuda/bag_sums.cuh"

namespace plait {
namespace {

constexpr int kRows = 8;         // on their way per group
constexpr int kLeastLanes = 8;   // of a group that sums
constexpr int kBlocksPerSm = 2;  // of sums: at most 128 registers

// Rows begin at multiples of kVec numbers, and of 16 bytes if that is more.
template <class T, int kVec>
struct alignas(std::min<std::size_t>(kVec * sizeof(T), 16)) Columns {
  T value[kVec];
};

// The same numbers as they are loaded: two of two bytes stay in one register until they are added.
// The assembly keeps the compiler from widening all rows of a batch before the loop over its bags.
template <class T, int kVec, bool kInWords = kVec * sizeof(T) % sizeof(unsigned) == 0>
struct alignas(Columns<T, kVec>) LoadedColumns {
  unsigned word[kVec * sizeof(T) / sizeof(unsigned)];

  __device__ Columns<T, kVec> columns() const {
    LoadedColumns here = *this;
    if constexpr (sizeof(T) < sizeof(unsigned)) {
#pragma unroll
      for (unsigned& each : here.word) asm volatile("" : "+r"(each));
    }
    return __builtin_bit_cast(Columns<T, kVec>, here);
  }
};
template <class T, int kVec>
struct LoadedColumns<T, kVec, false> : Columns<T, kVec> {
  __device__ const Columns<T, kVec>& columns() const { return *this; }
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

// A group of lanes. Groups of a warp go through the same exchanges together, also those that have
// nothing left to do: an exchange among some lanes of a warp, which are only known when it runs, is
// a call of a function that takes as long as several rows.
template <int kLanes>
struct Group {
  unsigned lane = threadIdx.x % kLanes;

  template <class Number>
  __device__ Number from(Number value, unsigned of_lane) const {
    return __shfl_sync(kAll, value, static_cast<int>(of_lane), kLanes);
  }
  // Returns one bit per lane.
  __device__ unsigned ballot(bool of_lane) const {
    const unsigned all = __ballot_sync(kAll, of_lane);
    if constexpr (kLanes == kWarp) return all;
    return all >> threadIdx.x % kWarp / kLanes * kLanes & ((1u << kLanes % kWarp) - 1);
  }
  // Returns the bits that any lane has.
  __device__ unsigned any_bits(unsigned of_lane) const {
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
      of_lane |= __shfl_xor_sync(kAll, of_lane, distance);
    return of_lane;
  }
};

// The ids of a group, and their weights if they have some.
template <bool kWeighted>
struct GroupIds {
  const Slot* ids;
  const float* weights;
  std::uint32_t count;
};

// As many of these as a warp has lanes: lane l has ids l, kLanes + l, ...
template <int kLanes, bool kWeighted>
struct StreamedIds {
  static constexpr int kOfLane = kWarp / kLanes;
  Slot id[kOfLane];
  float weight[kWeighted ? kOfLane : 1];

  __device__ void load(const GroupIds<kWeighted>& from, std::uint32_t first) {
#pragma unroll
    for (int p = 0; p < kOfLane; ++p) {
      const std::uint32_t at = first + p * kLanes;
      id[p] = at < from.count ? from.ids[at] : kNoRow;
      if constexpr (kWeighted) weight[p] = at < from.count ? from.weights[at] : 0.0f;
    }
  }
  // Drops the first id of each lane.
  __device__ void shift() {
#pragma unroll
    for (int p = 0; p + 1 < kOfLane; ++p) {
      id[p] = id[p + 1];
      if constexpr (kWeighted) weight[p] = weight[p + 1];
    }
  }
};

// The sum of the bag that a group is at, in a lane's columns.
template <class T, int kVec>
struct BagSum {
  Columns<float, kVec> sum{};
  std::uint32_t counted = 0;  // ids that are no padding
  bool any = false;           // one of them names a row of this rank

  __device__ void add(const LoadedColumns<T, kVec>& loaded, float weight) {
    const Columns<T, kVec> row = loaded.columns();
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
template <class T, int kLanes, int kVec, bool kWeighted>
class BagStream {
 public:
  // `offset` of lane k: where bag k of the group begins, or the last one ends.
  __device__ BagStream(const DevicePieces& pieces, const DevicePiece& piece, const BagWork& work,
                       std::uint64_t first_bag, unsigned bags, EdgeOffset offset, std::uint64_t c)
      : pieces_(pieces), piece_(piece), work_(work), first_bag_(first_bag), c_(c) {
    const EdgeOffset begin = group_.from(offset, 0);
    const auto at = static_cast<std::uint32_t>(offset - begin);
    ids_ = {work.bags.ids + begin, work.bags.weights + (kWeighted ? begin : 0),
            group_.from(at, bags)};
    end_of_lane_ = group_.from(at, (group_.lane + 1) % kLanes);
    lane_is_filled_ = group_.lane < bags && at < end_of_lane_;
    filled_ = group_.ballot(lane_is_filled_);
    for (unsigned b = 0; b < bags; ++b)
      if ((filled_ >> b & 1) == 0) at_.store(pieces_, piece_, work_, first_bag_ + b, c_);
  }

  __device__ void sum() {
    StreamedIds<kLanes, kWeighted> next;
    next.load(ids_, group_.lane);
    for (std::uint32_t at = 0; __any_sync(kAll, at < ids_.count); at += kWarp) {
      StreamedIds<kLanes, kWeighted> ids = next;
      next.load(ids_, at + kWarp + group_.lane);
      const bool ends = lane_is_filled_ && end_of_lane_ >= at && end_of_lane_ - at < kWarp;
      const unsigned all_ends = group_.any_bits(ends ? 1u << (end_of_lane_ - at) : 0u);
#pragma unroll 1
      for (int p = 0; p < ids.kOfLane; ++p) {
        add(ids.id[0], ids.weight[0], all_ends >> p * kLanes % kWarp);
        ids.shift();
      }
    }
    if (filled_ != 0) end_bag();
  }

 private:
  static constexpr unsigned kFull = (1u << kRows) - 1;
  using Row = LoadedColumns<T, kVec>;
  using Weights = float[kWeighted ? kRows : 1];

  // Adds the rows of kLanes ids, one per lane, behind the last bag kNoRow. Bit k of `ends`: a bag
  // with ids ends before the id of lane k.
  __device__ void add(Slot id, float weight, unsigned ends) {
    const Slot own = own_row(pieces_, piece_, id);
    const unsigned counts = group_.ballot(id != kNoRow), rows = group_.ballot(own != kNoRow);
#pragma unroll 1
    for (unsigned j = 0; j < kLanes && __any_sync(kAll, counts >> j | ends >> j); j += kRows) {
      Row loaded[kRows];
      Weights of_id;
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const Slot row = group_.from(own, j + k);
        if constexpr (kWeighted) of_id[k] = group_.from(weight, j + k);
        loaded[k] = {};
        if (row != kNoRow && c_ < piece_.columns)
          loaded[k] = *reinterpret_cast<const Row*>(row_of<T>(piece_, row) + c_);
      }
      add_batch(loaded, of_id, {rows >> j & kFull, counts >> j & kFull, ends >> j & kFull});
    }
  }

  // One bit per row of a batch: this rank has it; its id is no padding; a bag ends before it.
  struct BatchBits {
    unsigned rows, counts, ends;
  };
  // Adds the rows of a batch. The rows of each bag stand one behind the other.
  __device__ void add_batch(const Row (&loaded)[kRows], const Weights& of_id, BatchBits bits) {
    unsigned done = 0;
#pragma unroll 1
    while (true) {
      const unsigned before_end = bits.ends == 0 ? kFull : (bits.ends & -bits.ends) - 1;
      const unsigned of_bag = before_end & ~done;
      at_.counted += __popc(bits.counts & of_bag);
      at_.any = at_.any || (bits.rows & of_bag) != 0;
#pragma unroll
      for (int k = 0; k < kRows; ++k)
        if (bits.rows & of_bag & 1u << k) at_.add(loaded[k], kWeighted ? of_id[k] : 1.0f);
      if (bits.ends == 0) return;
      end_bag();
      done = before_end;
      bits.ends &= bits.ends - 1;
    }
  }
  // Stores the sum of the first bag that is not stored yet.
  __device__ void end_bag() {
    at_.store(pieces_, piece_, work_, first_bag_ + static_cast<unsigned>(__ffs(filled_)) - 1, c_);
    filled_ &= filled_ - 1;
  }

  const DevicePieces& pieces_;
  const DevicePiece& piece_;
  const BagWork& work_;
  const std::uint64_t first_bag_;
  const std::uint64_t c_;
  const Group<kLanes> group_ = {};
  GroupIds<kWeighted> ids_;
  std::uint32_t end_of_lane_;  // where the bag of this lane ends among the ids
  bool lane_is_filled_;        // it has ids
  unsigned filled_;            // one bit per bag with ids that is not stored yet
  BagSum<T, kVec> at_ = {};
};

template <class T, int kLanes, int kVec>
__device__ void sum_group(const DevicePieces& pieces, const DevicePiece& piece,
                          const BagWork& work) {
  const std::uint64_t group =
      ((blockIdx.x - work.first_block) * std::uint64_t{kBagThreads} + threadIdx.x) / kLanes;
  const std::uint64_t first = min(group * work.bags_of_group, work.bags.per_table);
  const auto bags =
      static_cast<unsigned>(min(work.bags.per_table - first, std::uint64_t{work.bags_of_group}));
  const unsigned lane = threadIdx.x % kLanes;
  const EdgeOffset offset =
      work.bags.offsets[work.table * work.bags.per_table + first + min(lane, bags)];
  for (std::uint64_t c = lane * kVec; c - lane * kVec < piece.columns; c += kLanes * kVec)
    work.bags.weights == nullptr
        ? BagStream<T, kLanes, kVec, false>(pieces, piece, work, first, bags, offset, c).sum()
        : BagStream<T, kLanes, kVec, true>(pieces, piece, work, first, bags, offset, c).sum();
}

template <class T, int kVec>
__global__ void __launch_bounds__(kBagThreads, kBlocksPerSm)
    sum_kernel(const __grid_constant__ DevicePieces pieces, const BagWork* works, unsigned count) {
  int before = 0;  // works that begin at this block or before
  for (unsigned first = 0; first < count; first += kBagThreads) {
    const unsigned k = first + threadIdx.x;
    before += __syncthreads_count(k < count && works[k].first_block <= blockIdx.x);
  }
  const BagWork& work = works[before - 1];
  const DevicePiece& piece = pieces.at[work.table];
  switch (work.lanes) {
    case kLeastLanes:
      return sum_group<T, kLeastLanes, kVec>(pieces, piece, work);
    case 2 * kLeastLanes:
      return sum_group<T, 2 * kLeastLanes, kVec>(pieces, piece, work);
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

// Returns one bit per rank, of at most 32, that has a row of a bag. All lanes of a bag read all of
// its ids, at the same time: groups of a warp do not go through one exchange here.
__device__ unsigned owners_of(const DevicePieces& pieces, const DevicePiece& piece,
                              const DeviceBags& bags, EdgeOffset begin, EdgeOffset end) {
  unsigned owners = 0;
  for (EdgeOffset e = begin; e < end; ++e)
    if (bags.ids[e] != kNoRow) owners |= 1u << place_in(pieces, piece, bags.ids[e]).rank;
  return owners;
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
        owners_of(pieces, piece, bags, bags.offsets[bag], bags.offsets[bag + 1]);
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
  work.lanes = kLeastLanes;
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
    const auto launch = [&](auto vec) {
      sum_kernel<T, decltype(vec)::value>
          <<<works.blocks(), kBagThreads, 0, stream>>>(pieces, works_there, count);
    };
    constexpr int kMost = most_bag_columns(sizeof(T));
    if (pieces.vec == kMost) return launch(std::integral_constant<int, kMost>{});
    if (pieces.vec == 4) return launch(std::integral_constant<int, 4>{});
    launch(std::integral_constant<int, 1>{});
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
  pieces.vec > 1 ? launch(std::integral_constant<int, 4>{})
                 : launch(std::integral_constant<int, 1>{});
  check_cuda(cudaGetLastError(), "sums of bags");
}

}  // namespace plait
