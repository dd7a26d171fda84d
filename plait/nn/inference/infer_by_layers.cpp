#include "plait/nn/inference/infer_by_layers.h"

#include <fmt/ranges.h>
#include <malloc.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "plait/aggregate/block_aggregator.h"
#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/progress.h"
#include "plait/base/setting.h"
#include "plait/nn/model.h"
#include "plait/nn/training/checkpoint.h"
#include "plait/placement/row_block.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenRecords{500};

enum class Act {
  send,     // gives the rows that cross
  receive,  // gives the layer's output, from what was sent
  alone,    // gives the output of a layer without edges
};

// One pass over all vertices, which fills one file of rows.
struct Stage {
  std::size_t layer;
  Act act;
  std::uint64_t width;               // of the rows that it gives
  std::uint64_t crossing;            // width of the rows that the layer sends, or 0
  std::optional<std::size_t> reads;  // the stage that gives the layer's input; none: the features
  std::optional<std::size_t> sent;   // the stage that gives what crosses; none: the input itself
};

// The rows that a layer sends through the graph.
struct Crossing {
  std::uint64_t width = 0;  // 0: nothing
  bool as_given = false;    // the rows are the layer's input
};

// Returns features that can be read where they are mapped, like rows that a layer gave; or nothing.
Array<float> plain_features(const Features& features, Normalize normalize) {
  return normalize == Normalize::none ? features.f32 : Array<float>();
}

// The numbers of a renumbered graph, whose order the files of the run have.
std::string order_of(const Partition& partition) {
  if (partition.numbers().empty()) return "as in the graph's file";
  return checksum_text(checksum_of(std::as_bytes(partition.numbers().span())));
}

std::map<std::string, std::string> settings_of(const Partition& partition, Normalize normalize,
                                               const InferConfig& config, const ByLayers& by) {
  std::vector<std::uint64_t> starts;
  for (int rank = 0; rank < partition.parts(); ++rank) starts.push_back(partition.vertex(rank, 0));
  return {
      {"format", "1"},
      {"graph", file_stamp(by.graph)},
      {"checkpoint", file_checksum(config.checkpoint)},
      {"normalize", std::string(to_string(normalize))},
      {"order", order_of(partition)},
      {"ranks", fmt::format("{} from vertices {}", partition.parts(), fmt::join(starts, ", "))}};
}

class LayeredInference {
 public:
  LayeredInference(World& world, const Dataset& dataset, const Partition& partition,
                   const InferConfig& config, const ByLayers& by)
      : world_(world),
        dataset_(dataset),
        by_(by),
        trained_(load_model_for(world, dataset, config)),
        features_(plain_features(dataset.features, normalize_)),
        one_loop_each_(model_.shard_options().one_loop_each),
        first_(partition.vertex(world.rank(), 0)),
        last_(first_ + partition.size(world.rank())),
        sources_(dataset.vertices()),
        stages_(plan()),
        room_(room_for_blocks()),
        folder_((require_room_for_rows(), world), by.work,
                settings_of(partition, normalize_, config, by)) {}

  void run(const std::function<void(const Scores&)>& use) {
    const Reached mine = folder_.reached(stages_.size(), last_ - first_);
    std::uint64_t start = stages_.size();  // the stage that the last rank is in
    bool begun = false;                    // by any rank
    const std::vector<Reached> ranks = gather_values(world_, mine);
    for (const Reached& one : ranks) start = std::min(start, one.stage);
    for (const Reached& one : ranks) begun = begun || one.stage > start || one.rows > 0;
    {  // the bar is gone before results are printed
      Progress progress(fmt::format("inferring {}", dataset_.name),
                        (stages_.size() - start) * (last_ - first_));
      for (std::size_t s = start; s < stages_.size(); ++s) {
        std::uint64_t done = 0;
        if (s == start) done = mine.stage > s ? last_ - first_ : mine.rows;
        prepare_file(s, s > start || !begun);
        progress.advance(done);
        run_stage(s, first_ + done, progress);
      }
    }
    if (world_.rank() != 0) return;
    const std::uint64_t classes = stages_.back().width;
    use({model_.config().task, dataset_.vertices(), classes, rows_of(stages_.size() - 1)});
    folder_.remove();
  }

 private:
  std::uint64_t width_of_input(std::size_t layer) const {
    return static_cast<std::uint64_t>(layer == 0 ? model_.config().inputs : model_.config().hidden);
  }
  std::uint64_t layers() const { return static_cast<std::uint64_t>(model_.config().layers); }

  // Returns the output of layer `layer` for vertices begin .. end - 1. `rows`: its input, or empty
  // if the input has to be made from the dataset's features.
  torch::Tensor compute(std::size_t layer, const Array<float>& rows, const BlockRange& range,
                        std::unique_ptr<Aggregator> aggregator) const {
    const Timed timed("forward");
    const auto graph =
        c10::make_intrusive<GraphHandle>(world_, std::move(aggregator), dataset_.vertices());
    if (rows.empty()) {
      const Partition block = partition_of_block(dataset_.vertices(), range.begin, range.end);
      const InputFeatures input(dataset_.features, block, 1, normalize_, torch::kCPU, false);
      return model_.layer_output(layer, LayerInput(input, {}, false), graph).contiguous();
    }
    const std::uint64_t width = width_of_input(layer);
    const torch::Tensor h = torch::from_blob(
        const_cast<float*>(rows.data() + range.begin * width),
        {static_cast<std::int64_t>(range.end - range.begin), static_cast<std::int64_t>(width)});
    return model_.layer_output(layer, LayerInput(h, {}, false), graph).contiguous();
  }

  std::unique_ptr<Aggregator> sender(const BlockRange& range, RowSink sink) const {
    return make_sending_aggregator({&dataset_.graph, range, one_loop_each_}, std::move(sink));
  }

  // Finds out which rows cross by giving the layer one row.
  Crossing crossing_of(std::size_t layer) const {
    const Array<float> rows =
        layer == 0 ? features_ : Array<float>(std::vector<float>(width_of_input(layer)));
    const BlockRange one{0, std::min<std::uint64_t>(1, dataset_.vertices())};
    Crossing crossing;
    const auto look = [&](const float* sent, std::uint64_t width) {
      crossing = {width, sent == rows.data()};
    };
    try {
      compute(layer, rows, one, sender(one, look));
    } catch (const RowsSent&) {
    }
    return crossing;
  }

  std::vector<Stage> plan() const {
    std::vector<Stage> stages;
    std::optional<std::size_t> reads;
    for (std::size_t l = 0; l < layers(); ++l) {
      const Crossing crossing = crossing_of(l);
      std::optional<std::size_t> sent;
      if (crossing.width > 0 && !crossing.as_given) {
        sent = stages.size();
        stages.push_back({l, Act::send, crossing.width, crossing.width, reads, {}});
      }
      const std::int64_t width =
          l + 1 == layers() ? model_.config().outputs : model_.config().hidden;
      stages.push_back({l, crossing.width > 0 ? Act::receive : Act::alone,
                        static_cast<std::uint64_t>(width), crossing.width, reads, sent});
      reads = stages.size() - 1;
    }
    return stages;
  }

  // Collective. Returns the part of the limit that blocks may take; an eighth is for memory that
  // libraries take by the way. Ranks take the greatest that one of them holds, and refuse together.
  std::uint64_t room_for_blocks() const {
    const std::uint64_t held = largest_of_all(world_, held_memory());
    require<DoesNotFitError>(
        by_.memory_limit > held,
        "the program, the weights and the graph's tables hold {} before there are any rows, which "
        "{} does not allow; give a higher limit",
        format_bytes(held), setting("memory-limit", format_bytes(by_.memory_limit)));
    return (by_.memory_limit - held) / 8 * 7;
  }

  BlockCost cost_of(const Stage& stage) const {
    const std::uint64_t in = width_of_input(stage.layer);
    std::uint64_t floats = layer_floats(model_.config(), static_cast<int>(stage.layer));
    if (!stage.reads && dataset_.features.is_sparse()) {
      const Csr32& sparse = dataset_.features.sparse;
      std::uint64_t most = 0;  // entries of a row: a column and two values each
      for (std::uint64_t i = 0; i < sparse.vertices(); ++i)
        most = std::max<std::uint64_t>(most, sparse.degree(i));
      floats = floats - in + 3 * most;
    }
    // Memory holds the input, the results made of it, the rows that cross, and copies of them, as
    // operations follow each other.
    const bool receives = stage.act == Act::receive;
    return {.limit = room_,
            .per_row = (2 * floats + 3 * stage.crossing) * sizeof(float) + sizeof(std::uint64_t),
            .per_source = receives ? stage.crossing * sizeof(float) + sizeof(std::uint64_t) : 0,
            .edges = receives || (stage.act == Act::send && one_loop_each_),
            .one_loop_each = one_loop_each_,
            .numbers = dataset_.numbers,
            .what = fmt::format("layer {}", stage.layer + 1)};
  }

  Array<float> rows_of(std::size_t stage) const {
    return folder_.rows(stage, dataset_.vertices(), stages_[stage].width);
  }

  // Refuses before any work a limit that is too low for a block of one row: the row with the most
  // edges needs the most.
  void require_room_for_rows() {
    std::uint64_t widest = first_;
    std::visit(
        [&](const auto& graph) {
          for (std::uint64_t v = first_; v < last_; ++v)
            if (graph.degree(v) > graph.degree(widest)) widest = v;
        },
        dataset_.graph);
    for (const Stage& stage : stages_)
      cut_block(dataset_.graph, widest, std::min(widest + 1, last_), cost_of(stage), sources_);
  }

  // Rank 0 makes the file that a stage fills, if none has begun.
  void prepare_file(std::size_t s, bool fresh) const {
    if (world_.rank() == 0) {
      if (fresh)
        SharedFile::make(folder_.folder(), WorkFolder::rows_name(s),
                         dataset_.vertices() * stages_[s].width * sizeof(float));
      else
        rows_of(s);  // throws if the file is wrong
    }
    world_.barrier();
  }

  // Runs a stage for own rows from `v` on.
  void run_stage(std::size_t s, std::uint64_t v, Progress& progress) {
    const Stage& stage = stages_[s];
    const Phase phase(fmt::format("layer {} of {}", stage.layer + 1, layers()));
    {
      const Array<float> input = stage.reads ? rows_of(*stage.reads) : features_;
      const Array<float> sent = stage.sent ? rows_of(*stage.sent) : input;
      const BlockCost cost = cost_of(stage);
      SharedFile out(folder_.folder(), WorkFolder::rows_name(s));
      auto recorded = Clock::now();
      while (v < last_ && !stopped()) {
        const BlockRange range = cut_block(dataset_.graph, v, last_, cost, sources_);
        run_block(stage, range, {input, sent}, out);
        progress.advance(range.end - v);
        v = range.end;
        if (Clock::now() - recorded < kBetweenRecords) continue;
        record(out, {s, v - first_});
        recorded = Clock::now();
      }
      record(out, v == last_ ? Reached{s + 1, 0} : Reached{s, v - first_});
    }
    end_stage(stage);
  }

  // Syncs the rows written so far, so that they outlive the program, and notes how far this rank
  // is.
  void record(SharedFile& out, const Reached& reached) {
    const Timed timed("sync rows");
    out.sync();
    folder_.reach(reached);
  }

  struct Inputs {
    const Array<float>& input;
    const Array<float>& sent;
  };
  void run_block(const Stage& stage, const BlockRange& range, const Inputs& in, SharedFile& out) {
    const auto write = [&](const float* rows) {
      const Timed timed("write rows");
      if (&stage == &stages_.back() && !dataset_.numbers.empty())
        return write_by_number(rows, range, out);
      const std::uint64_t floats = (range.end - range.begin) * stage.width;
      out.write_at(range.begin * stage.width * sizeof(float),
                   std::as_bytes(std::span(rows, floats)));
    };
    if (stage.act == Act::receive) {
      RowBlock block = timed("cut block", [&] {
        return make_row_block(dataset_.graph, range, one_loop_each_, sources_);
      });
      const torch::Tensor y = compute(stage.layer, in.input, range,
                                      make_receiving_aggregator(std::move(block), in.sent.data()));
      return write(y.const_data_ptr<float>());
    }
    const auto sink = [&](const float* rows, std::uint64_t) { write(rows); };
    try {
      const torch::Tensor y = compute(stage.layer, in.input, range, sender(range, sink));
      write(y.const_data_ptr<float>());
    } catch (const RowsSent&) {
    }
  }

  // Writes scores where the numbers that their vertices had before renumbering are.
  void write_by_number(const float* rows, const BlockRange& range, SharedFile& out) const {
    const std::uint64_t width = stages_.back().width;
    for (std::uint64_t v = range.begin; v < range.end; ++v)
      out.write_at(dataset_.number(v) * width * sizeof(float),
                   std::as_bytes(std::span(rows + (v - range.begin) * width, width)));
  }

  bool stopped() const { return by_.stop != nullptr && *by_.stop; }

  // Waits until all ranks have this stage's output; throws if one is to stop.
  void end_stage(const Stage& stage) {
    std::uint32_t stops = stopped() ? 1 : 0;
    world_.all_reduce_max(std::span(&stops, 1));
    require<Interrupted>(stops == 0,
                         "interrupted in layer {} of {}; the same command goes on from there with "
                         "the files in {}",
                         stage.layer + 1, layers(), folder_.path());
    if (world_.rank() != 0 || stage.act == Act::send) return;
    if (stage.sent) folder_.forget(*stage.sent);
    if (stage.reads) folder_.forget(*stage.reads);
  }

  World& world_;
  const Dataset& dataset_;
  const ByLayers& by_;
  const TrainedModel trained_;
  const Model& model_ = trained_.model;
  const Normalize normalize_ = trained_.normalize;
  const Array<float> features_;  // if they need not be made block by block
  const bool one_loop_each_;
  const std::uint64_t first_, last_;  // own vertices
  VertexSet sources_;
  const std::vector<Stage> stages_;
  const std::uint64_t room_;  // bytes for a block
  WorkFolder folder_;
};

}  // namespace

void infer_by_layers(World& world, const Dataset& dataset, const Partition& partition,
                     const InferConfig& config, const ByLayers& by_layers,
                     const std::function<void(const Scores&)>& use) {
  require<UsageError>(partition.is_contiguous(), "with {} ranks own ranges of vertices; use {}",
                      setting("memory-limit"), setting("partition", {"edges", "vertices"}));
  require<UsageError>(!dataset.is_set_of_graphs(),
                      "{} is for scores of vertices, and {} is a set of graphs; leave "
                      "it out",
                      setting("memory-limit"), dataset.name);
  // Blocks of memory go back to the system as soon as they are free, instead of adding up.
  mallopt(M_MMAP_THRESHOLD, 1 << 18);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  const torch::NoGradGuard no_grad;
  LayeredInference(world, dataset, partition, config, by_layers).run(use);
}

}  // namespace plait
