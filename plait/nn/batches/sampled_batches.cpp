#include "plait/nn/batches/sampled_batches.h"

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
#include "plait/base/setting.h"
#include "plait/nn/batches/sample_maker.h"
#include "plait/nn/operations/share_rows.h"
#include "plait/nn/training/train.h"
#include "plait/sample/check.h"
#include "plait/sample/draw.h"
#include "plait/symmetric/agreement.h"

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
  World& placing;  // as graph_ranks()
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
        placing(graph_ranks(w, c)),
        dataset(d),
        partition(p),
        config(c),
        examples(training_examples(d, split)),
        steps((std::ssize(examples) + group() - 1) / group()),
        graph(d, c.model, *c.sampled),
        dropout(c.model.seed, c.model.dropout),
        maker(make_samples(ahead)) {
    const std::int64_t last = std::ssize(examples) % group();
    require<UsageError>(c.model.norm != NormKind::batch || (group() > 1 && last != 1),
                        "a step takes 1 of {} examples, over which nothing can be normalised; "
                        "change {}, or {}",
                        examples.size(), setting("batch"), setting("norm"));
  }

  std::unique_ptr<SampleMaker> make_samples(std::uint64_t ahead) const {
    if (config.route.gpu) return make_samples_on_gpus(ahead);
    return config.sampled->cooperative
               ? make_cooperative_samples(world, dataset, graph, config, partition)
               : make_cpu_samples(dataset, graph, config);
  }

  std::unique_ptr<SampleMaker> make_samples_on_gpus(std::uint64_t ahead) const {
    std::unique_ptr<SampleMaker> made;
    on_all_hosts(world, placing, [&] {
      made = config.sampled->cooperative
                 ? make_gpu_cooperative_samples(placing, dataset, graph, config, partition, ahead)
                 : make_gpu_samples(placing, dataset, graph, config, ahead);
    });
    return made;
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

  // Returns the place behind the examples of the first `ranks` ranks, whose numbers differ by one
  // at most.
  std::size_t end_of(std::span<const std::uint64_t> all, int ranks) const {
    return all.size() * static_cast<std::size_t>(ranks) / static_cast<std::size_t>(world.size());
  }

  // Returns those of the examples that this rank owns.
  std::vector<std::uint64_t> owned(std::span<const std::uint64_t> all) const {
    std::vector<std::uint64_t> seeds;
    std::ranges::copy_if(all, std::back_inserter(seeds),
                         [&](std::uint64_t v) { return partition.owner(v) == world.rank(); });
    return seeds;
  }

  Prepared prepare(std::int64_t step) {
    const std::span all = examples_of(step);
    const std::uint64_t key = sample_key(config.model.seed, static_cast<std::uint64_t>(step));
    const DropoutStep first_layer{&dropout, static_cast<std::uint32_t>(step)};
    const auto of_all = static_cast<double>(all.size());
    if (config.sampled->cooperative) {
      const std::vector<std::uint64_t> own = owned(all);
      return {step, maker->make({own, 0, key}, first_layer), of_all};
    }
    const std::size_t begin = end_of(all, world.rank()), end = end_of(all, world.rank() + 1);
    const StepSeeds seeds{all.subspan(begin, end - begin), static_cast<std::uint32_t>(begin), key};
    return {step, maker->make(seeds, first_layer), of_all};
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

  // Prepares a batch by the thread that computes.
  Prepared prepare_here(std::int64_t step) {
    const Timed timed("prepare a batch");
    try {
      return prepare(step);
    } catch (...) {
      error = std::current_exception();
      rethrow();
    }
  }

  Prepared take(std::int64_t step) {
    if (config.sampled->prefetch == 0) return prepare_here(step);
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

  SampledBatch batch_of(Prepared prepared, const GraphRef& placed) const {
    MadeBatch& made = prepared.made;
    if (made.wait) made.wait();
    // Own rows of each layer on all ranks, over which batches are normalised.
    std::vector<std::uint64_t> rows;
    for (const LayerSample& layer : made.layers)
      rows.push_back(static_cast<std::uint64_t>(layer.edges->own()));
    if (config.model.norm == NormKind::batch) world.all_reduce_sum(rows);
    SampledBatch batch{
        std::move(made.memory),  std::move(made.input), {},
        std::move(made.targets), prepared.examples,     static_cast<std::uint32_t>(prepared.step)};
    for (std::size_t l = 0; l < rows.size(); ++l)
      batch.graphs.push_back(c10::make_intrusive<GraphHandle>(
          placed, std::move(made.layers[l].edges), rows[l], std::move(made.layers[l].scales),
          std::move(made.layers[l].rows)));
    if (made.shares_input)
      batch.input = batch.input.with_rows(
          [&](const torch::Tensor& own) { return share_rows(own, batch.graphs.front()); });
    return batch;
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
  return state_->batch_of(state_->take(step), placed);
}

SampledBatch SampledBatches::trial(std::int64_t step, const GraphRef& placed) {
  return state_->batch_of(state_->prepare(step), placed);
}

namespace {

// Checks the weights and times that decide how samples are drawn.
void check_sample_values(const Dataset& dataset, const SampledTraining& s) {
  require<UsageError>(!s.by_weight || is_weighted(dataset.graph),
                      "{} has no edge weights; leave out {}", dataset.name, setting("by-weight"));
  if (s.by_weight) {
    try {
      check_weights(dataset.edges(),
                    std::visit([](const auto& csr) { return csr.weights.span(); }, dataset.graph));
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("{}: {}, or leave out {}", dataset.name, error.what(), setting("by-weight")));
    }
  }
  const auto suits = [&](const Array<std::int64_t>& times, std::uint64_t count) {
    return times.empty() || times.size() == count;
  };
  require<UsageError>(
      suits(s.times.vertices, dataset.vertices()) && suits(s.times.edges, dataset.edges()) &&
          suits(s.times.examples, dataset.vertices()),
      "there are times of {} vertices, {} edges and {} examples for {} vertices and {} edges",
      s.times.vertices.size(), s.times.edges.size(), s.times.examples.size(), dataset.vertices(),
      dataset.edges());
  const bool timed = s.times.any();
  require<UsageError>(!timed || !s.times.vertices.empty() || !s.times.examples.empty(),
                      "edges have times, but no time of an example is known; give {}, "
                      "or {} for both vertices and examples",
                      setting("example-times"), setting("vertex-times"));
  require<UsageError>(timed || s.times.examples.empty() || dataset.edges() == 0,
                      "{} is for {} or {}; give one of them", setting("example-times"),
                      setting("edge-times"), setting("vertex-times"));
  require<UsageError>(timed || !s.latest || dataset.edges() == 0,
                      "{} is for {} or {}; give one of them", setting("latest"),
                      setting("edge-times"), setting("vertex-times"));
  require<UsageError>(!s.latest || !(s.by_weight || s.replace),
                      "the latest edges are taken, not drawn; leave out {}, or {} "
                      "and {}",
                      setting("latest"), setting("by-weight"), setting("with-replacement"));
  require<UsageError>(!timed || !s.cooperative,
                      "with times, each example has a sample of its own, in which ranks share "
                      "nothing; leave out {}",
                      setting("cooperative"));
}

}  // namespace

void check_sampled(const Dataset& dataset, const TrainConfig& config) {
  const SampledTraining& s = *config.sampled;
  require<UsageError>(!dataset.is_set_of_graphs(),
                      "{} is a set of graphs; only one graph is sampled", dataset.name);
  require<UsageError>(std::ssize(s.fanouts) == config.model.layers,
                      "{} has {} numbers for {} layers; give one per layer", setting("fanout"),
                      s.fanouts.size(), config.model.layers);
  check_sample_values(dataset, s);
  require<UsageError>(config.trials.empty(), "trials are of steps on the whole graph");
  require<UsageError>(s.batch >= 1 && s.batch < std::int64_t{kMaxVertices32},
                      "batch is {}; use 1 to {}", s.batch, kMaxVertices32 - 1);
  require<UsageError>(s.prefetch >= 0, "prefetch is {}; use at least 0", s.prefetch);
  require<UsageError>(!config.route.exact, "exact sums are of the whole graph; leave out {} or {}",
                      setting("exact"), setting("sampled"));
}

}  // namespace plait
