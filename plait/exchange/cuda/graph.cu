#include <cstring>
#include <exception>

#include "plait/base/all_to_all.h"
#include "plait/exchange/cuda/graph.cuh"
#include "plait/placement/arrival.h"
#include "plait/reorder/cuda/work_order.cuh"
#include "plait/world/gather.h"

namespace plait {
namespace {

// The rows that a rank reads of another rank. The members are numbers: rows in all, rows listed one
// by one, and the edges of the sums that the rank wants instead.
struct Wish {
  std::uint64_t slot, rows, whole, listed, offsets, weights;
};

template <class T>
using ByRank = std::vector<std::vector<T>>;

// Collective. out[r] goes to rank r, from which size(r) values come.
template <class T, class Size>
ByRank<T> exchange(World& world, const ByRank<T>& out, Size size) {
  ByRank<T> in(out.size());
  for (std::size_t r = 0; r < out.size(); ++r) in[r].resize(size(r));
  exchange_parts(
      world, out.size(), [&](std::size_t r) { return std::span(out[r]); },
      [&](std::size_t r) { return std::span(in[r]); });
  return in;
}

template <class T>
DeviceArray<T> on_gpu(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

// Collective. `sums`: by block, the sums that its owner is to make; empty if all blocks come as
// rows.
std::vector<SendBlock> exchange_wishes(World& world, const DeviceShard& shard,
                                       std::vector<RowSums> sums) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const bool with_sums = !sums.empty();
  sums.resize(shard.halo.size());
  ByRank<Wish> wishes(ranks, std::vector<Wish>(1));
  ByRank<std::uint32_t> rows(ranks);
  ByRank<EdgeOffset> offsets(ranks);
  ByRank<float> weights(ranks);
  on_all_or_none(world, [&] {
    for (std::size_t b = 0; b < sums.size(); ++b) {
      const HaloBlock& block = shard.halo[b];
      const RowSums& sum = sums[b];
      const auto p = static_cast<std::size_t>(block.owner);
      rows[p] = (sum.count() > 0 ? sum.row : block.row).to_host();
      offsets[p] = sum.offsets.to_host();
      weights[p] = sum.weights.to_host();
      wishes[p][0] = {block.begin,    block.rows,        block.whole,
                      rows[p].size(), offsets[p].size(), weights[p].size()};
    }
  });
  sums.clear();  // before the other ranks' sums take as much memory
  const auto wished = exchange(world, wishes, [](std::size_t) { return 1; });
  rows = exchange(world, rows, [&](std::size_t r) { return wished[r][0].listed; });
  if (with_sums) {
    offsets = exchange(world, offsets, [&](std::size_t r) { return wished[r][0].offsets; });
    weights = exchange(world, weights, [&](std::size_t r) { return wished[r][0].weights; });
  }

  std::vector<SendBlock> blocks;
  on_all_or_none(world, [&] {
    for (int turn = 1; turn < world.size(); ++turn) {
      const int peer = receiver_in_turn(world.rank(), turn, world.size());
      const auto p = static_cast<std::size_t>(peer);
      const Wish& wish = wished[p][0];
      SendBlock block{peer, wish.slot, wish.rows, wish.whole != 0, {}, {}};
      if (offsets[p].empty())
        block.row = on_gpu(rows[p]);
      else
        block.sums = {on_gpu(offsets[p]), on_gpu(rows[p]), on_gpu(weights[p])};
      blocks.push_back(std::move(block));
    }
  });
  return blocks;
}

}  // namespace

DeviceGraph make_device_graph(World& world, DeviceShard shard, const DeviceGraphOptions& options,
                              cudaStream_t stream) {
  DeviceGraph graph;
  std::vector<RowSums> sums;
  graph.fixed_order = options.fixed_order;
  on_all_or_none(world, [&] {
    fault_point();
    if (options.with_sums) sums = contract_blocks(shard, stream);
    if (graph.fixed_order) return;
    const DeviceArray<EdgeOffset> local_end = edges_from_slot(shard, shard.own, stream);
    graph.clusters = order_of_work(shard.offsets.data(), local_end.data(), shard.slots.data(),
                                   shard.own, stream);
  });
  if (world.size() > 1) graph.send = exchange_wishes(world, shard, std::move(sums));
  graph.loads =
      gather_values<RankLoad>(world, {shard.own, shard.slot_count() - shard.own, shard.local_edges,
                                      shard.edges() - shard.local_edges});
  std::vector<std::uint64_t> ends;
  for (const HaloBlock& block : shard.halo) ends.push_back(block.begin + block.rows - shard.own);
  for (const auto& bytes : world.all_gather(std::as_bytes(std::span(ends)))) {
    graph.block_ends.emplace_back(ends.size());
    std::memcpy(graph.block_ends.back().data(), bytes.data(), bytes.size());
  }
  graph.shard = std::move(shard);
  // Any stream may use it.
  on_all_or_none(world, [&] { check_cuda(cudaDeviceSynchronize(), "the shard"); });
  return graph;
}

DeviceLink::DeviceLink(World& world, DType wire, Transports transports)
    : world_(world),
      rank_(world.rank()),
      ranks_(world.size()),
      place_(world.new_place()),
      wire_(wire),
      transports_(transports) {
  flags_ = DeviceHeap::create(
      world, DeviceSignals::bytes(ranks_) + static_cast<std::size_t>(ranks_) * kReduceBytes,
      transports.signals);
  on_all_or_none(world, [&] {
    fault_point();
    signals_ = std::make_unique<DeviceSignals>(*flags_, world);
    stream_ = std::make_unique<GpuStream>(first_priority());
    signal_stream_ = std::make_unique<GpuStream>(first_priority());
    event_ = std::make_unique<DeviceEvent>();
  });
}

DeviceLink::~DeviceLink() {
  abandon_if_unwinding();
  stream_.reset();
  signal_stream_.reset();
}

// Recorded steps count when they are replayed: a recording may end on some ranks alone.
void DeviceLink::begin(bool recorded) {
  if (ranks_ == 1) return;
  if (!recorded) world_.begin_operation(place_);
  signals_->check();
}

void DeviceLink::abandon() {
  if (ranks_ == 1) return;
  if (!signals_->abandon(stream()) || waits_elsewhere_)
    world_.declare_failed("in an operation between GPUs");
}

void DeviceLink::replayed(std::uint32_t steps, cudaStream_t stream) {
  if (ranks_ == 1) return;
  begin(false);
  signals_->replayed(steps, stream);
}

std::vector<Signal> DeviceLink::others(int number) const {
  std::vector<Signal> signals;
  for (int r = 0; r < ranks_; ++r)
    if (r != rank_) signals.push_back({r, number});
  return signals;
}

void DeviceLink::meet(cudaStream_t stream) {
  constexpr int kHere = 0;  // signal
  if (ranks_ == 1) return;
  signals_->raise_everywhere(kHere, stream);
  signals_->wait(others(kHere), stream);
}

void DeviceLink::abandon_if_unwinding() {
  if (std::uncaught_exceptions() > exceptions_) signals_->end_waits();
}

void DeviceLink::reserve(std::uint64_t bytes) {
  together(world_, "while making room for rows", [&] {
    bytes = largest_of_all(world_, bytes);
    if (heap_ && heap_->bytes() >= bytes) return;
    // No rank writes to the old slots any more.
    on_all_or_none(world_, [&] { check_cuda(cudaDeviceSynchronize(), "work on the GPU"); });
    DeviceHeap::replace(world_, heap_, bytes, transports_.slots);
  });
}

void DeviceLink::follow(cudaStream_t later, cudaStream_t earlier) {
  event_->record(earlier);
  check_cuda(cudaStreamWaitEvent(later, event_->get()), "a stream");
}

}  // namespace plait
