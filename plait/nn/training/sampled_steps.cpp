// Steps on samples. On a GPU the host takes about as long to enqueue a step's hundred kernels as
// the GPU takes for them, and longer where products are fast: so a step is recorded once, on a room
// for batches (sample_room.h), and replayed. The work between ranks stays outside, so that each
// rank may take its own way with each batch.
//
// The room depends on the graph, the seed, the settings and the machine's profile alone: a run that
// goes on from a checkpoint takes the same way with each batch as one that was never interrupted,
// and the same bits come out, if both have the memory for a recording.
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/nn/batches/sample_room.h"
#include "plait/nn/batches/sampled_batches.h"
#include "plait/nn/training/trainable.h"
#include "plait/nn/training/training_run.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// Batches, the first of epoch 0, whose counts tell how large the room is to be.
constexpr std::int64_t kSeen = 32;

class SampledSteps : public EpochSteps {
 public:
  SampledSteps(TrainingRun& run, const Dataset& dataset, const Partition& partition)
      : run_(run),
        batches_(run.world, dataset, partition, run.config, split_of(dataset, run.config).span(),
                 run.config.route.gpu
                     ? sampled_bytes_ahead(dataset, partition, run.config, run.placing.rank())
                     : 0) {}

  std::int64_t count() const override { return batches_.steps(); }
  void begin_at(std::int64_t) override {}
  void prepare() override {
    if (!recorder_) record();
  }
  std::optional<double> take(int epoch, const std::atomic<bool>& stop) override;
  void forget_graph() override {}  // runs on samples try no ways
  std::int64_t replayed() const override { return replayed_; }

 private:
  // Collective. Tells whether any rank was asked to stop.
  bool any_stops(const std::atomic<bool>& stop) const;
  // Takes step `number` of the run's and adds the losses of this rank's examples to `sum`.
  void step(std::int64_t number, torch::Tensor& sum);
  // Compute the gradients of this rank on a batch, and return the loss, the sum over its examples.
  torch::Tensor compute(const SampledBatch& batch);
  torch::Tensor replay(const SampledBatch& batch);  // that fits into the room
  // Computes them on the batch in the room, with the loss in `step_loss_`.
  void compute_in_room();
  // Collective. Makes the room that batches move into, and records the step on it, if there may be
  // one. Done before the first batch is taken, while no thread prepares any.
  void record();

  TrainingRun& run_;
  SampledBatches batches_;
  std::optional<SampleRoom> room_;
  std::optional<Recorder> recorder_;
  torch::Tensor step_loss_;  // of the recorded work
  std::int64_t replayed_ = 0;
};

bool SampledSteps::any_stops(const std::atomic<bool>& stop) const {
  std::uint32_t wants = stop.load() ? 1 : 0;
  run_.world.all_reduce_max(std::span(&wants, 1));
  return wants > 0;
}

std::optional<double> SampledSteps::take(int epoch, const std::atomic<bool>& stop) {
  const BackwardHere here;
  TrainingState& training = run_.training;
  const World& world = run_.world;
  AddTime time(run_.costs.seconds);
  const Stopwatch watch;
  const EpochUnderWay begun = std::exchange(training.under_way, {});
  torch::Tensor sum = torch::full({}, begun.loss_of(world.rank(), world.size()),
                                  torch::dtype(torch::kFloat64).device(run_.device));
  double saving = 0;  // seconds
  const auto note = [&](std::int64_t taken) {
    const auto loss = sum.item<double>();  // waits for all that a GPU was given to do
    run_.graph->check();
    run_.note_under_way(taken, begun.milliseconds + (watch.seconds() - saving) * 1e3, loss);
  };
  for (std::int64_t i = begun.steps; i < training.steps; ++i) {
    if (any_stops(stop)) {
      if (i > 0) note(i);
      run_.costs.seconds -= saving;
      return std::nullopt;
    }
    if (i > begun.steps && run_.config.sampled->saves_before(i)) {
      AddTime pause(saving);
      note(i);
      run_.save();
    }
    step(epoch * training.steps + i, sum);
  }
  const auto total = sum.item<double>();
  run_.graph->check();
  training.under_way = {};
  run_.costs.seconds -= saving;
  return total;
}

void SampledSteps::step(std::int64_t number, torch::Tensor& sum) {
  const SampledBatch batch = batches_.batch(number, run_.graph);
  const bool replays = room_ && room_->fits(batch);
  const torch::Tensor loss = replays ? replay(batch) : compute(batch);
  run_.descend();
  sum.add_(loss);
  run_.graph->about_to_wait();  // the thread that prepares batches waits for this work
  run_.graph->check();
  for (const GraphRef& sample : batch.graphs) {
    run_.costs.cost.summing += sample->cost().summing;
    run_.costs.cost.fetching += sample->cost().fetching;
  }
}

torch::Tensor SampledSteps::replay(const SampledBatch& batch) {
  room_->take(batch);
  recorder_->run(Recorder::step, [&] { compute_in_room(); });
  ++replayed_;
  return step_loss_;
}

torch::Tensor SampledSteps::compute(const SampledBatch& batch) {
  const torch::Tensor scores =
      run_.learner.model.forward(batch.input, batch.graphs, {&run_.dropout, batch.step}, true);
  const torch::Tensor loss =
      run_.task.losses(scores, batch.targets, batch.graphs.back()).sum(torch::kFloat64);
  run_.learner.differentiate(loss, torch::full({}, 1 / batch.examples, loss.options()));
  return loss.detach();
}

void SampledSteps::compute_in_room() {
  const torch::Tensor scores =
      run_.learner.model.forward(room_->input(), room_->graphs(), room_->dropout_step(), true);
  const torch::Tensor loss = run_.task.losses(scores, room_->targets(), room_->graphs().back())
                                 .masked_fill(room_->left_over(), 0)
                                 .sum(torch::kFloat64);
  run_.learner.differentiate(loss, room_->share());
  step_loss_ = loss.detach();
}

void SampledSteps::record() {
  const BackwardHere here;
  const bool wanted =
      records_samples(run_.config, run_.input.is_sparse(), run_.placing.size()) && !profiling();
  recorder_.emplace(*run_.graph, wanted);
  if (!wanted) return;
  const Timed timed("record a step");
  const auto compute_again = [&] { compute_in_room(); };
  bool fits = true;
  try {
    const SampledBatch first = batches_.trial(0, run_.graph);
    compute(first);  // tells along which layers' edges gradients go
    std::vector<std::vector<SampleCounts>> seen(first.graphs.size());
    const auto see = [&](const SampledBatch& batch) {
      const std::vector<SampleCounts> counts = counts_of(batch);
      for (std::size_t l = 0; l < counts.size(); ++l) seen[l].push_back(counts[l]);
    };
    see(first);
    for (std::int64_t step = 1; step < std::min(kSeen, count()); ++step)
      see(batches_.trial(step, run_.graph));
    std::vector<SampleCounts> rooms;
    for (const std::vector<SampleCounts>& of_layer : seen) rooms.push_back(room_for(of_layer));
    room_.emplace(first, rooms, run_.graph, run_.dropout);
    room_->take(first);
    for (int k = 0; k < Recorder::kCallsBefore; ++k) recorder_->run(Recorder::step, compute_again);
  } catch (const c10::OutOfMemoryError&) {
    fits = false;
  } catch (const DoesNotFitError&) {
    fits = false;
  }
  if (all_can_record(run_.placing, fits)) recorder_->run(Recorder::step, compute_again);
  if (recorder_->replays(Recorder::step)) return;
  step_loss_.reset();
  room_.reset();
  release_gpu_caches();
}

}  // namespace

std::unique_ptr<EpochSteps> make_sampled_steps(TrainingRun& run, const Dataset& dataset,
                                               const Partition& partition) {
  return std::make_unique<SampledSteps>(run, dataset, partition);
}

}  // namespace plait
