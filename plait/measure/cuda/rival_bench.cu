#include <algorithm>

#include "plait/base/memory.h"
#include "plait/machine/machine.h"
#include "plait/measure/cuda/rival_state.cuh"
#include "plait/placement/cuda/place_rows.cuh"
#include "plait/placement/own_rows.h"
#include "plait/reorder/cuda/work_order.cuh"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

// Returns the features of a rank's own vertices, as bench.h says.
std::vector<float> features_of(const Partition& partition, int rank, std::uint64_t width) {
  std::vector<float> x(partition.size(rank) * width);
  for (std::uint64_t i = 0; i < x.size(); ++i)
    x[i] = bench_feature(partition.vertex(rank, i / width), i % width);
  return x;
}

DeviceShard shard_of(const RivalQuestion& question, int rank) {
  return std::visit(
      [&](const auto& csr) {
        return place_rows(own_rows(csr, question.partition, rank), question.partition, rank,
                          {.halo = HaloKind::complete}, nullptr);
      },
      question.graph);
}

}  // namespace

RivalPart::RivalPart(const RivalQuestion& question, int rank)
    : shard(shard_of(question, rank)),
      split(edges_from_slot(shard, shard.own, nullptr)),
      clusters(order_of_work(shard.offsets.data(), split.data(), shard.slots.data(), shard.own,
                             nullptr)),
      x(features_of(question.partition, rank, question.width)),
      y(shard.own * question.width) {
  wait_for_gpu();
}

RivalSum::RivalSum(const RivalPart& part, const EdgeRanges& edges, const RivalQuestion& question)
    : width_(question.width),
      tuning_(question.tuning),
      groups_(edges.begin, edges.split, edges.end, part.shard.own,
              {.ps = tuning_.ps, .remote_ps = tuning_.remote(), .clusters = part.clusters.data()},
              nullptr) {
  const std::uint64_t sums = get_scratch(groups_, width_);
  if (tuning_.sums == GroupSums::ordered && sums * sizeof(float) <= machine().get_partial_sums)
    partial_sums_ = DeviceArray<float>(sums);
  wait_for_gpu();
}

void RivalSum::run(const Slot* slots, const float* x, const std::vector<PeerBlock>& blocks,
                   float* y, bool accumulate) {
  spmm_get({.groups = &groups_,
            .slots = slots,
            .x = x,
            .blocks = blocks,
            .stride = row_stride(width_),
            .width = width_,
            .y = y,
            .y_stride = width_,
            .accumulate = accumulate,
            .partial_sums = partial_sums_.data(),
            .tuning = tuning_},
           nullptr);
}

RivalState::~RivalState() {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const OnGpu on(gpus_[rank]);
    cudaDeviceSynchronize();
    parts_[rank].reset();
  }
}

void RivalState::make(const std::vector<int>& gpus) {
  gpus_ = gpus;
  prepare(gpus_);
  for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
    const OnGpu on(gpus_[rank]);
    parts_.push_back(std::make_unique<RivalPart>(question_, static_cast<int>(rank)));
  }
  make_rows();
}

void RivalState::steps(int count) {
  if (parts_.empty()) return;
  for (int k = 0; k < count; ++k) step();
  on_each([](int, RivalPart&) { wait_for_gpu(); });
}

void RivalState::on_each(const std::function<void(int, RivalPart&)>& work) {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const OnGpu on(gpus_[rank]);
    work(static_cast<int>(rank), *parts_[rank]);
  }
}

void RivalState::require_room(std::uint64_t bytes, const char* rows) {
  const std::uint64_t free = gpu_free_memory();
  require<DoesNotFitError>(bytes < free, "{} take {}, but only {} is free on GPU {}", rows,
                           format_bytes(bytes), format_bytes(free), current_gpu());
}

void RivalState::wait_for_others(int rank, DeviceEvent RivalPart::*event, cudaStream_t stream) {
  for (std::size_t other = 0; other < parts_.size(); ++other)
    if (static_cast<int>(other) != rank)
      check_cuda(cudaStreamWaitEvent(stream, (*parts_[other].*event).get(), 0), "an event");
}

RivalBench::RivalBench(World& world, const AnyCsr& graph, const Partition& partition,
                       GetRival rival, const GetTuning& tuning, std::uint64_t width) {
  const RivalQuestion question{graph, partition, tuning, width};
  state_ = rival == GetRival::managed_rows ? make_managed_rows(world, question)
                                           : make_pushed_rows(world, question);
  const std::vector<GpuId> ids = gather_found(world, current_gpu_id);
  on_all_or_none(world, [&] {
    if (world.rank() != 0) return;
    std::vector<int> gpus;
    for (const GpuId& id : ids) {
      gpus.push_back(gpu_of(id));
      require(gpus.back() >= 0, "rank 0 does not see the GPUs of all ranks, which it has to drive");
    }
    state_->make(gpus);
  });
}

RivalBench::~RivalBench() = default;

double RivalBench::check() {
  const RivalQuestion& q = state_->question();
  double worst = 0;
  on_all_or_none(state_->world(), [&] {
    state_->on_each([](int, RivalPart& part) {
      if (part.y.size() > 0)  // NaN
        check_cuda(cudaMemset(part.y.data(), 0xff, part.y.size() * sizeof(float)), "y");
    });
    state_->steps(1);
    state_->on_each([&](int rank, RivalPart& part) {
      const std::vector<float> y = part.y.to_host();
      worst = std::max(worst, worst_error(q.graph, q.partition, rank, q.width, y.data()));
    });
  });
  return largest_of_all(state_->world(), worst);
}

Times RivalBench::time_steps(const BenchEffort& effort) {
  return plait::time_steps(state_->world(), effort, [&](int count) {
    on_all_or_none(state_->world(), [&] { state_->steps(count); });
  });
}

}  // namespace plait
