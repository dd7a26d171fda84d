#include "plait/apps/spread_walks.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "plait/aggregate/rows_in_order.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/progress.h"
#include "plait/base/saturating.h"
#include "plait/base/timer.h"
#include "plait/graph/renumber.h"
#include "plait/io/rows.h"
#include "plait/sample/cuda/walks.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/peer_access.h"

namespace plait {
namespace {

std::uint64_t walks_at_once(const WalkQuestion& question) {
  return std::max<std::uint64_t>(1,
                                 question.block_bytes / (question.width() * sizeof(std::uint64_t)));
}

std::uint64_t bytes_of(const AnyCsr& graph, bool weighted) {
  return std::visit(
      [&](const auto& csr) {
        const std::uint64_t edge = sizeof(csr.neighbours[0]) + (weighted ? sizeof(double) : 0);
        return csr.offsets.span().size_bytes() + csr.edges() * edge;
      },
      graph);
}

// Returns the rows of outward edges by number. They are the dataset's own, if the graph is its own
// transpose and never was renumbered.
AnyCsr rows_by_number(World& world, const Dataset& dataset, bool weighted) {
  Dataset bare{.name = dataset.name, .graph = dataset.graph, .symmetric = dataset.symmetric};
  bare.numbers = dataset.numbers;
  if (!weighted) std::visit([](auto& csr) { csr.weights = {}; }, bare.graph);
  AnyCsr rows;
  const auto ranks = static_cast<std::uint64_t>(world.host_world().size());
  on_all_or_none(world, [&] {
    if (!bare.symmetric)
      require_memory((Bytes(ranks) * Bytes(bytes_of(bare.graph, weighted))).value,
                     "a copy of the graph with its edges turned round, on each rank");
    if (!bare.numbers.empty()) require_memory_to_renumber(bare, ranks);
  });
  on_all_or_none(world, [&] { rows = out_rows(with_first_numbers(bare)); });
  return rows;
}

}  // namespace

SpreadWalks::SpreadWalks(World& world, const Dataset& dataset, bool weighted, WalkPlace place)
    : world_(world) {
  const AnyCsr rows = rows_by_number(world, dataset, weighted);
  on_all_or_none(world, [&] {
    walks_ = std::make_unique<RandomWalks>(
        rows, std::visit([](const auto& csr) { return csr.weights.span(); }, rows));
  });
  if (place.gpu) place_rows(place.shared);
}

SpreadWalks::~SpreadWalks() {
  on_gpu_.reset();  // before the rows that it reads
}

void SpreadWalks::place_rows(std::optional<bool> shared) {
  const std::uint64_t bytes =
      bytes_of(walks_->graph(), !walks_->sums().empty()) + 2 * WalkQuestion{}.block_bytes;
  if (!shared) {
    const bool fits = std::ranges::min(gather_values(world_, gpu_free_memory(bytes))) >= bytes;
    shared = !fits && world_.size() > 1 && world_.one_host() && unreached_peer(world_).empty();
  }
  shared_ = *shared;
  on_all_or_none(world_, [&] {
    if (!shared_) require_memory(bytes, "the graph on each GPU", gpu_free_memory(bytes));
  });
  const auto placed = [&](std::span<const std::byte> content) -> const std::byte* {
    if (content.empty()) return nullptr;
    if (shared_)
      arrays_.push_back(GpuArray::sharded(world_, content));
    else
      on_all_or_none(world_, [&] { arrays_.push_back(GpuArray::replicated(content)); });
    return arrays_.back()->data();
  };
  const GpuCsr csr = std::visit(
      [&]<VertexId V>(const Csr<V>& rows) -> GpuCsr {
        const auto* const offsets = placed(std::as_bytes(rows.offsets.span()));
        return {.offsets = reinterpret_cast<const EdgeOffset*>(offsets),
                .neighbours = placed(std::as_bytes(rows.neighbours.span())),
                .wide = sizeof(V) == sizeof(std::uint64_t),
                .vertices = rows.vertices(),
                .edges = rows.edges()};
      },
      walks_->graph());
  const std::byte* const sums = placed(std::as_bytes(walks_->sums()));
  world_.barrier();  // all parts stand
  on_gpu_ = std::make_unique<GpuRandomWalks>(csr, *walks_, reinterpret_cast<const double*>(sums));
}

void SpreadWalks::check(const WalkQuestion& question) const {
  on_all_or_none(world_, [&] {
    check_walks(question.settings, vertex_count(walks_->graph()),
                question.starts ? std::span<const std::uint64_t>(*question.starts)
                                : std::span<const std::uint64_t>());
    // A rank has its walks once, and rank 0 beside them those of all ranks.
    const std::uint64_t most = std::min<std::uint64_t>(
        walks_at_once(question), std::max<std::uint64_t>(1, question.count()));
    const Bytes block = Bytes(most) * Bytes(question.width()) * Bytes(sizeof(std::uint64_t));
    const auto ranks = static_cast<std::uint64_t>(world_.size());
    require_memory((block * Bytes(2 * ranks)).value,
                   fmt::format("a block of walks of length {}", question.settings.length));
  });
}

RawVector<std::uint64_t> SpreadWalks::walks_of(const WalkQuestion& question, std::uint64_t first,
                                               std::uint64_t count) const {
  RawVector<std::uint64_t> starts(count);
  for (std::uint64_t i = 0; i < count; ++i) starts[i] = question.start(first + i);
  WalkSettings settings = question.settings;
  settings.first = first;
  return on_gpu_ ? on_gpu_->walk(settings, starts, question.key)
                 : walks_->walk(settings, starts, question.key);
}

WalkTotals SpreadWalks::totals_of(const WalkQuestion& question,
                                  std::span<const std::uint64_t> walks) const {
  const std::uint64_t width = question.width();
  const bool restarts = question.settings.restart > 0;
  std::atomic<std::uint64_t> steps{0}, stopped{0};
  constexpr std::uint64_t kGrain = 4096;
  parallel_blocks(walks.size() / width, kGrain, [&](std::uint64_t begin, std::uint64_t end) {
    WalkTotals mine;
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::span<const std::uint64_t> walk = walks.subspan(i * width, width);
      std::uint64_t stays = 0;
      for (std::uint64_t s = 0; s + 1 < width; ++s)  // only such steps may be from an end
        if (walk[s + 1] == walk[s] || (restarts && walk[s + 1] == walk[0]))
          stays += walks_->is_end(walk[s]);
      mine.steps += width - 1 - stays;
      mine.stopped += stays > 0;
    }
    steps.fetch_add(mine.steps, std::memory_order_relaxed);
    stopped.fetch_add(mine.stopped, std::memory_order_relaxed);
  });
  return {steps, stopped};
}

double SpreadWalks::run(const WalkQuestion& question, const TakeWalks& take) {
  const std::uint64_t count = question.count();
  const auto ranks = static_cast<std::uint64_t>(world_.size());
  const auto rank = static_cast<std::uint64_t>(world_.rank());
  const std::uint64_t block = std::min(walks_at_once(question), (count + ranks - 1) / ranks);
  std::uint64_t sums[2] = {0, 0};
  double seconds = 0;
  Progress progress("walking", count);
  for (std::uint64_t first = 0; first < count; first += ranks * block) {
    const std::uint64_t begin = std::min(count, first + rank * block);
    const std::uint64_t end = std::min(count, begin + block);
    RawVector<std::uint64_t> walks;
    world_.barrier();
    const Stopwatch watch;
    on_all_or_none(world_, [&] { walks = walks_of(question, begin, end - begin); });
    seconds += watch.seconds();
    progress.advance(std::min(ranks * block, count - first));
    const WalkTotals mine = totals_of(question, walks);
    sums[0] += mine.steps, sums[1] += mine.stopped;
    if (!take) continue;
    const std::span own(reinterpret_cast<const std::int64_t*>(walks.data()), walks.size());
    const Buffer<std::int64_t> all = values_by_rank(world_, own);
    on_all_or_none(world_, [&] {
      if (world_.rank() == 0) take(all.span());
    });
  }
  world_.all_reduce_sum(std::span(sums));
  totals_ = {sums[0], sums[1]};
  return seconds;
}

std::uint64_t walk_key(std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const std::uint64_t high = random();
  return (high << 32 | random()) % ((std::uint64_t{1} << 63) - 1);
}

}  // namespace plait
