// The rival of `get` whose rows are pushed, one per remote edge.
//
// A reader's remote edges are dealt out by owner, in the order of the edges: the k-th edge to an
// owner reads row k of the owner's block. So the owner writes each block from its first row to its
// last, and picks its own rows by a list. Bytes on the link, per GPU and step: one row per remote
// edge, as with `get`; and as many are written to and read from the reader's memory besides.
#include <algorithm>
#include <limits>

#include "plait/base/cuda/gpu_stream.cuh"
#include "plait/base/error.h"
#include "plait/base/saturating.h"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/machine/machine.h"
#include "plait/measure/cuda/rival_state.cuh"

namespace plait {
namespace {

// The remote edges of one reader.
struct RemoteEdges {
  // By place in shard.halo: the owner's row of each edge to that owner.
  std::vector<std::vector<std::uint32_t>> rows;
  // One per edge of the shard. Local edges keep theirs; behind own rows come the blocks.
  std::vector<Slot> slots;
};

RemoteEdges remote_edges_of(const DeviceShard& shard) {
  RemoteEdges found{.rows = std::vector<std::vector<std::uint32_t>>(shard.halo.size()),
                    .slots = shard.slots.to_host()};
  require<DoesNotFitError>(
      shard.own + shard.edges() - shard.local_edges < std::numeric_limits<Slot>::max(),
      "{} rows that are pushed are more than slots can number", shard.edges() - shard.local_edges);
  std::vector<int> owner_of(found.slots.size());  // as a place in shard.halo
  for (std::size_t e = 0; e < found.slots.size(); ++e) {
    const Slot slot = found.slots[e];
    if (slot < shard.own) continue;
    std::size_t block = shard.halo.size() - 1;
    while (shard.halo[block].begin > slot) --block;
    owner_of[e] = static_cast<int>(block);
    found.slots[e] = static_cast<Slot>(shard.own + found.rows[block].size());
    found.rows[block].push_back(static_cast<std::uint32_t>(slot - shard.halo[block].begin));
  }
  std::uint64_t before = 0;
  std::vector<Slot> begins;
  for (const auto& rows : found.rows) {
    begins.push_back(static_cast<Slot>(before));
    before += rows.size();
  }
  for (std::size_t e = 0; e < found.slots.size(); ++e)
    if (found.slots[e] >= shard.own)
      found.slots[e] += begins[static_cast<std::size_t>(owner_of[e])];
  return found;
}

// Rows that one GPU writes to a reader.
struct PushedBlock {
  DeviceArray<std::uint32_t> rows;  // of the owner, on its GPU
  float* to;                        // on the reader's GPU
};

// One rank's rows, on its GPU like RivalPart.
struct PushedPart {
  PushedPart(const RivalPart& part, const RivalQuestion& q)
      : edges(remote_edges_of(part.shard)),
        slots(std::span<const Slot>(edges.slots)),
        own(part.shard.own * q.stride()),
        local(part, {part.shard.offsets.data(), part.split.data(), part.split.data()}, q),
        remote(part, {part.split.data(), part.split.data(), part.shard.offsets.data() + 1}, q) {}

  RemoteEdges edges;  // until the owners have the lists of their rows
  DeviceArray<Slot> slots;
  DeviceArray<float> own;      // rows, stride() apart
  DeviceArray<float> arrived;  // the same, one per remote edge
  RivalSum local, remote;
  std::vector<PushedBlock> pushes;  // to the ranks that follow this one, and round
  GpuStream stream;
  DeviceEvent copied;  // own rows
};

void let_write_to(int gpu, int peer) {
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, gpu, peer), "the GPU");
  require(can != 0, "GPU {} cannot write to the memory of GPU {}", gpu, peer);
  const OnGpu on(gpu);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // forgets it
  else
    check_cuda(error, "access to the memory of another GPU");
}

class PushedRows : public RivalState {
 public:
  using RivalState::RivalState;
  ~PushedRows() override {
    on_each([](int, RivalPart&) { cudaDeviceSynchronize(); });  // GPUs write to each other
    on_each([&](int rank, RivalPart&) {
      if (static_cast<std::size_t>(rank) < rows_.size())
        rows_[static_cast<std::size_t>(rank)].reset();
    });
  }

  void step() override {
    const RivalQuestion& q = question();
    on_each([&](int rank, RivalPart& part) {
      PushedPart& mine = *rows_[static_cast<std::size_t>(rank)];
      copy_rows({.from = part.x.data(),
                 .from_stride = q.width,
                 .count = part.shard.own,
                 .width = q.width,
                 .to = mine.own.data()},
                nullptr);
      mine.copied.record(nullptr);
      check_cuda(cudaStreamWaitEvent(mine.stream.get(), mine.copied.get(), 0), "an event");
      wait_for_others(rank, &RivalPart::done, mine.stream.get());  // with the last step's rows
      for (const PushedBlock& block : mine.pushes)
        copy_rows({.from = mine.own.data(),
                   .from_stride = q.stride(),
                   .rows = block.rows.data(),
                   .count = block.rows.size(),
                   .width = q.width,
                   .to = block.to,
                   .blocks = machine().push_blocks},
                  mine.stream.get());
      part.placed.record(mine.stream.get());
      mine.local.run(mine.slots.data(), mine.own.data(), {}, part.y.data(), false);
    });
    on_each([&](int rank, RivalPart& part) {
      PushedPart& mine = *rows_[static_cast<std::size_t>(rank)];
      wait_for_others(rank, &RivalPart::placed, nullptr);
      const PeerBlock arrived{static_cast<Slot>(part.shard.own), mine.arrived.data()};
      mine.remote.run(mine.slots.data(), mine.own.data(), {arrived}, part.y.data(), true);
      // The next step's own rows are not written before this step's are pushed.
      check_cuda(cudaStreamWaitEvent(nullptr, part.placed.get(), 0), "an event");
      part.done.record(nullptr);
    });
  }

 private:
  void prepare(const std::vector<int>& gpus) override {
    for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
      const OnGpu on(gpus[rank]);
      constexpr std::uint64_t kArrays = 3;  // x, own rows as they are pushed, y
      const Bytes rows(question().partition.size(static_cast<int>(rank)));
      require_room((rows * kArrays * question().stride() * sizeof(float)).value, "own rows");
      for (const int peer : gpus)
        if (gpus[rank] != peer) let_write_to(gpus[rank], peer);
    }
  }

  void make_rows() override {
    on_each([&](int, RivalPart& part) {
      const std::uint64_t remote = part.shard.edges() - part.shard.local_edges;
      rows_.push_back(std::make_unique<PushedPart>(part, question()));
      require_room((Bytes(remote) * question().stride() * sizeof(float)).value,
                   "rows for remote edges");
      rows_.back()->arrived = DeviceArray<float>(remote * question().stride());
    });
    for (int step = 1; step < static_cast<int>(rows_.size()); ++step)
      on_each([&](int rank, RivalPart&) {
        add_push(rank, (rank + step) % static_cast<int>(rows_.size()));
      });
    for (const auto& part : rows_) part->edges = {};
  }

  // Gives the owner, whose GPU is current, the list of rows that the reader wants.
  void add_push(int owner, int reader) {
    PushedPart& there = *rows_[static_cast<std::size_t>(reader)];
    const std::vector<HaloBlock>& halo = parts_[static_cast<std::size_t>(reader)]->shard.halo;
    std::uint64_t before = 0;
    for (std::size_t block = 0; block < halo.size(); ++block) {
      const std::vector<std::uint32_t>& rows = there.edges.rows[block];
      if (halo[block].owner == owner && !rows.empty())
        rows_[static_cast<std::size_t>(owner)]->pushes.push_back(
            {DeviceArray<std::uint32_t>(std::span<const std::uint32_t>(rows)),
             there.arrived.data() + before * question().stride()});
      before += rows.size();
    }
  }

  std::vector<std::unique_ptr<PushedPart>> rows_;  // by rank
};

}  // namespace

std::unique_ptr<RivalState> make_pushed_rows(World& world, const RivalQuestion& question) {
  return std::make_unique<PushedRows>(world, question);
}

}  // namespace plait
