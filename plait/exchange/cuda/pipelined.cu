// Strategy `pipelined`: rows of the halo cross the link while rows that have arrived are summed.
//
// Each rank pushes the rows that others read into their slots, to one peer after the other, in
// chunks, on a stream of its own, and raises a signal at the peer after each. The peer sums its own
// edges meanwhile, then in each pass the edges to the rows that have arrived (halo_schedule.h).
// Other operations over edges are done in passes likewise. In a step of one pass over few rows, one
// kernel on the stream of the sum pushes all rows and waits for those that arrive.
// Few rows are pushed by one kernel. Of many, whole blocks are pushed by the copy engines, which
// take no SM; rows that must be picked or converted are written to the peer by a kernel.
//
// A row of the halo is not overwritten while it may still be read: a rank raises a signal when its
// sum has ended, for which the others wait before they push the next step's rows.
//
// Where the graph says that a peer gets sums of rows instead (strategy `partial`), they are summed
// on the pushing stream just before they leave; to the peer they are rows of the halo.
//
// Bytes per GPU: each row of the halo crosses the link once; y is written once, and read and
// written again in each pass after the first.
#include <map>
#include <optional>

#include "plait/base/error.h"
#include "plait/exchange/cuda/strategy.cuh"
#include "plait/kernels/cuda/copy_rows.cuh"
#include "plait/machine/machine.h"
#include "plait/placement/arrival.h"

namespace plait {
namespace {

// Rows for a peer, in its slots' order: own rows, or sums that are made of them beforehand.
struct Outgoing {
  std::unique_ptr<PeerSums> sums;  // or null
  std::uint64_t before = 0;        // sums for peers before this one
};

struct Plan {
  std::vector<std::vector<HaloChunk>> chunks;  // by block to send
  std::vector<std::vector<Signal>> arrivals;   // by pass after the first
  std::span<const RowGroups> groups;           // by pass; empty until they are asked for
  std::optional<Passes> passes;                // made when first summed
};

class Pipelined : public DeviceStrategy {
 public:
  Pipelined(const DeviceGraph& graph, DeviceLink& link, const std::vector<double>& pass_shares)
      : graph_(graph), link_(link), pass_shares_(pass_shares) {
    for (const SendBlock& block : graph.send) {
      Outgoing& out = outgoing_.emplace_back();
      if (block.sums.count() == 0) continue;
      out.before = sum_count_;
      out.sums = std::make_unique<PeerSums>(block.sums, graph.shard.own, link.stream());
      sum_count_ += block.rows;
    }
  }

  void prepare(const DeviceProduct& p) override {
    passes_of(prepare_plan(p, widths_of_sum(p)), p).prepare(p.width);
  }
  void run(const DeviceProduct& p) override {
    const PassWidths widths = widths_of_sum(p);
    Plan& plan = plan_for(p, widths);
    Passes& passes = passes_of(plan, p);
    in_passes(p, plan, passes.count(), [&](std::size_t pass, const void* slots, DType type) {
      passes.run(pass, p, p.rows(slots, type));
    });
    if (link_.ranks() > 1) link_.signals().end_step({p.result(graph_.shard.own)}, p.stream);
  }

  void prepare_gather(const DeviceProduct& p, const std::optional<PassWidths>& widths) override {
    Plan& plan = prepare_plan(p, widths.value_or(widths_of_sum(p)));
    if (widths) groups_of(plan, p, *widths);
  }
  void gather(const DeviceProduct& p, const GatherEnqueue& use) override {
    Plan& plan = plan_for(p, use.widths.value_or(widths_of_sum(p)));
    const std::size_t passes = use.widths ? groups_of(plan, p, *use.widths).size() : 1;
    in_passes(p, plan, passes, [&](std::size_t pass, const void* slots, DType) {
      use.enqueue(static_cast<const float*>(slots), pass);
    });
    if (link_.ranks() > 1) link_.signals().end_step(use.results, p.stream);
  }
  std::span<const RowGroups> pass_groups(const DeviceProduct& p,
                                         const PassWidths& widths) override {
    return groups_of(plan_for(p, widths), p, widths);
  }

  void prepare_part(StepPart part, const DeviceProduct& p) override {
    if (part == StepPart::link) return static_cast<void>(prepare_plan(p, widths_of_sum(p)));
    if (!whole_) whole_ = std::make_unique<Passes>(graph_, link_, groups_.of({}, p.stream));
    whole_->prepare(p.width);
  }
  void run_part(StepPart part, const DeviceProduct& p) override {
    if (part == StepPart::sum) return whole_->run(0, p, p.rows(link_.slots(link_.rank())));
    if (link_.ranks() == 1) return;
    const Plan& plan = plan_for(p, widths_of_sum(p));
    link_.follow(p.stream);
    push(p, plan, reinterpret_cast<const float*>(link_.slots(link_.rank())));
    for (const auto& arrival : plan.arrivals) link_.signals().wait(arrival, p.stream);
    link_.let_follow(p.stream);
    link_.signals().end_step({}, p.stream);
  }
  std::size_t passes(const DeviceProduct& p) override {
    return passes_of(plan_for(p, widths_of_sum(p)), p).count();
  }

  bool recordable(std::uint64_t width) const override {
    std::uint64_t most = 0;
    for (const RankLoad& load : graph_.loads) most = std::max(most, load.halo);
    return most * row_bytes(width, link_.wire()) <= machine().recorded_halo;
  }
  std::uint64_t bytes_fetched(std::uint64_t width) const override {
    return (graph_.shard.slot_count() - graph_.shard.own) * row_bytes(width, link_.wire());
  }

 private:
  // Pushes own rows to the peers that read them, and calls enqueue(pass, slots, type) for each pass
  // as soon as the rows are there that its edges read. `slots`: where slot 0 stands or would stand,
  // in rows of the type. A single pass over all edges comes when all rows are there.
  template <class Enqueue>
  void in_passes(const DeviceProduct& p, const Plan& plan, std::size_t passes,
                 const Enqueue& enqueue) {
    const auto pass = [&](std::size_t number, const void* slots, DType type) {
      const auto span = link_.span("pass", number, "sum", p.stream);
      enqueue(number, slots, type);
    };
    const bool one_pass = passes == 1 && !plan.arrivals.empty();
    const float* own = place_own_rows(p, graph_, link_, false);
    if (one_pass && exchange_at_once(p, plan, own))
      return pass(0, link_.slots(link_.rank()), DType::f32);
    if (link_.ranks() > 1) {  // the work that begins first in a recorded step takes the GPU
      link_.follow(p.stream);
      push(p, plan, own);
    }
    if (!one_pass)
      pass(0, own, DType::f32);
    else if (own == p.x)
      own = place_own_rows(p, graph_, link_, true);
    for (std::size_t k = 0; k < plan.arrivals.size(); ++k) {
      {
        const auto span = link_.span("wait for pass", k + 1, "sum", p.stream);
        link_.signals().wait(plan.arrivals[k], p.stream);
      }
      if (!one_pass) pass(k + 1, slot_zero(graph_, link_, link_.rank(), p), link_.wire());
    }
    if (one_pass) pass(0, slot_zero(graph_, link_, link_.rank(), p), link_.wire());
    // x and this step's signals have left before the caller may change x.
    if (link_.ranks() > 1) link_.let_follow(p.stream);
  }

  std::span<const RowGroups> groups_of(Plan& plan, const DeviceProduct& p,
                                       const PassWidths& widths) {
    if (plan.groups.empty()) plan.groups = groups_.of(cuts_of(link_.rank(), widths), p.stream);
    return plan.groups;
  }

  Passes& passes_of(Plan& plan, const DeviceProduct& p) {
    if (!plan.passes) plan.passes.emplace(graph_, link_, groups_of(plan, p, widths_of_sum(p)));
    return *plan.passes;
  }

  PassWidths widths_of_sum(const DeviceProduct& p) const {
    return {row_bytes(p.width), row_bytes(p.width, link_.wire())};
  }

  std::vector<std::uint64_t> cuts_of(int rank, const PassWidths& widths) const {
    const RankLoad& load = graph_.loads[static_cast<std::size_t>(rank)];
    if (graph_.fixed_order) return {};
    if (!pass_shares_.empty()) return cuts_at(pass_shares_, load.halo);
    auto cuts = halo_cuts(load, widths, graph_.block_ends[static_cast<std::size_t>(rank)]);
    // A single pass over all edges reads own rows as they are stored in slots.
    if (cuts.empty() && load.halo > 0 && link_.wire() != DType::f32) cuts = {load.halo};
    return cuts;
  }

  // Cuts a block on its way to `rank` as that rank sums it.
  static std::vector<HaloChunk> chunks(const std::vector<std::uint64_t>& cuts, const RankLoad& load,
                                       std::uint64_t slot, std::uint64_t rows) {
    auto list = block_chunks(slot - load.own, rows, cuts.empty() ? std::vector{load.halo} : cuts);
    static_assert(kMostBlockParts == DeviceSignals::kDone);
    require(list.size() <= kMostBlockParts,
            "a block of the halo has {} parts, and can have {} at most", list.size(),
            kMostBlockParts);
    return list;
  }

  // Makes room for sums for peers, also for a known width: another width may have been refused.
  void prepare_sums(const DeviceProduct& p, bool known) {
    const bool captured = link_.was_recorded();
    const bool moved = sums_.reserve(sum_count_ * p.stride(), captured);
    if (sums_.size() > 0 && (moved || !known)) {  // padding is sent, too
      link_.follow(p.stream);                     // other widths' sums have left, also of replays
      check_cuda(cudaMemsetAsync(sums_.data(), 0, sums_.size() * sizeof(float), link_.stream()),
                 "sums");
      link_.let_follow(p.stream);
    }
    for (const Outgoing& out : outgoing_)
      if (out.sums) out.sums->prepare(p.width, captured);
  }

  Plan& prepare_plan(const DeviceProduct& p, const PassWidths& widths) {
    prepare_sums(p, plans_.contains({p.width, widths}));
    return plan_for(p, widths);
  }

  Plan& plan_for(const DeviceProduct& p, const PassWidths& widths) {
    const std::pair key(p.width, widths);
    if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
    const auto cuts = cuts_of(link_.rank(), widths);
    auto plan = std::make_unique<Plan>();
    for (const SendBlock& block : graph_.send)
      plan->chunks.push_back(chunks(cuts_of(block.peer, widths),
                                    graph_.loads[static_cast<std::size_t>(block.peer)], block.slot,
                                    block.rows));
    const RankLoad& load = graph_.loads[static_cast<std::size_t>(link_.rank())];
    if (load.halo > 0) plan->arrivals.resize(std::max<std::size_t>(cuts.size(), 1));
    for (const HaloBlock& block : graph_.shard.halo) {
      int number = 0;
      for (const HaloChunk& chunk : chunks(cuts, load, block.begin, block.rows))
        plan->arrivals[chunk.pass].push_back({block.owner, number++});
    }
    return *plans_.emplace(key, std::move(plan)).first->second;
  }

  // `own`: own rows, scaled. The link's stream already follows them.
  void push(const DeviceProduct& p, const Plan& plan, const float* own) {
    DeviceSignals& signals = link_.signals();
    const std::uint64_t row_bytes = p.row_bytes(link_.wire());
    // Recorded steps move rows by kernels only (machine().recorded_halo).
    const bool recorded = is_recorded(link_.stream());
    const bool by_copies = link_.wire() == DType::f32 && !recorded;
    if (const auto pushes = kernel_pushes(p, plan, own, recorded)) {
      for (std::size_t b = 0; b < graph_.send.size(); ++b) sum_for(b, p, own, link_.stream());
      const auto span = link_.span("pushes", pushes->size(), "link", link_.stream());
      return signals.push(*pushes, {}, machine().push_blocks, link_.stream());
    }
    std::vector<Signal> summed;
    for (const SendBlock& block : graph_.send) summed.push_back({block.peer, DeviceSignals::kDone});
    {
      const auto span = link_.span("wait for step", 0, "link", link_.stream());
      signals.wait(summed, link_.stream(), 1);
    }
    for (std::size_t b = 0; b < graph_.send.size(); ++b) {
      const SendBlock& block = graph_.send[b];
      sum_for(b, p, own, link_.stream());
      const float* const from = source(b, p, own);
      int number = 0;
      for (const HaloChunk& chunk : plan.chunks[b]) {
        const auto span = link_.span("push to rank", static_cast<std::size_t>(block.peer), "link",
                                     link_.stream());
        std::byte* const to =
            slot_zero(graph_, link_, block.peer, p) + (block.slot + chunk.first) * row_bytes;
        if (block.in_order() && by_copies)
          check_cuda(cudaMemcpyAsync(to, from + chunk.first * p.stride(), chunk.rows * row_bytes,
                                     cudaMemcpyDefault, link_.stream()),
                     "pushing rows");
        else
          copy_rows({.from = block.in_order() ? from + chunk.first * p.stride() : from,
                     .from_stride = p.stride(),
                     .rows = block.in_order() ? nullptr : block.row.data() + chunk.first,
                     .count = chunk.rows,
                     .width = p.width,
                     .to = to,
                     .type = link_.wire(),
                     .blocks = machine().pick_blocks},
                    link_.stream());
        signals.raise(block.peer, number++, link_.after_copies());
      }
    }
  }

  // Returns where the rows for a peer stand, in order or to be picked.
  const float* source(std::size_t block, const DeviceProduct& p, const float* own) const {
    const Outgoing& out = outgoing_[block];
    return out.sums ? sums_.data() + out.before * p.stride() : own;
  }
  void sum_for(std::size_t block, const DeviceProduct& p, const float* own, cudaStream_t stream) {
    const Outgoing& out = outgoing_[block];
    if (!out.sums) return;
    const auto span = link_.span("sum for rank", static_cast<std::size_t>(graph_.send[block].peer),
                                 "link", stream);
    out.sums->run(p, own, sums_.data() + out.before * p.stride(), stream);
  }

  // Returns all rows for peers as the pushes of one kernel; nothing if they are so many that copy
  // engines are faster, or are to change their type. `recorded`: a kernel is faster in any case.
  std::optional<std::vector<Push>> kernel_pushes(const DeviceProduct& p, const Plan& plan,
                                                 const float* own, bool recorded) const {
    if (link_.wire() != DType::f32) return std::nullopt;
    const std::uint64_t row_bytes = p.row_bytes(DType::f32);
    std::uint64_t bytes = 0;
    std::vector<Push> pushes;
    for (std::size_t b = 0; b < graph_.send.size(); ++b) {
      const SendBlock& block = graph_.send[b];
      const float* const from = source(b, p, own);
      std::byte* const to = slot_zero(graph_, link_, block.peer, p);
      int number = 0;
      for (const HaloChunk& chunk : plan.chunks[b]) {
        pushes.push_back({.peer = block.peer,
                          .from = block.in_order() ? from + chunk.first * p.stride() : from,
                          .to = to + (block.slot + chunk.first) * row_bytes,
                          .bytes = chunk.rows * row_bytes,
                          .number = number++,
                          .rows = block.in_order() ? nullptr : block.row.data() + chunk.first,
                          .row_bytes = row_bytes});
        bytes += chunk.rows * row_bytes;
      }
    }
    if (bytes > machine().push_by_kernel && !recorded) return std::nullopt;
    return pushes;
  }

  // Where a step has one pass, nothing overlaps: one kernel on the product's stream pushes the
  // rows, places own rows that stand at `own` in their slots, and waits for the halo. Returns
  // whether it did: not if the rows are many, or arrive in parts.
  bool exchange_at_once(const DeviceProduct& p, const Plan& plan, const float* own) {
    constexpr std::uint64_t kFew = 4 << 20;  // bytes that few blocks move in the time of a launch
    if (plan.arrivals.size() != 1) return false;
    const std::uint64_t own_bytes = graph_.shard.own * p.row_bytes(DType::f32);
    auto pushes = kernel_pushes(p, plan, own, is_recorded(p.stream));
    if (!pushes || own_bytes > kFew) return false;
    std::byte* const slots = link_.slots(link_.rank());
    if (reinterpret_cast<const std::byte*>(own) != slots)
      pushes->push_back({.peer = link_.rank(), .from = own, .to = slots, .bytes = own_bytes});
    for (std::size_t b = 0; b < graph_.send.size(); ++b) sum_for(b, p, own, p.stream);
    const auto span = link_.span("pushes", pushes->size(), "link", p.stream);
    link_.signals().push(*pushes, plan.arrivals.front(), machine().push_blocks, p.stream);
    return true;
  }

  const DeviceGraph& graph_;
  DeviceLink& link_;
  const std::vector<double> pass_shares_;
  std::vector<Outgoing> outgoing_;  // by block to send
  std::uint64_t sum_count_ = 0;     // of all of them
  StepMemory sums_;                 // rows as in slots
  PassGroups groups_{graph_};
  std::map<std::pair<std::uint64_t, PassWidths>, std::unique_ptr<Plan>> plans_;  // by width
  std::unique_ptr<Passes> whole_;                                                // for run_part()
};

}  // namespace

std::unique_ptr<DeviceStrategy> make_pipelined(const DeviceGraph& graph, DeviceLink& link,
                                               const std::vector<double>& pass_shares) {
  return std::make_unique<Pipelined>(graph, link, pass_shares);
}

}  // namespace plait
