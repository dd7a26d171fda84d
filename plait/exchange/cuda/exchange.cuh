// Exchange between GPUs, one per rank: the link, the placed graph in both directions, and the
// strategy that moves rows, with the sums that strategies make while rows arrive.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "plait/exchange/cuda/strategy.cuh"
#include "plait/exchange/exchange.h"
#include "plait/exchange/options.h"
#include "plait/exchange/row_parts.h"
#include "plait/kernels/cuda/edge_pass.cuh"

namespace plait {

// An operation over edges that can be done in passes, while rows arrive.
struct PassesUse {
  // Operations of one kind, on rows of one width, need the same preparation, on all ranks.
  using Kind = std::array<std::uint64_t, 3>;
  Kind kind;
  PassWidths widths;  // of its rows and results
  // Takes the memory that operations of the kind need; what it throws, all ranks throw. Gets the
  // groups of all passes, which live as long as the exchange.
  std::function<void(std::span<const RowGroups> passes)> prepare;
  // Enqueues one pass on the exchange's stream. Its rows stay until that work is done.
  std::function<void(const EdgeRows& edges, const EdgePass& pass)> work;
  std::vector<Results> results;  // as GatherUse::results
};

// The exchange of one rank on its GPU. Work is enqueued on the stream of the options; no call waits
// for it unless its comment says so.
class GpuExchange : public Exchange {
 public:
  // Collective. Uses the current GPU of each rank. Throws UsageError for a route that is not
  // possible (resolved()), and DoesNotFitError as reserve() does.
  GpuExchange(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
              const ExchangeOptions& options);
  ~GpuExchange() override { finish(); }
  // Waits for the GPU. If an exception is destroying the owner, first ends the GPU's waits for
  // other ranks.
  void finish();

  void reserve(std::uint64_t row_bytes) override;
  void gather(Direction direction, const void* rows, std::uint64_t row_bytes,
              const GatherUse& use) override;
  // Collective. As gather(), for `rows` of `width` floats and an operation that is done in passes
  // if the strategy makes them. Throws UsageError on all ranks if the stream is being captured and
  // no operation of this kind has run on such rows.
  void gather_in_passes(Direction direction, const float* rows, std::uint64_t width,
                        const PassesUse& use);
  std::unique_ptr<Messages> make_messages(Direction direction) override;
  EdgeRows edges(Direction direction) const override;
  // In memory of the GPU.
  std::span<const std::uint64_t> vertices(Direction direction) const override;
  void check() const override { link_.signals().check(); }
  ExchangeCost cost() const override;

  // Collective. Enqueues y = diag(post) A diag(pre) x, summed as rows arrive. Throws UsageError for
  // a width without room or too wide for a sum, DoesNotFitError, both on all ranks, and
  // LostRankError.
  void sum(Direction direction, const DeviceProduct& product);
  // Collective. Enqueues the sum of an array in the GPU's memory over ranks, the same bits on all.
  void all_reduce_sum(float* values, std::uint64_t count);
  // Collective. Enqueues the exchange of rows of any type: part r of `send` becomes part `rank` of
  // what rank r receives. Both sides know the numbers; a rank sends itself nothing. Joins NCCL at
  // the first call. If a rank is lost, all bits of the rows received are set.
  void exchange_rows(const SentRows& send, const ReceivedRows& received);
  // Collective. Enqueues one part of a sum in the forward direction (StepPart).
  void run_part(StepPart part, const DeviceProduct& product);
  // Calls `work`, which runs one step, waits for the GPU, and returns which part ran when.
  template <class Work>
  std::vector<TraceSpan> trace(const Work& work) {
    DeviceTrace trace;
    struct Reset {
      DeviceLink& link;
      ~Reset() { link.set_trace(nullptr); }
    } const reset{link_};
    link_.set_trace(&trace);
    work();
    return trace.spans();
  }

  // The stream, the link and the placed graph of a direction; this object owns the latter two.
  cudaStream_t stream() const { return stream_; }
  DeviceLink& link() { return link_; }
  const DeviceLink& link() const { return link_; }
  const DeviceGraph& graph(Direction direction) const { return side(direction).graph; }
  // Tells whether both directions are the same graph.
  bool symmetric() const { return !backward_; }
  // Tells whether the work of both directions can be recorded in a CUDA graph (DeviceStrategy).
  bool recordable() const;
  // Returns the number of passes of a forward sum of rows of `width` floats.
  std::size_t passes(std::uint64_t width);
  // On the host, for each own row: the sum of its edges' weights, and the number of its edges; then
  // the number of all edges of own rows.
  const std::vector<float>& degree() const { return degree_; }
  const std::vector<float>& edge_counts() const { return counts_; }
  EdgeOffset edge_count() const { return edges_; }

 private:
  // One direction of the graph.
  struct Side {
    DeviceGraph graph;
    DeviceArray<std::uint64_t> vertices;  // of slots, or empty
    std::unique_ptr<DeviceStrategy> strategy = nullptr;
  };
  void place(const AnyCsr& any, bool symmetric, const Partition& partition,
             const ExchangeOptions& options);
  std::unique_ptr<DeviceStrategy> make(const DeviceGraph& graph, const ExchangeOptions& options,
                                       const GetModule* module);
  const Side& side(Direction direction) const {
    return direction == Direction::against && backward_ ? *backward_ : *forward_;
  }
  // The work that a strategy was made ready for. `kind`: of PassesUse, or zeros.
  enum class For { sum, gather, passes, link_part, sum_part };
  struct Ready {
    const Side* side;
    For work;
    std::uint64_t width;
    PassesUse::Kind kind = {};
    auto operator<=>(const Ready&) const = default;
  };
  // Collective. Calls `prepare` within DeviceLink::prepare() unless that was done before. Throws
  // UsageError if it was not and the stream is being recorded.
  void make_ready(const Ready& work, const std::function<void()>& prepare);
  using Work = std::function<void(const EdgeRows& edges, std::size_t pass)>;
  // The operation of both kinds of gather(); of `use`, all but the work is used.
  void gather(const Side& of, Direction direction, const DeviceProduct& rows, StepKind kind,
              const Work& work, GatherEnqueue use);
  // Throws as gather().
  void require_gather(const DeviceProduct& rows, std::size_t results) const;
  // Returns rows that are only moved.
  DeviceProduct rows_of(const float* rows, std::uint64_t width) const {
    return {nullptr, nullptr, false, rows, nullptr, width, stream_};
  }
  void join_nccl();
  bool stores_halo() const;
  bool lost() const { return paged_ ? paged_->lost() : link_.lost(); }
  void count(const Side& side, std::uint64_t width);

  World& world_;
  const Route route_;
  const cudaStream_t stream_;
  DeviceLink link_;
  std::unique_ptr<Nccl> nccl_;
  std::optional<PagedRows> paged_;
  std::unique_ptr<Side> forward_, backward_;  // backward_: null if the graph is symmetric
  std::uint64_t width_ = 0;                   // floats that there is room for
  std::set<Ready> ready_;                     // the same on all ranks
  EdgeOffset edges_ = 0;
  std::vector<float> degree_, counts_;
  ExchangeCost cost_;
};

}  // namespace plait
