#include "plait/exchange/cpu_exchange.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plait/base/delay.h"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/saturating.h"
#include "plait/base/setting.h"
#include "plait/base/timer.h"
#include "plait/exchange/cpu_messages.h"
#include "plait/plan/route.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/difference.h"

namespace plait {

void scale_rows(const OwnRows& rows, std::uint64_t count, float* out, std::uint64_t stride) {
  parallel_blocks(count, std::size_t{1} << 10, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* const x = rows.x + i * rows.width;
      float* const to = out + i * stride;
      if (rows.pre == nullptr)
        std::copy_n(x, rows.width, to);
      else
        for (std::size_t k = 0; k < rows.width; ++k) to[k] = rows.pre[i] * x[k];
    }
  });
}

void require_room(std::uint64_t width, std::uint64_t planned, bool lost) {
  require<DoesNotFitError>(!lost,
                           "the room for rows was given up for wider ones, which did not fit, and "
                           "could then not be had again; reserve() it when memory is free");
  require<UsageError>(width <= planned, "width {} is more than the {} planned for", width, planned);
}

std::uint64_t row_floats(std::uint64_t row_bytes) {
  require<UsageError>(row_bytes % sizeof(float) == 0,
                      "rows of {} bytes cannot be moved: a row is a multiple of 4 bytes",
                      row_bytes);
  return row_bytes / sizeof(float);
}

std::uint64_t bytes_of_row(std::uint64_t floats) {
  require<DoesNotFitError>(floats <= std::numeric_limits<std::uint64_t>::max() / sizeof(float),
                           "rows of {} numbers do not fit in any memory", floats);
  return floats * sizeof(float);
}

struct CpuExchange::Meeting {
  enum class Call { make_room, begin, along, against };
  Call call;
  std::uint64_t width;
  std::uint64_t number;  // of the rank's calls on this graph

  static constexpr std::uint64_t kFailed = std::uint64_t{1} << 63;  // beside a word: see meet()

  // From the highest bit but one: the width, the last 16 bits of the number, the call.
  std::uint64_t word() const {
    return width << 18 | (number & 0xffff) << 2 | static_cast<std::uint64_t>(call);
  }
  static std::string text(std::uint64_t word) {
    constexpr const char* kCall[] = {"make room for", "begin with", "bring, along edges,",
                                     "bring, against edges,"};
    return fmt::format("{} rows of width {}", kCall[word % 4], word >> 18);
  }
  // As text(), with the number of the call if two words differ in it alone.
  static std::string text_beside(std::uint64_t word, std::uint64_t other) {
    return text(word) == text(other)
               ? fmt::format("{} in its call {}", text(word), word >> 2 & 0xffff)
               : text(word);
  }
};

void CpuExchange::meet(Meeting mine, const std::optional<Error>& failure) {
  if (world_.size() == 1) return;
  mine.number = calls_;
  if (!rows_.shared()) {
    if (mine.call == Meeting::Call::make_room)
      agree(world_, "an operation on a graph: " + Meeting::text(mine.word()));
    return;
  }
  const Timed timed("wait for ranks");
  AddTime time(cost_.waiting);
  std::vector<std::uint64_t> words =
      rows_.barrier(mine.word() | (failure ? Meeting::kFailed : std::uint64_t{0}));
  bool failed = false;
  for (std::uint64_t& word : words) {
    failed = failed || (word & Meeting::kFailed) != 0;
    word &= ~Meeting::kFailed;
  }
  for (std::size_t rank = 1; rank < words.size(); ++rank)
    require_on_all<UsageError>(
        words[rank] == words[0],
        "ranks call different operations on a graph: rank 0 is to {}, but rank {} "
        "to {}; every rank must make the same calls in the same order",
        Meeting::text_beside(words[0], words[rank]), rank,
        Meeting::text_beside(words[rank], words[0]));
  if (failed) agree_on_error(world_, failure, FailureOf::rank);
}

CpuExchange::CpuExchange(World& world, GraphShards shards, const Route& route,
                         std::uint64_t max_width)
    : world_(world),
      shards_(std::move(shards)),
      route_(route),
      get_(traits_of(route.strategy).cpu.store == HaloStore::none),
      rows_(world) {
  require_on_all<UsageError>(traits_of(route.strategy).cpu.possible,
                             "strategy {} needs GPUs; use {}, or {}", to_string(route.strategy),
                             setting("gpus"), setting("strategy", "bulk"));
  together(world_, "while placing a graph", [&] {
    forward_ = make(shards_.forward);
    backward_ = make(shards_.backward());
    make_rows(max_width);
  });
}

std::unique_ptr<StrategyRun> CpuExchange::make(const Shard& shard) {
  return get_ ? make_get_strategy(world_, shard) : make_fetch_strategy(world_, shard, route_.wire);
}

void CpuExchange::make_rows(std::uint64_t width) {
  const std::uint64_t slots =
      get_ ? shards_.forward.own
           : std::max(shards_.forward.slot_count(), shards_.backward().slot_count());
  rows_.reserve((Bytes(slots) * row_stride(width)).value);
  width_ = width;
}

void CpuExchange::reserve(std::uint64_t row_bytes) {
  const std::uint64_t width = row_floats(row_bytes);
  ++calls_;
  meet({Meeting::Call::make_room, width});
  rows_are_free_ = true;
  if (width > width_ || rows_.lost()) make_rows(std::max(width, width_));
}

std::unique_ptr<Messages> CpuExchange::make_messages(Direction direction) {
  return std::make_unique<CpuMessages>(world_, shard(direction));
}

EdgeRows CpuExchange::edges(Direction direction) const {
  const Shard& of = shard(direction);
  return {of.begin(), of.end(), of.slots.data(), {}, of.weights.data()};
}

RowSource CpuExchange::bring(Direction direction, const OwnRows& rows) {
  require_room(rows.width, width_, rows_.lost());
  const Shard& of = shard(direction);
  const std::uint64_t stride = row_stride(rows.width);
  // A single rank with nothing to scale or to pad reads x where it stands.
  if (world_.size() == 1 && rows.pre == nullptr && stride == rows.width)
    return {rows.x, stride, static_cast<Slot>(of.own)};
  ++calls_;
  if (!std::exchange(rows_are_free_, false))
    meet({Meeting::Call::begin, rows.width});  // peers have read the last step's rows
  const bool along = direction == Direction::along;
  const auto bring_halo = [&] {
    std::optional<Error> failure;
    try {
      place_rows(rows, of);
    } catch (...) {
      if (!rows_.shared()) throw;
      failure.emplace(error_in_flight());
    }
    // Own rows of all ranks are in place.
    meet({along ? Meeting::Call::along : Meeting::Call::against, rows.width}, failure);
    delay_point();
    fault_point();
    StrategyRun& strategy = along ? *forward_ : *backward_;
    return strategy.gather(stride, rows_, cost_);
  };
  // Ranks that share rows do not meet any more in this step, but those that send them do.
  return rows_.shared() ? bring_halo() : together(world_, "in an exchange of rows", bring_halo);
}

void CpuExchange::place_rows(const OwnRows& rows, const Shard& shard) {
  fault_point();
  {
    const Timed timed("place own rows");
    AddTime time(cost_.summing);
    scale_rows(rows, shard.own, rows_.own(), row_stride(rows.width));
  }
  delay_point();
  fault_point();
}

void CpuExchange::gather(Direction direction, const void* rows, std::uint64_t row_bytes,
                         const GatherUse& use) {
  require_rows(route_);
  EdgeRows found = edges(direction);
  found.x = bring(direction, {static_cast<const float*>(rows), nullptr, row_floats(row_bytes)});
  delay_point();
  fault_point();
  const Timed timed("work on edges");
  AddTime time(cost_.summing);
  use.work(found);
}

GraphShards cpu_shards(World& world, const AnyCsr& graph, bool symmetric,
                       const Partition& partition, const ExchangeOptions& options) {
  GraphShards made;
  on_all_or_none(world, [&] {
    ShardOptions shards = options.shards;
    shards.halo = options.route.placement().halo;
    shards.order = options.route.order();
    const Timed timed("cut shards");
    fault_point();
    made = make_graph_shards(graph, symmetric, partition, world.rank(), shards);
  });
  return made;
}

std::unique_ptr<Exchange> make_exchange(World& world, const AnyCsr& graph, bool symmetric,
                                        const Partition& partition,
                                        const ExchangeOptions& options) {
  const Route route = resolved(options.route);
  if (route.gpu) return make_gpu_exchange(world, graph, symmetric, partition, options);
  return std::make_unique<CpuExchange>(
      world, cpu_shards(world, graph, symmetric, partition, options), route, options.max_width);
}

}  // namespace plait
