// One rank's part of a sum by strategy `get`, on one GPU: the rows of the ranks are arrays of their
// own. Values are small multiples of 1/8, so that sums are exact in any order: results are equal,
// not close.
#pragma once

#include <algorithm>
#include <vector>

#include "plait/base/error.h"
#include "plait/kernels/cuda/get.cuh"
#include "plait/kernels/cuda/get_module.cuh"
#include "plait/kernels/spmm.h"
#include "tests/gpu/device_matrix.h"
#include "tests/support/random_graph.h"

namespace plait::test::get {

enum class Keep { all, local, remote };  // edges

struct Case {
  std::uint64_t width = 16;
  std::uint32_t ps = 16, dist = 2, wpb = 4;
  bool asynchronous = true, deterministic = true;
  std::uint32_t remote_ps = 0;  // 0: as ps
  bool interleave = true;
  ReadBy read_by = ReadBy::warp;
  std::uint32_t dw = 0;  // 0: by the width
  bool weighted = false, scaled = false, accumulate = false, clusters = false;
  std::uint64_t padding = 0, offset = 0;  // elements after each row of x and y; before all rows
  int ranks = 4, rank = 1;
  Keep keep = Keep::all;

  GetTuning tuning() const {
    GetTuning t{.ps = ps,
                .dist = dist,
                .wpb = wpb,
                .asynchronous = asynchronous,
                .interleave = interleave,
                .read_by = read_by};
    if (remote_ps > 0) t.remote_ps = remote_ps;
    if (dw > 0) t.dw = dw;
    return t;
  }
};

inline constexpr ReadBy kReaders[] = {ReadBy::thread, ReadBy::warp, ReadBy::block};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << fmt::format(
             "width {} ps {} and {} dist {} wpb {} asynchronous {} interleave {} read by {} dw {} "
             "deterministic {} weighted {} scaled {} accumulate {} clusters {} padding {} offset "
             "{} rank {} of {} keep {}",
             c.width, c.ps, c.remote_ps, c.dist, c.wpb, c.asynchronous, c.interleave,
             static_cast<int>(c.read_by), c.dw, c.deterministic, c.weighted, c.scaled, c.accumulate,
             c.clusters, c.padding, c.offset, c.rank, c.ranks, static_cast<int>(c.keep));
}

// The part of one rank: ranks own equal ranges of vertices, and its blocks are those of the ranks
// after it, and round.
struct Part {
  std::vector<EdgeOffset> begin, split, end;
  std::vector<Slot> slots;
  std::vector<float> weights;
  std::uint64_t own = 0;
  std::vector<int> owner;                           // per block
  std::vector<std::uint32_t> block_begin;           // per block
  std::vector<std::uint32_t> halo_block, halo_row;  // per row of all blocks
};

inline std::uint64_t first_vertex(const Csr32& graph, const Case& c, int rank) {
  return graph.vertices() * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(c.ranks);
}

inline std::uint64_t rows_of(const Csr32& graph, const Case& c, int rank) {
  return first_vertex(graph, c, rank + 1) - first_vertex(graph, c, rank);
}

inline Part part_of(const Csr32& graph, const Case& c) {
  Part part;
  part.own = rows_of(graph, c, c.rank);
  std::vector<Slot> slot_of(graph.vertices());
  Slot next = 0;
  for (int step = 0; step < c.ranks; ++step) {
    const int rank = (c.rank + step) % c.ranks;
    if (step > 0) {
      part.owner.push_back(rank);
      part.block_begin.push_back(next);
    }
    for (std::uint64_t r = 0; r < rows_of(graph, c, rank); ++r) {
      slot_of[first_vertex(graph, c, rank) + r] = next++;
      if (step == 0) continue;
      part.halo_block.push_back(static_cast<std::uint32_t>(step - 1));
      part.halo_row.push_back(static_cast<std::uint32_t>(r));
    }
  }
  for (std::uint64_t i = 0; i < part.own; ++i) {
    const std::uint64_t row = first_vertex(graph, c, c.rank) + i;
    std::vector<std::pair<Slot, float>> edges;
    for (EdgeOffset e = graph.offsets[row]; e < graph.offsets[row + 1]; ++e) {
      const Slot slot = slot_of[graph.neighbours[e]];
      if (c.keep == Keep::all || (c.keep == Keep::local) == (slot < part.own))
        edges.emplace_back(slot, graph.weight(e));
    }
    std::ranges::stable_sort(edges, {}, &std::pair<Slot, float>::first);
    part.begin.push_back(part.slots.size());
    for (const auto& [slot, weight] : edges) {
      part.slots.push_back(slot);
      part.weights.push_back(weight);
    }
    part.end.push_back(part.slots.size());
    part.split.push_back(part.begin.back());
    for (const auto& edge : edges) part.split.back() += edge.first < part.own;
  }
  return part;
}

struct Values {
  std::vector<std::vector<float>> x;  // by rank
  std::vector<float> y, scale;
};

inline Values make_values(const Csr32& graph, const Case& c, unsigned seed) {
  Values values;
  for (int rank = 0; rank < c.ranks; ++rank)
    values.x.push_back(test::exact_values(
        c.offset + rows_of(graph, c, rank) * (c.width + c.padding), seed + 10 + rank));
  const std::uint64_t own = rows_of(graph, c, c.rank);
  values.y = test::exact_values(c.offset + own * (c.width + c.padding), seed);
  values.scale = test::exact_values(own, seed + 1);
  return values;
}

inline std::vector<float> expected(const Case& c, const Part& part, const Values& values) {
  std::vector<const float*> peers;
  for (const int owner : part.owner) peers.push_back(values.x[owner].data() + c.offset);
  peers.push_back(nullptr);  // so that there is a list with one rank too
  const std::uint64_t stride = c.width + c.padding;
  std::vector<float> y(values.y.size());
  spmm_reference({.begin = part.begin,
                  .end = part.end,
                  .columns = part.slots.data(),
                  .weights = c.weighted ? part.weights.data() : nullptr,
                  .x = {.base = values.x[c.rank].data() + c.offset,
                        .stride = stride,
                        .own = static_cast<Slot>(part.own),
                        .peers = peers.data(),
                        .halo_owner = part.halo_block.data(),
                        .halo_row = part.halo_row.data()},
                  .width = c.width,
                  .y = y.data() + c.offset,
                  .y_stride = stride,
                  .row_scale = c.scaled ? values.scale.data() : nullptr});
  for (std::size_t i = 0; i < y.size(); ++i)
    if (i < c.offset || (i - c.offset) % stride >= c.width)
      y[i] = values.y[i];  // no column, so not written
    else if (c.accumulate)
      y[i] += values.y[i];
  return y;
}

template <class T>
DeviceArray<T> there(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

// NVSHMEM's memory for the rows of all ranks, which are all this one, and the kernels that read
// them.
struct SymmetricRows {
  float* at;
  std::size_t floats;
  const GetModule& module;
};

// The rows of all ranks on the GPU: in arrays of their own, or in NVSHMEM's memory.
class PlacedRows {
 public:
  PlacedRows(const std::vector<std::vector<float>>& rows, const SymmetricRows* symmetric) {
    constexpr std::size_t kAligned = 64;  // floats
    std::size_t taken = 0;
    for (const std::vector<float>& one : rows) {
      if (symmetric == nullptr) {
        arrays_.push_back(there(one));
        at_.push_back(arrays_.back().data());
        continue;
      }
      require(taken + one.size() <= symmetric->floats, "the rows do not fit in NVSHMEM's memory");
      at_.push_back(symmetric->at + taken);
      if (!one.empty()) copy_to_gpu(symmetric->at + taken, one.data(), one.size() * sizeof(float));
      taken += (one.size() + kAligned - 1) / kAligned * kAligned;
    }
  }
  const float* operator[](int rank) const { return at_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<DeviceArray<float>> arrays_;
  std::vector<const float*> at_;  // by rank
};

inline std::vector<float> on_gpu(const Case& c, const Part& part, const Values& values,
                                 const SymmetricRows* symmetric = nullptr) {
  const auto begin = there(part.begin), split = there(part.split), end = there(part.end);
  const auto slots = there(part.slots);
  const auto weights = there(part.weights), scale = there(values.scale);
  auto y = there(values.y);
  const PlacedRows x(values.x, symmetric);
  std::vector<PeerBlock> blocks;
  for (std::size_t b = 0; b < part.owner.size(); ++b)
    blocks.push_back({part.block_begin[b], x[part.owner[b]] + c.offset});
  std::vector<std::uint32_t> cluster(part.own);
  for (std::size_t i = 0; i < cluster.size(); ++i) cluster[i] = (i * 7) % 5;
  const auto clusters = there(cluster);

  GetTuning tuning = c.tuning();
  if (symmetric != nullptr) tuning.read_with = ReadWith::nvshmem;
  const GetGroups groups(begin.data(), split.data(), end.data(), part.own,
                         {.ps = c.ps,
                          .remote_ps = c.tuning().remote(),
                          .clusters = c.clusters ? clusters.data() : nullptr},
                         nullptr);
  DeviceArray<float> partial_sums(c.deterministic ? get_scratch(groups, c.width) : 0);
  spmm_get({.groups = &groups,
            .slots = slots.data(),
            .weights = c.weighted ? weights.data() : nullptr,
            .x = x[c.rank] + c.offset,
            .blocks = blocks,
            .stride = c.width + c.padding,
            .width = c.width,
            .y = y.data() + c.offset,
            .y_stride = c.width + c.padding,
            .row_scale = c.scaled ? scale.data() : nullptr,
            .accumulate = c.accumulate,
            .partial_sums = partial_sums.data(),
            .tuning = tuning,
            .module = symmetric != nullptr ? &symmetric->module : nullptr},
           nullptr);
  return y.to_host();
}

}  // namespace plait::test::get
