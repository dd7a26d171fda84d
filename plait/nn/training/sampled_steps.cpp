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
#include "plait/nn/training/trainer_state.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// Batches, the first of epoch 0, whose counts tell how large the room is to be.
constexpr std::int64_t kSeen = 32;

}  // namespace

bool Trainer::State::any_stops() {
  double wants = asked_to_stop != nullptr && asked_to_stop->load() ? 1 : 0;
  world.all_reduce_sum(std::span(&wants, 1));
  return wants > 0;
}

std::optional<double> Trainer::State::sampled_steps(int epoch) {
  const BackwardHere here;
  AddTime time(step_seconds);
  const Stopwatch watch;
  const EpochUnderWay begun = std::exchange(training.under_way, {});
  torch::Tensor sum = torch::full({}, begun.loss_of(world.rank(), world.size()),
                                  torch::dtype(torch::kFloat64).device(device));
  double saving = 0;  // seconds
  const auto note = [&](std::int64_t taken) {
    const auto loss = sum.item<double>();  // waits for all that a GPU was given to do
    graph->check();
    note_under_way(taken, begun.milliseconds + (watch.seconds() - saving) * 1e3, loss);
  };
  for (std::int64_t i = begun.steps; i < training.steps; ++i) {
    if (any_stops()) {
      if (i > 0) note(i);
      step_seconds -= saving;
      return std::nullopt;
    }
    if (i > begun.steps && config.sampled->saves_before(i)) {
      AddTime pause(saving);
      note(i);
      save();
    }
    sampled_step(epoch * training.steps + i, sum);
  }
  const auto total = sum.item<double>();
  graph->check();
  training.under_way = {};
  step_seconds -= saving;
  return total;
}

void Trainer::State::sampled_step(std::int64_t number, torch::Tensor& sum) {
  const SampledBatch batch = batches->batch(number, graph);
  const bool replays = room && room->fits(batch);
  const torch::Tensor loss = replays ? replay(batch) : compute(batch);
  descend();
  sum.add_(loss);
  graph->about_to_wait();  // the thread that prepares batches waits for this work
  graph->check();
  for (const GraphRef& sample : batch.graphs) {
    cost.summing += sample->cost().summing;
    cost.fetching += sample->cost().fetching;
  }
}

torch::Tensor Trainer::State::replay(const SampledBatch& batch) {
  room->take(batch);
  room_recorder->run(Recorder::step, [&] { compute_in_room(); });
  ++replayed_steps;
  return step_loss;
}

torch::Tensor Trainer::State::compute(const SampledBatch& batch) {
  const torch::Tensor scores =
      model.forward(batch.input, batch.graphs, {&dropout, batch.step}, true);
  const torch::Tensor loss =
      task.losses(scores, batch.targets, batch.graphs.back()).sum(torch::kFloat64);
  differentiate(loss, torch::full({}, 1 / batch.examples, loss.options()));
  return loss.detach();
}

void Trainer::State::compute_in_room() {
  const torch::Tensor scores =
      model.forward(room->input(), room->graphs(), room->dropout_step(), true);
  const torch::Tensor loss = task.losses(scores, room->targets(), room->graphs().back())
                                 .masked_fill(room->left_over(), 0)
                                 .sum(torch::kFloat64);
  differentiate(loss, room->share());
  step_loss = loss.detach();
}

void Trainer::State::record_samples() {
  const BackwardHere here;
  const bool wanted = records_samples(config, input.is_sparse(), placing.size()) && !profiling();
  room_recorder.emplace(*graph, wanted);
  if (!wanted) return;
  const Timed timed("record a step");
  const auto compute_again = [&] { compute_in_room(); };
  bool fits = true;
  try {
    const SampledBatch first = batches->trial(0, graph);
    compute(first);  // tells along which layers' edges gradients go
    std::vector<std::vector<SampleCounts>> seen(first.graphs.size());
    const auto see = [&](const SampledBatch& batch) {
      const std::vector<SampleCounts> counts = counts_of(batch);
      for (std::size_t l = 0; l < counts.size(); ++l) seen[l].push_back(counts[l]);
    };
    see(first);
    for (std::int64_t step = 1; step < std::min(kSeen, training.steps); ++step)
      see(batches->trial(step, graph));
    std::vector<SampleCounts> rooms;
    for (const std::vector<SampleCounts>& of_layer : seen) rooms.push_back(room_for(of_layer));
    room.emplace(first, rooms, graph, dropout);
    room->take(first);
    for (int k = 0; k < Recorder::kCallsBefore; ++k)
      room_recorder->run(Recorder::step, compute_again);
  } catch (const c10::OutOfMemoryError&) {
    fits = false;
  } catch (const DoesNotFitError&) {
    fits = false;
  }
  if (all_can_record(placing, fits)) room_recorder->run(Recorder::step, compute_again);
  if (room_recorder->replays(Recorder::step)) return;
  step_loss.reset();
  room.reset();
  release_gpu_caches();
}

}  // namespace plait
