// The step of an epoch on the whole graph: recorded once and replayed on GPUs, where that is
// possible (recorded.h).
#include <utility>

#include "plait/base/timer.h"
#include "plait/nn/training/training_run.h"

namespace plait {
namespace {

class FullGraphSteps : public EpochSteps {
 public:
  explicit FullGraphSteps(TrainingRun& run)
      : run_(run),
        share_of_one_(torch::full({}, 1 / run.targets.total(Split::train), run.device)),
        epoch_at_(torch::zeros({}, torch::dtype(torch::kInt32).device(run.device))) {}

  std::int64_t count() const override { return 1; }
  void begin_at(std::int64_t epoch) override { epoch_at_.fill_(epoch); }
  void prepare() override {}
  std::optional<double> take(int epoch, const std::atomic<bool>&) override {
    AddTime time(run_.costs.seconds);
    run_.recorder->run(Recorder::step, [&] { compute(epoch); });
    run_.graph->about_to_wait();
    const auto loss = step_loss_.item<double>();  // waits for all that a GPU was given to do
    run_.graph->check();
    return loss;
  }
  void forget_graph() override { step_loss_.reset(); }
  std::int64_t replayed() const override { return 0; }

 private:
  void compute(int epoch) {
    const GraphRef& graph = run_.graph;
    const auto* const at = reinterpret_cast<std::uint32_t*>(epoch_at_.mutable_data_ptr<int>());
    const DropoutStep drop_step{&run_.dropout, static_cast<std::uint32_t>(epoch), 0, at};
    const torch::Tensor losses =
        run_.task.losses(run_.scores(drop_step, true), run_.targets.of(Split::train), graph);
    const BackwardHere here;
    const torch::Tensor loss = losses.sum();
    run_.learner.differentiate(loss, share_of_one_);
    run_.descend();
    epoch_at_.add_(1);
    step_loss_ = graph->exact() ? part_of_total(losses, graph) : loss.detach();
  }

  TrainingRun& run_;
  const torch::Tensor share_of_one_;  // factor of the loss of one training example
  torch::Tensor epoch_at_;            // one int32: the epoch under way, which a recorded step reads
  torch::Tensor step_loss_;
};

}  // namespace

std::unique_ptr<EpochSteps> make_full_graph_steps(TrainingRun& run) {
  return std::make_unique<FullGraphSteps>(run);
}

}  // namespace plait
