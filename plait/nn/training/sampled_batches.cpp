#include "plait/nn/training/sampled_batches.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/random.h"
#include "plait/nn/training/sample_maker.h"
#include "plait/sample/draw.h"

namespace plait {
namespace {

constexpr std::uint64_t kOrder = std::uint64_t{0x4F72646572}
                                 << 24;  // counters of the order of examples

// The labelled training examples.
std::vector<std::uint64_t> training_examples(const Dataset& dataset, std::span<const Split> split) {
  std::vector<std::uint64_t> examples;
  for (std::uint64_t v = 0; v < split.size(); ++v)
    if (split[v] == Split::train && (dataset.labels.empty() || dataset.labels[v] >= 0))
      examples.push_back(v);
  return examples;
}

// Returns the examples in the order of an epoch: by random numbers that are keyed by the vertex.
std::vector<std::uint64_t> in_order_of(std::uint64_t epoch, std::uint64_t seed,
                                       const Dataset& dataset,
                                       std::vector<std::uint64_t> examples) {
  struct Keyed {
    std::uint64_t key, number, example;
    auto operator<=>(const Keyed&) const = default;
  };
  const Philox philox(seed);
  std::vector<Keyed> keyed;
  keyed.reserve(examples.size());
  for (const std::uint64_t v : examples) {
    const auto words = philox(dataset.number(v), kOrder | epoch);
    keyed.push_back({std::uint64_t{words[0]} << 32 | words[1], dataset.number(v), v});
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, examples.begin(), &Keyed::example);
  return examples;
}

}  // namespace

struct SampledBatches::State {
  struct Prepared {
    std::int64_t step = 0;
    MadeBatch made;
    double examples = 0;  // of all ranks
  };

  World& world;
  const Dataset& dataset;
  const Partition& partition;
  const TrainConfig config;
  const std::vector<std::uint64_t> examples;
  const std::int64_t steps;  // of an epoch
  const SampledGraph graph;
  const Dropout dropout;
  const std::unique_ptr<SampleMaker> maker;
  std::pair<std::int64_t, std::vector<std::uint64_t>> order{-1, {}};  // of the epoch under way

  std::mutex mutex;  // guards the three below
  std::condition_variable_any changed;
  std::deque<Prepared> ready;
  std::exception_ptr error;
  std::jthread worker;  // the last member: it ends before the others do

  State(World& w, const Dataset& d, const Partition& p, const TrainConfig& c,
        std::span<const Split> split, std::uint64_t ahead)
      : world(w),
        dataset(d),
        partition(p),
        config(c),
        examples(training_examples(d, split)),
        steps((std::ssize(examples) + group() - 1) / group()),
        graph(d, c.model),
        dropout(c.model.seed, c.model.dropout),
        maker(c.route.gpu              ? make_gpu_samples(w, d, graph, c, ahead)
              : c.sampled->cooperative ? make_cooperative_samples(w, d, graph, c, p)
                                       : make_cpu_samples(d, graph, c)) {
    const std::int64_t last = std::ssize(examples) % group();
    require<UsageError>(c.model.norm != NormKind::batch || (group() > 1 && last != 1),
                        "a step takes 1 of {} examples, over which nothing can be normalised; "
                        "change --batch, or --norm",
                        examples.size());
  }

  // Examples of all ranks in a step.
  std::int64_t group() const { return config.sampled->batch * world.size(); }

  // Returns the examples of a step, of all ranks.
  std::span<const std::uint64_t> examples_of(std::int64_t step) {
    const std::int64_t epoch = step / steps;
    if (order.first != epoch)
      order = {epoch, in_order_of(static_cast<std::uint64_t>(epoch), config.model.seed, dataset,
                                  examples)};
    const std::int64_t first = step % steps * group();
    const std::int64_t count = std::min(group(), std::ssize(examples) - first);
    return std::span<const std::uint64_t>(order.second)
        .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

  // Returns this rank's examples: those that it owns of a cooperative batch, else a part that
  // differs by one at most from the others.
  std::vector<std::uint64_t> seeds_of(std::span<const std::uint64_t> all) const {
    std::vector<std::uint64_t> seeds;
    if (config.sampled->cooperative) {
      std::ranges::copy_if(all, std::back_inserter(seeds),
                           [&](std::uint64_t v) { return partition.owner(v) == world.rank(); });
      return seeds;
    }
    const std::int64_t begin = std::ssize(all) * world.rank() / world.size();
    const std::int64_t end = std::ssize(all) * (world.rank() + 1) / world.size();
    seeds.assign(all.begin() + begin, all.begin() + end);
    return seeds;
  }

  Prepared prepare(std::int64_t step) {
    const std::span all = examples_of(step);
    const std::uint64_t key = sample_key(config.model.seed, static_cast<std::uint64_t>(step));
    const DropoutStep first_layer{&dropout, static_cast<std::uint32_t>(step)};
    return {step, maker->make(seeds_of(all), key, first_layer), static_cast<double>(all.size())};
  }

  // Prepares batches from `step` on, until it is asked to stop; cooperative ones until as many are
  // ready as may be, so that ranks that take the same batches prepare the same.
  void work(const std::stop_token& stop, std::int64_t step) {
    const ThreadCount one(1);  // the others compute
    try {
      for (;; ++step) {
        {
          std::unique_lock lock(mutex);
          const bool room = changed.wait(
              lock, stop, [&] { return std::ssize(ready) < config.sampled->prefetch; });
          if (!room || (stop.stop_requested() && !config.sampled->cooperative)) return;
        }
        Prepared next = prepare(step);
        const std::lock_guard lock(mutex);
        ready.push_back(std::move(next));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      changed.notify_all();
    }
  }

  [[noreturn]] void rethrow() {
    try {
      std::rethrow_exception(error);
    } catch (const BrokenChannelError& broken) {
      world.explain(broken.what());
      throw;  // not reached: explain() does not return
    }
  }

  Prepared take(std::int64_t step) {
    const Timed timed("wait for a batch");
    if (!worker.joinable())
      worker = std::jthread([this, step](const std::stop_token& stop) { work(stop, step); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !ready.empty() || error; });
    if (ready.empty()) rethrow();
    Prepared next = std::move(ready.front());
    ready.pop_front();
    changed.notify_all();
    require(next.step == step, "batch {} was asked for, but {} is next", step, next.step);
    return next;
  }
};

SampledBatches::SampledBatches(World& world, const Dataset& dataset, const Partition& partition,
                               const TrainConfig& config, std::span<const Split> split,
                               std::uint64_t ahead)
    : state_((check_sampled(dataset, config),
              std::make_unique<State>(world, dataset, partition, config, split, ahead))) {}

SampledBatches::~SampledBatches() = default;

std::int64_t SampledBatches::steps() const { return state_->steps; }

SampledBatch SampledBatches::batch(std::int64_t step, const GraphRef& placed) {
  State& s = *state_;
  State::Prepared next = s.take(step);
  MadeBatch& made = next.made;
  if (made.wait) made.wait();
  // Own rows of each layer on all ranks, over which batches are normalised.
  std::vector<double> rows;
  for (const LayerSample& layer : made.layers)
    rows.push_back(static_cast<double>(layer.edges->own()));
  if (s.config.model.norm == NormKind::batch) s.world.all_reduce_sum(rows);
  SampledBatch batch{
      std::move(made.memory), std::move(made.input), {}, std::move(made.targets), next.examples};
  for (std::size_t l = 0; l < rows.size(); ++l)
    batch.graphs.push_back(c10::make_intrusive<GraphHandle>(
        placed, std::move(made.layers[l].edges), static_cast<std::uint64_t>(rows[l]),
        std::move(made.layers[l].scales), std::move(made.layers[l].rows)));
  return batch;
}

void check_sampled(const Dataset& dataset, const TrainConfig& config) {
  const SampledTraining& s = *config.sampled;
  require<UsageError>(!dataset.is_set_of_graphs(),
                      "{} is a set of graphs; only one graph is sampled", dataset.name);
  require<UsageError>(std::ssize(s.fanouts) == config.model.layers,
                      "--fanout has {} numbers for {} layers; give one per layer", s.fanouts.size(),
                      config.model.layers);
  require<UsageError>(config.trials.empty(), "trials are of steps on the whole graph");
  require<UsageError>(s.batch >= 1 && s.prefetch >= 1,
                      "batch is {} and prefetch {}; use at least 1", s.batch, s.prefetch);
  require<UsageError>(!s.cooperative || !config.route.gpu,
                      "ranks on GPUs sample for themselves; leave out --cooperative");
  require<UsageError>(!config.route.exact,
                      "exact sums are of the whole graph; leave out --exact or --sampled");
}

}  // namespace plait
