// A hop is cut into blocks of targets. Threads draw the edges of blocks; whoever has drawn one also
// numbers the blocks that are ready, in their order, unless another thread is just doing that. So
// the order of numbers does not depend on the threads, and numbering takes place beside drawing.
#include "plait/sample/neighbours.h"

#include <algorithm>
#include <atomic>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/spares.h"
#include "plait/sample/check.h"
#include "plait/sample/cpu/numbering.h"
#include "plait/sample/cpu/row_draws.h"
#include "plait/sample/row_sums.h"

namespace plait {

struct NeighbourSampler::State {
  AnyCsr graph;
  SampleSettings settings;
  SampleValues values;
  Buffer<double> sums;  // RowDraws has the meaning
};

namespace {

struct CallMemory {
  Buffer<std::uint32_t> numbers;  // Numbering's table
  Spares<RowScratch> scratch;
};

constexpr std::uint64_t kBlock = 256;  // targets
constexpr std::size_t kGrain = std::size_t{1} << 14;
constexpr std::uint64_t kShared = 16384;  // edges of a hop from which it is worth to wake threads
// One edge with its neighbour takes so many bytes, in a sample and in the tensors that callers make
// of it.
constexpr std::uint64_t kEdgeBytes = 44;
constexpr std::uint64_t kTargetsAhead = 16;  // targets whose memory is fetched before use

// Calls of next() for consecutive blocks, in order and one at a time, as blocks become ready.
class InOrder {
 public:
  explicit InOrder(std::uint64_t blocks) : ready_(blocks) {}

  // Marks a block, and calls next(block) for all that can be done now, unless another thread does.
  template <class Next>
  void ready(std::uint64_t block, Next next) {
    ready_[block] = true;
    // Sequentially consistent, so that of two threads that mark a block and leave the work, one
    // sees the other's mark.
    while (is_ready(done_)) {
      if (busy_.exchange(true)) return;
      while (is_ready(done_)) {
        next(done_);
        done_ = done_ + 1;
      }
      busy_ = false;
    }
  }

 private:
  // `block` is a copy of done_, which other threads move on meanwhile.
  bool is_ready(std::uint64_t block) const { return block < ready_.size() && ready_[block]; }

  std::vector<std::atomic<bool>> ready_;
  std::atomic<bool> busy_ = false;
  std::atomic<std::uint64_t> done_ = 0;  // written by the thread that made busy_ true
};

// A call of sample(), with a copy of the sampler's draws.
template <VertexId V>
class Run {
 public:
  Run(const RowDraws<V>& draws, std::span<const std::uint64_t> seeds,
      std::span<const std::int64_t> times, CallMemory& memory)
      : draws_(draws),
        settings_(draws.settings()),
        times_(times),
        scratch_(memory.scratch),
        sample_{.seeds = seeds.size()},
        numbering_(memory.numbers.span(), seeds, settings_.disjoint, sample_) {}

  // Takes hops `begin_hop` to `end_hop` - 1 of the settings.
  template <class Draws>
  Sample sample(const Draws& hops) && {
    std::uint64_t first = 0;
    for (std::size_t h = hops.begin_hop; h < hops.end_hop; ++h) {
      const std::uint64_t found = numbering_.found();
      draws_.begin_hop(hops.key, h, hops.first_tree);
      sample_.hops.push_back({.first_target = first});
      count(sample_.hops.back(), found - first);
      fill(sample_.hops.back());
      if (settings_.targets == HopTargets::newest) first = found;
    }
    numbering_.end();
    return std::move(sample_);
  }

 private:
  SampleTarget target(std::uint64_t number) const {
    SampleTarget target{.vertex = sample_.vertices[number]};
    if (settings_.disjoint) target.tree = sample_.trees[number];
    if (!times_.empty()) target.now = times_[target.tree];
    return target;
  }

  void count(Sample::Hop& hop, std::uint64_t targets) {
    hop.offsets.resize(targets + 1);
    hop.offsets[0] = 0;
    Buffer<std::uint64_t> counts(targets);
    parallel_blocks(targets, kGrain, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t t = begin; t < end; ++t)
        counts[t] = draws_.count(target(hop.first_target + t));
    });
    std::uint64_t edges = edges_;
    for (std::uint64_t t = 0; t < targets; ++t) {
      edges += counts[t];
      hop.offsets[t + 1] = static_cast<std::uint32_t>(edges - edges_);
    }
    check_sample_size(sample_.seeds, edges);
    require_large_memory((edges - edges_) * kEdgeBytes,
                         "a sample (take fewer seeds or smaller fan-outs)");
    hop.edges.resize(edges - edges_);
    hop.neighbours.resize(edges - edges_);
    numbering_.expect(edges - edges_);
    edges_ = edges;
  }

  void fill(Sample::Hop& hop) {
    const std::uint64_t targets = hop.targets(), blocks = (targets + kBlock - 1) / kBlock;
    InOrder order(blocks);
    const ThreadCount threads(hop.edges.size() < kShared ? 1 : thread_count());
    parallel_for(blocks, [&](std::uint64_t block) {
      draw(hop, block * kBlock, std::min(targets, (block + 1) * kBlock));
      order.ready(block, [&](std::uint64_t next) {
        number(hop, next * kBlock, std::min(targets, (next + 1) * kBlock));
      });
    });
    hop.vertices = numbering_.found();
  }

  // Draws edges of targets; their neighbours are ids as yet. Ids are read some targets after they
  // were asked for.
  void draw(Sample::Hop& hop, std::uint64_t begin, std::uint64_t end) {
    const auto scratch = scratch_.borrow([] { return std::make_unique<RowScratch>(); });
    for (std::uint64_t t = begin; t < end;) {
      const std::uint64_t first = t, last = std::min(t + kTargetsAhead, end);
      for (; t < last; ++t) {
        if (t + kTargetsAhead < end)
          draws_.prefetch(sample_.vertices[hop.first_target + t + kTargetsAhead]);
        draws_.draw(target(hop.first_target + t), hop.offsets[t + 1] - hop.offsets[t],
                    hop.edges.data() + hop.offsets[t], *scratch);
      }
      const V* const ids = draws_.graph().neighbours.data();
      const EdgeOffset* const edges = hop.edges.data();
      std::uint32_t* const neighbours = hop.neighbours.data();
      for (std::uint64_t i = hop.offsets[first]; i < hop.offsets[last]; ++i)
        neighbours[i] = static_cast<std::uint32_t>(ids[edges[i]]);
    }
  }

  // Turns ids into numbers, for all targets of a tree at once.
  void number(Sample::Hop& hop, std::uint64_t begin, std::uint64_t end) {
    const auto tree_of = [&](std::uint64_t t) {
      return settings_.disjoint ? sample_.trees[hop.first_target + t] : 0;
    };
    while (begin < end) {
      const std::uint32_t tree = tree_of(begin), offset = hop.offsets[begin];
      if (!settings_.disjoint) begin = end;
      while (begin < end && tree_of(begin) == tree) ++begin;
      numbering_.number({hop.neighbours.data() + offset, hop.offsets[begin] - offset}, tree);
    }
  }

  RowDraws<V> draws_;
  const SampleSettings& settings_;
  const std::span<const std::int64_t> times_;
  Spares<RowScratch>& scratch_;
  Sample sample_;
  Numbering numbering_;
  std::uint64_t edges_ = 0;
};

}  // namespace

struct NeighbourSampler::Workspace::State : CallMemory {};

NeighbourSampler::Workspace::Workspace(std::unique_ptr<State> state) : state_(std::move(state)) {}
NeighbourSampler::Workspace::~Workspace() = default;

NeighbourSampler::NeighbourSampler(AnyCsr graph, SampleSettings settings,
                                   const SampleValues& values) {
  check_sampler(graph, settings, values);
  auto state = std::make_unique<State>(State{std::move(graph), std::move(settings), values, {}});
  if (draws_by_row_sums(state->settings, values))
    state->sums = row_sums(state->graph, values.weights);
  state_ = std::move(state);
}

NeighbourSampler::~NeighbourSampler() = default;

const SampleSettings& NeighbourSampler::settings() const { return state_->settings; }

std::unique_ptr<NeighbourSampler::Workspace> NeighbourSampler::workspace() const {
  auto memory = std::make_unique<Workspace::State>();
  memory->numbers = Buffer<std::uint32_t>(vertex_count(state_->graph), kNoNumber);
  return std::unique_ptr<Workspace>(new Workspace(std::move(memory)));
}

Sample NeighbourSampler::sample(std::span<const std::uint64_t> seeds, std::uint64_t key,
                                Workspace& workspace, std::span<const std::int64_t> times,
                                std::uint32_t first_tree) const {
  const std::uint32_t first = settings().disjoint ? first_tree : 0;
  return sample_hops({0, settings().fanouts.size(), key, first}, seeds, workspace, times);
}

Sample NeighbourSampler::sample_hop(std::size_t hop, std::span<const std::uint64_t> seeds,
                                    std::uint64_t key, Workspace& workspace) const {
  check_hop(settings(), hop);
  return sample_hops({hop, hop + 1, key, 0}, seeds, workspace, {});
}

Sample NeighbourSampler::sample_hops(const Draws& draws, std::span<const std::uint64_t> seeds,
                                     Workspace& workspace,
                                     std::span<const std::int64_t> times) const {
  check_seeds(vertex_count(state_->graph), edge_count(state_->graph), state_->values.timed(), seeds,
              times);
  return std::visit(
      [&]<VertexId V>(const Csr<V>& graph) {
        const State& s = *state_;
        const RowDraws<V> rows(graph, s.settings, s.values, s.sums.span());
        return Run<V>(rows, seeds, times, *workspace.state_).sample(draws);
      },
      state_->graph);
}

}  // namespace plait
