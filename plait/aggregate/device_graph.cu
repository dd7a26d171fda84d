#include <cstring>

#include "plait/aggregate/device_graph_cuda.h"
#include "plait/reorder/clusters_cuda.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// What a rank reads of another's rows: a number of each, and then which.
struct Wish {
  std::uint64_t slot, rows, whole;
};

std::vector<SendBlock> exchange_wishes(World& world, const DeviceShard& shard) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<Wish> wishes(ranks), wished(ranks);
  std::vector<std::vector<std::uint32_t>> rows(ranks), wished_rows(ranks);
  std::vector<std::span<const std::byte>> send(ranks);
  std::vector<std::span<std::byte>> receive(ranks);
  for (const HaloBlock& block : shard.halo) {
    const auto owner = static_cast<std::size_t>(block.owner);
    wishes[owner] = {block.begin, block.rows, block.whole};
    rows[owner] = block.row.to_host();
  }
  const auto exchange = [&](auto& out, auto& in) {
    for (std::size_t r = 0; r < ranks; ++r) {
      send[r] = std::as_bytes(std::span(out(r)));
      receive[r] = std::as_writable_bytes(std::span(in(r)));
    }
    world.all_to_all(send, receive);
  };
  const auto one_wish = [&](std::size_t r) { return std::span(&wishes[r], 1); };
  const auto one_wished = [&](std::size_t r) { return std::span(&wished[r], 1); };
  exchange(one_wish, one_wished);
  for (std::size_t r = 0; r < ranks; ++r)
    if (wished[r].whole == 0) wished_rows[r].resize(wished[r].rows);
  const auto listed = [&](std::size_t r) { return std::span(rows[r]); };
  const auto wished_list = [&](std::size_t r) { return std::span(wished_rows[r]); };
  exchange(listed, wished_list);

  std::vector<SendBlock> blocks;
  for (int step = 1; step < world.size(); ++step) {
    const int peer = (world.rank() + world.size() - step) % world.size();
    const auto p = static_cast<std::size_t>(peer);
    blocks.push_back({peer, wished[p].slot, wished[p].rows, wished[p].whole != 0,
                      DeviceArray<std::uint32_t>(std::span<const std::uint32_t>(wished_rows[p]))});
  }
  return blocks;
}

}  // namespace

DeviceGraph make_device_graph(World& world, DeviceShard shard, cudaStream_t stream) {
  DeviceGraph graph;
  const DeviceArray<EdgeOffset> local_end = edges_from_slot(shard, shard.own, stream);
  graph.clusters = find_clusters(shard.offsets.data(), local_end.data(), shard.slots.data(),
                                 shard.own, kClusterRounds, stream);
  if (world.size() > 1) graph.send = exchange_wishes(world, shard);
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
  check_cuda(cudaStreamSynchronize(stream), "the shard");
  return graph;
}

DeviceLink::DeviceLink(World& world, DType wire, DeviceTransport transport)
    : world_(world),
      rank_(world.rank()),
      ranks_(world.size()),
      wire_(wire),
      transport_(transport),
      flags_(DeviceHeap::create(world,
                                DeviceSignals::bytes(ranks_) + static_cast<std::size_t>(ranks_) *
                                                                   kReduceFloats * sizeof(float),
                                transport)),
      signals_(*flags_, rank_, ranks_) {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "a stream");
  // Its small kernels go before the blocks of a sum.
  for (cudaStream_t* stream : {&stream_, &signal_stream_})
    check_cuda(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, greatest), "a stream");
}

DeviceLink::~DeviceLink() {
  for (cudaStream_t stream : {stream_, signal_stream_}) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
}

void DeviceLink::reserve(std::uint64_t bytes) {
  bytes = largest_of_all(world_, bytes);
  if (heap_ && heap_->bytes() >= bytes) return;
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  world_.barrier();  // no rank writes to the old slots any more
  heap_.reset();
  heap_ = DeviceHeap::create(world_, bytes, transport_);
}

void DeviceLink::follow(cudaStream_t later, cudaStream_t earlier) {
  event_.record(earlier);
  check_cuda(cudaStreamWaitEvent(later, event_.get()), "a stream");
}

}  // namespace plait
