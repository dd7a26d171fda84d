// The rival of `get` on unified memory.
#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/saturating.h"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/measure/cuda/rival_state.cuh"
#include "plait/placement/own_rows.h"

namespace plait {
namespace {

constexpr const char* kRows = "managed memory for the rows of all ranks";

// Managed memory of all GPUs, which this object owns.
class ManagedArray {
 public:
  explicit ManagedArray(std::size_t floats) {
    check_cuda(cudaMallocManaged(&data_, std::max<std::size_t>(floats, 1) * sizeof(float)),
               "managed memory");
  }
  ~ManagedArray() { cudaFree(data_); }
  ManagedArray(const ManagedArray&) = delete;
  ManagedArray& operator=(const ManagedArray&) = delete;

  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

void require_pages_on_demand(int gpu) {
  int on_demand = 0;
  check_cuda(cudaDeviceGetAttribute(&on_demand, cudaDevAttrConcurrentManagedAccess, gpu),
             "the GPU");
  require(on_demand != 0, "GPU {} does not bring pages of managed memory on demand", gpu);
}

class ManagedRows : public RivalState {
 public:
  ManagedRows(World& world, const RivalQuestion& question)
      : RivalState(world, question), starts_(place_starts(question.partition)) {}
  ~ManagedRows() override {
    on_each([](int, RivalPart&) { cudaDeviceSynchronize(); });  // before the sums are freed
  }

  void step() override {
    const RivalQuestion& q = question();
    on_each([&](int rank, RivalPart& part) {
      wait_for_others(rank, &RivalPart::done, nullptr);  // they have read the last step's rows
      copy_rows({.from = part.x.data(),
                 .from_stride = q.width,
                 .count = part.shard.own,
                 .width = q.width,
                 .to = rows_of(rank)},
                nullptr);
      part.placed.record(nullptr);
    });
    on_each([&](int rank, RivalPart& part) {
      wait_for_others(rank, &RivalPart::placed, nullptr);
      std::vector<PeerBlock> blocks;
      for (const HaloBlock& block : part.shard.halo)
        blocks.push_back({static_cast<Slot>(block.begin), rows_of(block.owner)});
      sums_[static_cast<std::size_t>(rank)]->run(part.shard.slots.data(), rows_of(rank), blocks,
                                                 part.y.data(), false);
      part.done.record(nullptr);
    });
  }

 private:
  std::uint64_t bytes() const {
    return (Bytes(starts_.back()) * question().stride() * sizeof(float)).value;
  }
  float* rows_of(int rank) const {
    return rows_->data() + starts_[static_cast<std::size_t>(rank)] * question().stride();
  }

  void prepare(const std::vector<int>& gpus) override {
    for (const int gpu : gpus) {
      const OnGpu on(gpu);
      require_pages_on_demand(gpu);
      require_room(bytes(), kRows);
    }
  }
  void make_rows() override {
    on_each([&](int, RivalPart& part) {
      const EdgeOffset* const begin = part.shard.offsets.data();
      sums_.push_back(std::make_unique<RivalSum>(
          part, EdgeRanges{begin, part.split.data(), begin + 1}, question()));
      require_room(bytes(), kRows);
    });
    rows_ = std::make_unique<ManagedArray>(starts_.back() * question().stride());
  }

  std::vector<std::uint64_t> starts_;            // of each rank's rows in the managed array
  std::vector<std::unique_ptr<RivalSum>> sums_;  // by rank
  std::unique_ptr<ManagedArray> rows_;
};

}  // namespace

std::unique_ptr<RivalState> make_managed_rows(World& world, const RivalQuestion& question) {
  return std::make_unique<ManagedRows>(world, question);
}

}  // namespace plait
