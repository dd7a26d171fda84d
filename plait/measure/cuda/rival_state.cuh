// The state that rivals of strategy `get` share (rival_bench.h): the parts of all ranks, each on
// its GPU, which rank 0's process drives. Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/on_gpu.cuh"
#include "plait/base/gpu.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/get.cuh"
#include "plait/measure/cuda/rival_bench.h"
#include "plait/placement/cuda/shard.cuh"

namespace plait {

// The question that a rival answers. References outlive it.
struct RivalQuestion {
  const AnyCsr& graph;
  const Partition& partition;
  GetTuning tuning;
  std::uint64_t width;

  std::uint64_t stride() const { return row_stride(width); }
};

// A range of each row's edges: begin[i] .. split[i] - 1 are local, split[i] .. end[i] - 1 remote.
// Pointers are to memory of the GPU.
struct EdgeRanges {
  const EdgeOffset *begin, *split, *end;
};

// One rank's part, on its GPU. All members are made, used and destroyed while that GPU is current.
struct RivalPart {
  RivalPart(const RivalQuestion& question, int rank);

  DeviceShard shard;
  DeviceArray<EdgeOffset> split;  // the first remote edge of each row
  DeviceArray<std::uint32_t> clusters;
  DeviceArray<float> x, y;  // own rows, without gaps
  // Own rows stand where they are read, or have been written to their readers; the step's sum has
  // ended.
  DeviceEvent placed, done;
};

// Sums of neighbour groups of one part, by the kernel of `get`.
class RivalSum {
 public:
  // Makes the groups. Waits for the GPU.
  RivalSum(const RivalPart& part, const EdgeRanges& edges, const RivalQuestion& question);
  // Enqueues y = or y += the sums, on the GPU's default stream. `slots`: one per edge of the shard;
  // x: own rows, stride() floats apart like those of the blocks.
  void run(const Slot* slots, const float* x, const std::vector<PeerBlock>& blocks, float* y,
           bool accumulate);

 private:
  std::uint64_t width_;
  GetTuning tuning_;
  GetGroups groups_;
  DeviceArray<float> partial_sums_;
};

// All parts, on rank 0; elsewhere none.
class RivalState {
 public:
  RivalState(World& world, const RivalQuestion& question) : world_(world), question_(question) {}
  // Waits for all GPUs.
  virtual ~RivalState();
  RivalState(const RivalState&) = delete;
  RivalState& operator=(const RivalState&) = delete;

  // On rank 0 alone: places the graph on these GPUs, as this process numbers them.
  void make(const std::vector<int>& gpus);
  // Enqueues a step on all GPUs.
  virtual void step() = 0;
  // Takes steps, and waits for them.
  void steps(int count);

  World& world() { return world_; }
  const RivalQuestion& question() const { return question_; }
  // Calls work(rank, part) with each rank's GPU as the current one.
  void on_each(const std::function<void(int, RivalPart&)>& work);

 protected:
  // Make what the rival needs: before the parts, and beside them.
  virtual void prepare(const std::vector<int>& gpus) = 0;
  virtual void make_rows() = 0;

  // Throws DoesNotFitError unless so many bytes are free on the current GPU, for `rows`.
  static void require_room(std::uint64_t bytes, const char* rows);
  // Lets the current GPU wait until all others have come to their event.
  void wait_for_others(int rank, DeviceEvent RivalPart::*event, cudaStream_t stream);

  std::vector<std::unique_ptr<RivalPart>> parts_;  // by rank
  std::vector<int> gpus_;                          // by rank

 private:
  World& world_;
  RivalQuestion question_;
};

std::unique_ptr<RivalState> make_managed_rows(World& world, const RivalQuestion& question);
std::unique_ptr<RivalState> make_pushed_rows(World& world, const RivalQuestion& question);

}  // namespace plait
