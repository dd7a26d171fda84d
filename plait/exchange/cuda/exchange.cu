#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/base/saturating.h"
#include "plait/exchange/cuda/exchange.cuh"
#include "plait/exchange/cuda/messages.cuh"
#include "plait/exchange/strategy_run.h"
#include "plait/machine/machine.h"
#include "plait/placement/cuda/place_rows.cuh"
#include "plait/plan/route.h"
#include "plait/symmetric/peer_access.h"
#include "plait/world/difference.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// Collective.
DeviceLink::Transports transports_of(World& world, const Route& route) {
  if (route.transport != DeviceTransport::vmm) return {route.transport, route.transport};
  if (!needs_peer_access(route)) return {DeviceTransport::host, DeviceTransport::own};
  require_peer_access(world);
  return {route.transport, route.transport};
}

StepKind kind_of(LinkOperation operation, Direction direction, std::uint64_t width,
                 std::uint64_t more = 0) {
  return step_kind(
      {static_cast<std::uint64_t>(operation), static_cast<std::uint64_t>(direction), width, more});
}

Route on_gpus(Route route) {
  route.gpu = true;
  return route;
}

}  // namespace

GpuExchange::GpuExchange(World& world, const AnyCsr& graph, bool symmetric,
                         const Partition& partition, const ExchangeOptions& options)
    : world_(world),
      route_(resolved(on_gpus(options.route))),
      stream_(static_cast<cudaStream_t>(options.stream)),
      link_(world, route_.wire, transports_of(world, route_)) {
  together(world, "while placing a graph", [&] {
    if (world.size() > 1) {
      std::string profile;
      on_all_or_none(world, [&] { profile = to_json(machine()); });
      require_equal(world, "ranks have different profiles of the machine",
                    {{"PLAIT_MACHINE", profile}});
    }
    place(graph, symmetric, partition, options);
    if (world.size() > 1 && route_.by_nccl()) join_nccl();
    if (route_.strategy == Strategy::paged) {
      on_all_or_none(world, [&] { paged_.emplace(world); });
      link_.set_waits_elsewhere();  // ranks wait for each other's rows on the host
    }
    const GetModule* const module =
        route_.strategy == Strategy::get ? module_for_get(world_, route_.get) : nullptr;
    on_all_or_none(world, [&] {
      fault_point();
      for (Side* side : {forward_.get(), backward_.get()})
        if (side != nullptr) side->strategy = make(side->graph, options, module);
    });
    reserve(bytes_of_row(options.max_width));
  });
}

void GpuExchange::finish() {
  link_.abandon_if_unwinding();
  cudaDeviceSynchronize();
}

void GpuExchange::place(const AnyCsr& any, bool symmetric, const Partition& partition,
                        const ExchangeOptions& options) {
  const int rank = world_.rank();
  const DeviceShardOptions placed{route_.placement().halo, route_.order()};
  const DeviceGraphOptions kind{.with_sums = route_.placement().store == HaloStore::sums,
                                .fixed_order = placed.order == EdgeOrder::as_given};
  const auto place_one = [&](const auto& rows) {
    DeviceShard shard;
    on_all_or_none(world_, [&] {
      fault_point();
      shard = place_rows(rows, partition, rank, placed, stream_);
    });
    auto side = std::make_unique<Side>(
        Side{make_device_graph(world_, std::move(shard), kind, stream_), {}});
    side->graph.asked_group_edges = options.tuning.group_edges;
    on_all_or_none(world_, [&] {
      if (options.shards.slot_vertices)
        side->vertices = vertices_of_slots(side->graph.shard, partition);
    });
    return side;
  };
  std::visit(
      [&](const auto& graph) {
        std::optional<std::remove_cvref_t<decltype(graph)>> rows;
        on_all_or_none(world_, [&] {
          rows.emplace(forward_rows(graph, symmetric, partition, rank, options.shards));
          degree_ = row_sums(*rows);
          edges_ = rows->edges();
          counts_.resize(rows->vertices());
          for (std::uint64_t i = 0; i < rows->vertices(); ++i)
            counts_[i] = static_cast<float>(rows->degree(i));
        });
        forward_ = place_one(*rows);
        rows.reset();
        if (!options.shards.transposed || symmetric) return;
        on_all_or_none(
            world_, [&] { rows.emplace(transposed_rows(graph, partition, rank, options.shards)); });
        backward_ = place_one(*rows);
      },
      any);
}

std::unique_ptr<DeviceStrategy> GpuExchange::make(const DeviceGraph& graph,
                                                  const ExchangeOptions& options,
                                                  const GetModule* module) {
  if (route_.strategy == Strategy::get) return make_device_get(graph, link_, route_.get, module);
  if (paged_) return make_paged(graph, link_, *paged_);
  if (nccl_ || options.tuning.sum_by_cusparse)
    return make_device_bulk(graph, link_, nccl_.get(), options.tuning.sum_by_cusparse);
  return make_pipelined(graph, link_, options.tuning.pass_shares);
}

bool GpuExchange::stores_halo() const { return route_.placement().store != HaloStore::none; }

void GpuExchange::reserve(std::uint64_t row_bytes) {
  std::uint64_t width = row_floats(row_bytes);
  if (width <= width_ && width_ > 0 && !lost()) return;
  link_.prepare([&] {  // a capture may have ended on some ranks alone
    require_unrecorded(width, stream_);
    require<UsageError>(!link_.was_recorded(),
                        "steps were captured that use memory of this graph which this operation "
                        "on rows of width {} would move; run it once before capturing, or make "
                        "the graph anew",
                        width);
  });
  width = std::max({width, width_, std::uint64_t{1}});
  std::uint64_t slots = 0;
  for (const Side* side : {forward_.get(), backward_.get()})
    if (side != nullptr)
      slots = std::max(slots, stores_halo() ? side->graph.shard.slot_count()
                                            : std::uint64_t{side->graph.shard.own});
  const Bytes floats = Bytes(slots) * row_stride(width);
  together(world_, "while making room for rows", [&] {
    if (paged_)
      paged_->reserve((Bytes(forward_->graph.shard.own) * row_stride(width)).value, floats.value);
    else
      link_.reserve((floats * sizeof(float)).value);
  });
  width_ = width;
}

std::unique_ptr<Messages> GpuExchange::make_messages(Direction direction) {
  require_on_all<UsageError>(route_.placement().store != HaloStore::sums,
                             "strategy {} keeps sums in place of rows, which have no owner; use "
                             "pipelined",
                             to_string(route_.strategy));
  return make_gpu_messages(world_, graph(direction), route_.transport, stream_);
}

EdgeRows GpuExchange::edges(Direction direction) const {
  const DeviceShard& shard = graph(direction).shard;
  return {.begin = {shard.offsets.data(), shard.own},
          .end = {shard.offsets.data() + 1, shard.own},
          .columns = shard.slots.data(),
          .x = {},
          .weights = shard.weights.data()};
}

std::span<const std::uint64_t> GpuExchange::vertices(Direction direction) const {
  const DeviceArray<std::uint64_t>& of = side(direction).vertices;
  return {of.data(), of.size()};
}

void GpuExchange::make_ready(const Ready& work, const std::function<void()>& prepare) {
  require<UsageError>(work.side->strategy->can_be_recorded() || !is_recorded(stream_),
                      "steps of strategy {} need the host and cannot be captured; use strategy "
                      "pipelined",
                      to_string(route_.strategy));
  if (ready_.contains(work)) return;
  try {
    link_.prepare([&] {
      require_unrecorded(work.width, stream_);
      prepare();
    });
  } catch (...) {
    ready_.clear();  // memory that works share may have been given up for more
    throw;
  }
  ready_.insert(work);
}

void GpuExchange::gather(Direction direction, const void* rows, std::uint64_t row_bytes,
                         const GatherUse& use) {
  const DeviceProduct product = rows_of(static_cast<const float*>(rows), row_floats(row_bytes));
  require_gather(product, use.results.size());
  const Side& of = side(direction);
  make_ready({&of, For::gather, product.width}, [&] { of.strategy->prepare_gather(product, {}); });
  gather(of, direction, product, kind_of(LinkOperation::gather, direction, product.width),
         [&](const EdgeRows& edges, std::size_t) { use.work(edges); },
         {.enqueue = {}, .results = use.results});
}

void GpuExchange::gather_in_passes(Direction direction, const float* rows, std::uint64_t width,
                                   const PassesUse& use) {
  const DeviceProduct product = rows_of(rows, width);
  require_gather(product, use.results.size());
  const Side& of = side(direction);
  make_ready({&of, For::passes, width, use.kind}, [&] {
    of.strategy->prepare_gather(product, use.widths);
    use.prepare(of.strategy->pass_groups(product, use.widths));
  });
  const std::span<const RowGroups> passes = of.strategy->pass_groups(product, use.widths);
  gather(of, direction, product,
         kind_of(LinkOperation::passes, direction, width,
                 step_kind({use.kind[0], use.kind[1], use.kind[2]})),
         [&](const EdgeRows& edges, std::size_t pass) {
           use.work(edges, {passes, pass});
         },
         {.enqueue = {}, .results = use.results, .widths = use.widths});
}

void GpuExchange::require_gather(const DeviceProduct& rows, std::size_t results) const {
  require_room(rows.width, width_, lost());
  require_rows(route_);
  require<UsageError>(results <= DeviceSignals::kMostResults,
                      "work on rows writes {} arrays, but only {} can be marked if a rank fails",
                      results, DeviceSignals::kMostResults);
}

void GpuExchange::gather(const Side& of, Direction direction, const DeviceProduct& rows,
                         StepKind kind, const Work& work, GatherEnqueue use) {
  EdgeRows found = edges(direction);
  use.enqueue = [&](const float* slots, std::size_t pass) {
    found.x = {slots, rows.stride(), static_cast<Slot>(of.graph.shard.own)};
    fault_point();
    work(found, pass);
  };
  link_.operation(stream_, kind, [&] { of.strategy->gather(rows, use); });
  count(of, rows.width);
}

void GpuExchange::sum(Direction direction, const DeviceProduct& product) {
  require_room(product.width, width_, lost());
  if (product.width == 0) return;
  const Phase phase("aggregate");
  const Side& of = side(direction);
  make_ready({&of, For::sum, product.width}, [&] { of.strategy->prepare(product); });
  link_.operation(stream_, kind_of(LinkOperation::sum, direction, product.width),
                  [&] { of.strategy->run(product); });
  count(of, product.width);
}

void GpuExchange::all_reduce_sum(float* values, std::uint64_t count) {
  const Phase phase("summing over ranks", "sum over ranks");
  link_.operation(stream_, kind_of_all_reduce<float>(count),
                  [&] { link_.all_reduce_sum(values, count, stream_); });
  const std::uint64_t bytes =
      count * sizeof(float) * static_cast<std::uint64_t>(link_.ranks() - 1);  // each rank's values
  cost_.bytes_fetched += bytes;
  count_moved(bytes);
}

void GpuExchange::join_nccl() {
  if (nccl_) return;
  nccl_ = in_phase("joining by NCCL", [&] { return Nccl::join(world_); });
  link_.set_waits_elsewhere();
}

void GpuExchange::exchange_rows(const SentRows& send, const ReceivedRows& received) {
  if (link_.ranks() == 1 || send.row_bytes == 0) return;
  join_nccl();
  const auto out = send.parts();
  const auto in = received.parts();
  link_.operation(stream_, kind_of(LinkOperation::rows, Direction::along, send.row_bytes), [&] {
    link_.meet(stream_);
    link_.signals().wait_elsewhere(true, stream_);
    nccl_->all_to_all(out, in, stream_);
    link_.signals().wait_elsewhere(false, stream_);
    link_.signals().end_step({Results(received.rows, received.bytes())}, stream_);
  });
  cost_.bytes_fetched += received.bytes();
  cost_.fetched_from.resize(in.size());
  for (std::size_t r = 0; r < in.size(); ++r) cost_.fetched_from[r] += in[r].size();
  count_moved(received.bytes());
}

void GpuExchange::run_part(StepPart part, const DeviceProduct& product) {
  require_room(product.width, width_, lost());
  make_ready(
      {forward_.get(), part == StepPart::link ? For::link_part : For::sum_part, product.width},
      [&] { forward_->strategy->prepare_part(part, product); });
  link_.operation(stream_,
                  kind_of(LinkOperation::part, Direction::along, product.width,
                          static_cast<std::uint64_t>(part)),
                  [&] { forward_->strategy->run_part(part, product); });
}

bool GpuExchange::recordable() const {
  return forward_->strategy->recordable(width_) &&
         (!backward_ || backward_->strategy->recordable(width_));
}

std::size_t GpuExchange::passes(std::uint64_t width) {
  return forward_->strategy->passes(rows_of(nullptr, width));
}

// All strategies but `get` bring the halo's rows, each once.
void GpuExchange::count(const Side& of, std::uint64_t width) {
  const std::uint64_t bytes = of.strategy->bytes_fetched(width);
  cost_.bytes_fetched += bytes;
  count_moved(bytes);
  if (!stores_halo()) return;
  cost_.fetched_from.resize(static_cast<std::size_t>(link_.ranks()));
  const std::uint64_t halo = of.graph.shard.slot_count() - of.graph.shard.own;
  for (const HaloBlock& block : of.graph.shard.halo)
    if (block.rows > 0)
      cost_.fetched_from[static_cast<std::size_t>(block.owner)] += bytes / halo * block.rows;
}

ExchangeCost GpuExchange::cost() const {
  ExchangeCost cost = cost_;
  if (link_.ranks() > 1) cost.waiting = link_.signals().waited();
  link_.signals().check();
  return cost;
}

std::unique_ptr<Exchange> make_gpu_exchange(World& world, const AnyCsr& graph, bool symmetric,
                                            const Partition& partition,
                                            const ExchangeOptions& options) {
  return std::make_unique<GpuExchange>(world, graph, symmetric, partition, options);
}

}  // namespace plait
