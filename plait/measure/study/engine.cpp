#include "plait/measure/study/engine.h"

#include <algorithm>
#include <array>

#include "plait/aggregate/run_memory.h"
#include "plait/aggregate/shared_order.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/progress.h"
#include "plait/base/random.h"
#include "plait/base/timer.h"
#include "plait/kernels/cuda/get_occupancy.h"
#include "plait/measure/cuda/bench.h"
#include "plait/measure/cuda/rival_bench.h"
#include "plait/measure/made_data.h"
#include "plait/measure/model_bench.h"
#include "plait/measure/study/memory.h"
#include "plait/measure/study/training.h"
#include "plait/nn/model.h"
#include "plait/sample/draw.h"
#include "plait/sample/neighbours.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr double kTolerance = 1e-5;    // of a step's result, relative
constexpr double kMostSeconds = 2;     // of work that is no part of a step
constexpr std::int32_t kClasses = 16;  // of the labels that an epoch learns
// Bytes of each rank's part of a table of random rows.
constexpr std::uint64_t kTableOnGpu = std::uint64_t{1} << 30, kTableOnCpu = std::uint64_t{1} << 26;

// Tells whether two entries can be measured on the same placed graph.
bool same_way(const StudyEntry& a, const StudyEntry& b) {
  const Route &x = a.options.route, &y = b.options.route;
  const GpuTuning &s = a.options.tuning, &t = b.options.tuning;
  return a.order == b.order && x.strategy == y.strategy && x.get == y.get &&
         x.partition == y.partition && s.sum_by_cusparse == t.sum_by_cusparse &&
         s.group_edges == t.group_edges;
}

// A placed graph.
struct PlacedGraph {
  StudyEntry entry;
  std::unique_ptr<Aggregator> on_cpu;
  std::unique_ptr<GpuAggregator> on_gpu;

  Aggregator& aggregator() const { return on_gpu ? *on_gpu : *on_cpu; }
};

class StudyEngine {
 public:
  StudyEngine(World& world, const StudySettings& settings)
      : world_(world), settings_(settings), input_(settings.graph ? settings.graph() : Dataset{}) {}

  const Dataset& input() const { return input_; }

  StudyRow measure(const StudyEntry& entry) {
    const Phase phase(fmt::format("measuring {}", entry.name));
    StudyRow row{.entry = entry, .times = {}, .ratio = {}};
    switch (entry.part) {
      case StudyPart::ordering:
        row.times = time_work([&] { in_order(entry); });
        break;
      case StudyPart::partition:
        row.times = time_work([&] {
          shared_partition(world_, dataset(entry), entry.options.route.partition, settings_.seed);
        });
        break;
      case StudyPart::placing:
        row.times = time_work([&] { place(entry); });
        break;
      case StudyPart::first_step:
        row.times = time_first_step(entry);
        break;
      case StudyPart::epoch:
        row.times = time_epoch(entry);
        break;
      case StudyPart::training:
        train(entry, row);
        break;
      case StudyPart::ahead:
      case StudyPart::in_turn:
      case StudyPart::sampling:
      case StudyPart::gathering:
      case StudyPart::computing:
        row.times = part_of_epoch(entry);
        break;
      case StudyPart::rows:
        gather(entry, row);
        break;
      case StudyPart::reads:
        placed_.reset();
        row.times.ms = time_read_chain(world_, {.memory = *entry.chain,
                                                .bytes = entry.bytes,
                                                .gpus = entry.options.route.gpu,
                                                .repetitions = settings_.effort.repetitions});
        break;
      case StudyPart::memory:
        measure_memory(entry, row);
        break;
      default:
        measure_step(entry, row);
    }
    return row;
  }

 private:
  std::optional<Dataset> in_order(const StudyEntry& entry) {
    return shared_renumbering(world_, input_, entry.order, settings_.seed, entry.options.route.gpu);
  }
  // Returns the graph in the entry's order, which is kept.
  const Dataset& dataset(const StudyEntry& entry) {
    if (entry.order == ReorderMethod::none) return input_;
    auto found = renumbered_.find(entry.order);
    if (found == renumbered_.end()) found = renumbered_.emplace(entry.order, in_order(entry)).first;
    return found->second ? *found->second : input_;
  }
  // Returns the owners of its vertices, which are kept.
  const Partition& partition(const StudyEntry& entry) {
    const PartitionScheme scheme = entry.options.route.partition;
    const std::pair key{entry.order, scheme};
    auto found = partitions_.find(key);
    if (found == partitions_.end())
      found =
          partitions_.emplace(key, shared_partition(world_, dataset(entry), scheme, settings_.seed))
              .first;
    return found->second;
  }

  // Places the graph anew, unless the last entry has left it placed in the same way and `again` is
  // false.
  const PlacedGraph& place(const StudyEntry& entry, bool again = true) {
    if (!again && placed_ && same_way(placed_->entry, entry)) return *placed_;
    placed_.reset();  // frees its memory before the next one is judged
    const Dataset& data = dataset(entry);
    const Partition& owners = partition(entry);
    require_run_fits(
        world_, data.graph, data.symmetric, owners,
        {.route = entry.options.route, .shards = entry.options.shards, .widths = {entry.width}},
        "the aggregation");
    auto placed = std::make_unique<PlacedGraph>();
    placed->entry = entry;
    if (entry.options.route.gpu) {
      placed->on_gpu =
          make_gpu_aggregator(world_, data.graph, data.symmetric, owners, entry.options);
      wait_for_gpu();
    } else {
      placed->on_cpu = make_aggregator(world_, data.graph, data.symmetric, owners, entry.options);
    }
    placed_ = std::move(placed);
    return *placed_;
  }

  std::unique_ptr<AggregateBench> bench_of(const PlacedGraph& placed, const StudyEntry& entry) {
    const AnyCsr& csr = dataset(entry).graph;
    const Partition& owners = partition(entry);
    if (placed.on_gpu)
      return std::make_unique<GpuBench>(world_, csr, owners, *placed.on_gpu, entry.width);
    return make_cpu_bench(world_, csr, owners, *placed.on_cpu, entry.width);
  }

  void measure_rival(const StudyEntry& entry, StudyRow& row) {
    placed_.reset();
    GetTuning tuning = entry.options.route.get;
    tuning.read_with = ReadWith::addresses;  // a rival's memory is not NVSHMEM's
    RivalBench bench(world_, dataset(entry).graph, partition(entry), *entry.rival, tuning,
                     entry.width);
    check(bench, row);
    row.times = bench.time_steps(settings_.effort);
  }

  static void check(AggregateBench& bench, StudyRow& row) {
    row.error = bench.check();
    require<MismatchError>(row.error < kTolerance, "{} is wrong by {} relative", row.entry.name,
                           row.error);
  }

  void measure_step(const StudyEntry& entry, StudyRow& row) {
    if (entry.rival) return measure_rival(entry, row);
    const PlacedGraph& placed = place(entry, false);
    const std::unique_ptr<AggregateBench> bench = bench_of(placed, entry);
    const std::uint64_t before = placed.aggregator().cost().bytes_fetched;
    check(*bench, row);
    row.bytes = placed.aggregator().cost().bytes_fetched - before;
    switch (entry.part) {
      case StudyPart::step:
        row.times = bench->time_steps(settings_.effort);
        if (entry.occupancy) add_occupancy(entry, row);
        break;
      case StudyPart::link:
        row.times = time_part(*bench, StepPart::link);
        break;
      case StudyPart::sum:
        row.times = time_part(*bench, StepPart::sum);
        break;
      case StudyPart::waiting:
        row.times = time_share(placed, *bench, &ExchangeCost::waiting);
        break;
      case StudyPart::fetching:
        row.times = time_share(placed, *bench, &ExchangeCost::fetching);
        break;
      default:
        row.times = time_share(placed, *bench, &ExchangeCost::summing);
    }
  }

  // The occupancy is that of this rank's GPU.
  void add_occupancy(const StudyEntry& entry, StudyRow& row) {
    const GetOccupancy found = get_occupancy(entry.options.route.get, entry.width);
    row.entry.figures = {{"blocks_at_once", static_cast<double>(found.blocks)},
                         {"registers", static_cast<double>(found.registers)},
                         {"occupancy", found.share()}};
  }

  // On GPUs only, as the table of studies says.
  Times time_part(AggregateBench& bench, StepPart part) {
    return dynamic_cast<GpuBench&>(bench).time_part(part, settings_.effort);
  }

  // Times the share of steps that the exchange accounts for itself.
  Times time_share(const PlacedGraph& placed, AggregateBench& bench, double ExchangeCost::*share) {
    Times times;
    for (int r = 0; r < settings_.effort.repetitions; ++r) {
      const BenchEffort once{.repetitions = 1, .seconds = settings_.effort.seconds};
      const double before = placed.aggregator().cost().*share;
      const Stopwatch watch;
      const double step_ms = bench.time_steps(once).median();
      const double part = (placed.aggregator().cost().*share - before) / watch.seconds();
      times.ms.push_back(largest_of_all(world_, part * step_ms));
    }
    std::ranges::sort(times.ms);
    return times;
  }

  // The steps of a run of the fewest steps, less those of a second run.
  Times time_first_step(const StudyEntry& entry) {
    const BenchEffort once{.repetitions = 1, .seconds = 0};
    Times times;
    for (int r = 0; r < settings_.effort.repetitions; ++r) {
      const std::unique_ptr<AggregateBench> bench = bench_of(place(entry), entry);
      const double first = time_once([&] { bench->time_steps(once); });
      const double second = time_once([&] { bench->time_steps(once); });
      times.ms.push_back(std::max(first - second, 0.0));
    }
    std::ranges::sort(times.ms);
    return times;
  }

  Times time_epoch(const StudyEntry& entry) {
    placed_.reset();
    const Partition& owners = partition(entry);
    ModelBench bench(world_, settings_.graph(), owners, {.model = default_model("gcn")},
                     {.width = entry.width, .classes = kClasses, .seed = settings_.seed});
    return bench.time_training(entry.options.route, settings_.effort).times;
  }

  void train(const StudyEntry& entry, StudyRow& row) {
    placed_.reset();
    StudyTraining found = train_for_study(world_, dataset(entry), partition(entry), entry,
                                          settings_.seed, settings_.effort.repetitions);
    row.times = std::move(found.times);
    row.entry.figures = std::move(found.figures);
    row.validation = std::move(found.validation);
  }

  // Returns one of the times of an epoch, which are measured together.
  Times part_of_epoch(const StudyEntry& entry) {
    placed_.reset();
    auto found = epochs_.find(entry.model);
    if (found == epochs_.end()) {
      const TrainConfig config = sampled_config(entry, settings_.seed);
      found =
          epochs_
              .emplace(entry.model, time_sampled_epochs(world_, dataset(entry), partition(entry),
                                                        config, settings_.effort.repetitions))
              .first;
    }
    const StudyEpochs& epoch = found->second;
    switch (entry.part) {
      case StudyPart::ahead:
        return epoch.ahead;
      case StudyPart::in_turn:
        return epoch.in_turn;
      case StudyPart::sampling:
        return epoch.sampling;
      case StudyPart::gathering:
        return epoch.gathering;
      default:
        return epoch.computing;
    }
  }

  void gather(const StudyEntry& entry, StudyRow& row) {
    placed_.reset();
    const bool gpus = entry.options.route.gpu, samples = entry.ids == StudyIds::samples;
    const std::uint64_t table = gpus ? kTableOnGpu : kTableOnCpu,
                        bytes = entry.width * sizeof(float);
    const auto ranks = static_cast<std::uint64_t>(world_.size());
    const GatherQuestion question{
        .rows = samples ? dataset(entry).vertices() : table / bytes * ranks,
        .width = entry.width,
        .gpus = gpus};
    GatherBench bench(world_, question);
    bench.set_ids(samples ? sampled_ids(dataset(entry).graph)
                          : random_ids(table / bytes / 4, question.rows));
    row.error = bench.check(*entry.gather);
    require<MismatchError>(row.error == 0, "rows that {} brings are wrong by {} relative",
                           to_string(*entry.gather), row.error);
    row.times = bench.time(*entry.gather, settings_.effort);
    const double rate = static_cast<double>(bench.bytes()) / row.times.median() / 1e6;
    auto& figures = row.entry.figures;
    figures.insert(figures.begin(), {{"gb_s", rate}, {"link_gb_s", rate * bench.crossing()}});
  }

  // Returns the vertices of a batch of samples of this rank's, as WholeGraph trains.
  std::vector<std::uint64_t> sampled_ids(const AnyCsr& graph) const {
    constexpr std::size_t kBatch = 512;
    const NeighbourSampler sampler(graph, {.fanouts = {30, 30, 30}, .targets = HopTargets::all});
    const std::vector<std::uint64_t> seeds =
        random_ids(vertex_count(graph) > 0 ? kBatch : 0, vertex_count(graph));
    const Sample sample =
        sampler.sample(seeds, sample_key(settings_.seed, 0), *sampler.workspace());
    return {sample.vertices.begin(), sample.vertices.end()};
  }
  // Returns as many ids below `rows`, others on each rank.
  std::vector<std::uint64_t> random_ids(std::uint64_t count, std::uint64_t rows) const {
    const Philox random(settings_.seed);
    std::vector<std::uint64_t> ids(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Philox::Block words = random(i, static_cast<std::uint64_t>(world_.rank()));
      ids[i] = uniform_below(rows, words[0], words[1]);
    }
    return ids;
  }

  void measure_memory(const StudyEntry& entry, StudyRow& row) {
    placed_.reset();
    StudyMemory found = memory_for_study(world_, dataset(entry), partition(entry), entry,
                                         {.graph = settings_.graph,
                                          .seed = settings_.seed,
                                          .repetitions = settings_.effort.repetitions});
    row.times = std::move(found.times);
    const auto planned = static_cast<double>(found.planned);
    const auto measured = static_cast<double>(found.measured);
    row.entry.figures = {{"planned_bytes", planned}, {"measured_bytes", measured}};
    if (planned > 0) row.ratio = measured / planned;
  }

  // Returns the ms that the slowest rank takes for `work`, which all do at once.
  template <class Work>
  double time_once(const Work& work) {
    world_.barrier();
    const Stopwatch watch;
    work();
    return largest_of_all(world_, watch.seconds() * 1e3);
  }
  template <class Work>
  Times time_work(const Work& work) {
    Times times;
    double all = 0;
    for (int r = 0; r < settings_.effort.repetitions && all < kMostSeconds * 1e3; ++r) {
      times.ms.push_back(time_once(work));
      all += times.ms.back();  // the same on all ranks
    }
    std::ranges::sort(times.ms);
    return times;
  }

  World& world_;
  const StudySettings& settings_;
  const Dataset input_;
  std::map<ReorderMethod, std::optional<Dataset>> renumbered_;  // none: vertices keep their order
  std::map<std::pair<ReorderMethod, PartitionScheme>, Partition> partitions_;
  std::map<std::string, StudyEpochs> epochs_;  // by model
  std::unique_ptr<PlacedGraph> placed_;        // by the last entry
};

// Work that is done once has no ratio to steps, unless the study asks for its share.
bool has_ratio(StudyRatio ratio, const StudyRow& row) {
  static constexpr std::array kParts{StudyPart::step, StudyPart::training, StudyPart::rows,
                                     StudyPart::reads};
  return ratio == StudyRatio::share || std::ranges::find(kParts, row.entry.part) != kParts.end();
}

// Sets the ratios of rows to those that they refer to, where both were measured.
void set_ratios(StudyRatio ratio, const std::string& first, std::vector<StudyRow>& rows) {
  for (StudyRow& row : rows) {
    const auto other =
        std::ranges::find(rows, row.entry.of.empty() ? first : row.entry.of,
                          [](const StudyRow& one) -> const std::string& { return one.entry.name; });
    if (other == rows.end() || !has_ratio(ratio, row)) continue;
    const double theirs = other->times.median(), mine = row.times.median();
    const bool speedup = ratio == StudyRatio::speedup;
    if ((speedup ? mine : theirs) > 0) row.ratio = speedup ? theirs / mine : mine / theirs;
  }
}

}  // namespace

StudyResult run_study(World& world, const std::vector<StudyEntry>& entries,
                      const StudySettings& settings) {
  StudyEngine engine(world, settings);
  StudyResult result;
  if (settings.graph)
    result.graph = {engine.input().name, engine.input().vertices(), engine.input().edges()};
  Progress progress(fmt::format("study {}", settings.name), entries.size());
  progress.advance(0);  // draws it
  for (const StudyEntry& entry : entries) {
    try {
      require<DoesNotFitError>(entry.left_out.empty(), "{}", entry.left_out);
      result.rows.push_back(engine.measure(entry));
    } catch (const DoesNotFitError& error) {  // on all ranks
      result.refused.emplace_back(entry.name, error.what());
    }
    progress.advance(1);
  }
  require<DoesNotFitError>(!result.rows.empty(), "{}", result.refused.front().second);
  if (settings.ratio != StudyRatio::planned)
    set_ratios(settings.ratio, entries.front().name, result.rows);
  return result;
}

}  // namespace plait
