#include <algorithm>
#include <optional>

#include "plait/base/cuda/pinned_array.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/profile.h"
#include "plait/base/saturating.h"
#include "plait/exchange/cuda/messages.cuh"
#include "plait/symmetric/peer_access.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kFailed = ~std::uint64_t{0};      // a call that this rank cannot make
constexpr int kArrived = 0;                               // signal
constexpr std::uint64_t kWhole = std::uint64_t{1} << 63;  // beside a count: all rows of the block

// Room for a value and its row number. (nvcc loses the brackets of a sum with sizeof that becomes
// an argument of Bytes.)
constexpr std::uint64_t kBytesPerValue = 12;

// The beginning of a section of an inbox.
struct Header {
  std::uint64_t call, count, word, marked;
};

// A section of an inbox, in memory of the owner. It has room for `rows` row numbers and as many
// values of 8 bytes.
struct Section {
  Header* header;
  std::uint32_t* rows;
  std::byte* values;
};

// The slots of one owner, and where marked ones go.
struct Outgoing {
  std::uint64_t begin, rows;
  const std::uint32_t* row;  // the owner's row numbers; null: all its rows, in order
  Section to;
};
// By halo block; behind them the own slots, which go nowhere.
struct Outbox {
  Outgoing of[kMostGpus];
};

// By block: marked slots, and those that were written so far. Zero between pushes.
struct Counts {
  std::uint64_t marked[kMostGpus], written[kMostGpus];
};

// The host reads these facts of a push in its memory: by halo block what was sent, the marked slots
// of this rank, and by sender what has come.
struct Told {
  std::uint64_t sent[kMostGpus];
  std::uint64_t marked;
  Header come[kMostGpus];
};

// Returns the marks of slots begin .. end - 1 in a word.
__device__ std::uint32_t marks_in(std::uint32_t word, std::uint64_t number, std::uint64_t begin,
                                  std::uint64_t end) {
  if (number == begin / 32) word &= ~0u << begin % 32;
  if (number == end / 32) word &= (1u << end % 32) - 1;
  return word;
}

// Values and row numbers take more bytes than all values of the block.
__device__ bool goes_whole(std::uint64_t marked, std::uint64_t rows, std::uint64_t value_bytes) {
  return marked * (value_bytes + sizeof(std::uint32_t)) > rows * value_bytes;
}

__global__ void count_marks(const __grid_constant__ Outbox out, const std::uint32_t* marks,
                            Counts* counts) {
  const Outgoing& block = out.of[blockIdx.y];
  const std::uint64_t end = block.begin + block.rows;
  unsigned long long marked = 0;
  for (std::uint64_t w = block.begin / 32 + blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
       w * 32 < end; w += std::uint64_t{gridDim.x} * kThreads)
    marked += __popc(marks_in(marks[w], w, block.begin, end));
  marked = sum_of_warp(marked);
  if (threadIdx.x % kWarp == 0 && marked > 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(counts->marked + blockIdx.y), marked);
}

// Writes values to the owners' inboxes, and takes the marks away. A warp has the slots of one word
// of marks. `reset`: values that are sent become 0.
template <class Bits>
__global__ void send_values(const __grid_constant__ Outbox out, Bits* values, std::uint32_t* marks,
                            Counts* counts, bool reset) {
  const Outgoing& block = out.of[blockIdx.y];
  const std::uint64_t marked = counts->marked[blockIdx.y];
  if (marked == 0) return;
  Bits* const of_halo = values + block.begin;
  auto* const to = reinterpret_cast<Bits*>(block.to.values);
  const bool whole = goes_whole(marked, block.rows, sizeof(Bits));
  const std::uint64_t thread = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * kThreads;
  if (whole)
    for (std::uint64_t h = thread; h < block.rows; h += threads) {
      to[h] = of_halo[h];
      if (reset) of_halo[h] = 0;
    }
  const std::uint64_t end = block.begin + block.rows;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::uint64_t w = block.begin / 32 + thread / 32; w * 32 < end; w += threads / 32) {
    const std::uint32_t word = __shfl_sync(kAll, lane == 0 ? marks[w] : 0u, 0);
    const std::uint32_t bits = marks_in(word, w, block.begin, end);
    if (bits == 0) continue;
    unsigned long long first = 0;
    if (lane == 0) {
      atomicAnd(marks + w, ~bits);
      if (!whole)
        first = atomicAdd(reinterpret_cast<unsigned long long*>(counts->written + blockIdx.y),
                          static_cast<unsigned long long>(__popc(bits)));
    }
    first = __shfl_sync(kAll, first, 0);
    if (whole || (bits >> lane & 1) == 0) continue;
    const std::uint64_t h = w * 32 + lane - block.begin;
    const std::uint64_t at = first + __popc(bits & lanes_before());
    block.to.rows[at] = block.row == nullptr ? static_cast<std::uint32_t>(h) : block.row[h];
    to[at] = of_halo[h];
    if (reset) of_halo[h] = 0;
  }
}

// The part of a push that its headers tell.
struct Call {
  std::uint64_t call, word;
  std::uint64_t value_bytes;
};

// By one warp, a lane for each block; the own slots are block `others`. Makes the counts ready for
// the next push.
__global__ void send_headers(const __grid_constant__ Outbox out, int others, const Call call,
                             Counts* counts, Told* told) {
  const int b = static_cast<int>(threadIdx.x);
  const std::uint64_t marked = b <= others ? counts->marked[b] : 0;
  const std::uint64_t of_all = sum_of_warp(marked);
  if (b < others) {
    const std::uint64_t rows = out.of[b].rows;
    const std::uint64_t count = marked == 0                                  ? 0
                                : goes_whole(marked, rows, call.value_bytes) ? kWhole | rows
                                                                             : marked;
    *out.of[b].to.header = {call.call, count, call.word, of_all};
    told->sent[b] = count;
  }
  if (b <= others) counts->marked[b] = counts->written[b] = 0;
  if (b == 0) told->marked = of_all;
}

// The headers of all senders, and the call of the rank that reads them.
struct Headers {
  const Header* of;
  int ranks, rank;
  std::uint64_t call;
};

// Merges what one sender has sent, if all make the same call, and tells the host of it. `all`: the
// rows of its block; null: all own rows, in order.
template <Merge how, class T>
__global__ void merge_values(const Section from, const Headers headers, const std::uint32_t* all,
                             T* values, std::uint32_t* marks, Header* told) {
  const std::uint64_t count = from.header->count;
  if (blockIdx.x == 0 && threadIdx.x == 0) *told = *from.header;
  const int r = static_cast<int>(threadIdx.x);
  const bool others = r < headers.ranks && r != headers.rank;
  if (!__syncthreads_and(!others || headers.of[r].call == headers.call)) return;
  const bool whole = (count & kWhole) != 0;
  const auto* const theirs = reinterpret_cast<const T*>(from.values);
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; i < (count & ~kWhole);
       i += std::uint64_t{gridDim.x} * kThreads) {
    const auto row = !whole           ? from.rows[i]
                     : all == nullptr ? static_cast<std::uint32_t>(i)
                                      : all[i];
    const T mine = values[row], now = merged<how>(mine, theirs[i]);
    if (!changes<how>(mine, now)) continue;
    values[row] = now;
    atomicOr(marks + row / 32, 1u << row % 32);
  }
}

unsigned blocks_for(std::uint64_t threads) {
  constexpr std::uint64_t kMostBlocks = 1056;  // 8 for each multiprocessor of an H100
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>((threads + kThreads - 1) / kThreads, 1, kMostBlocks));
}

DeviceLink::Transports transports_of(World& world, DeviceTransport transport) {
  if (transport == DeviceTransport::vmm && !unreached_peer(world).empty())
    transport = DeviceTransport::host;
  return {transport, transport};
}

class GpuMessages : public Messages {
 public:
  GpuMessages(World& world, const DeviceGraph& graph, DeviceTransport transport,
              cudaStream_t stream)
      : world_(world),
        graph_(graph),
        stream_(stream),
        ranks_(static_cast<std::size_t>(world.size())) {
    if (ranks_ > 1) make_inbox(world, transport);
    on_all_or_none(world, [&] {
      counts_ = DeviceArray<Counts>(std::vector<Counts>(1));
      told_.reserve(1);
    });
  }
  ~GpuMessages() override {
    if (link_) link_->abandon_if_unwinding();
    cudaStreamSynchronize(stream_);
  }

  Pushed push(const SlotValues& values, SlotMarks marks, Merge how, std::uint64_t word) override {
    const Phase phase("pushing values", "push values");
    ++cost_.pushes;
    require<UsageError>(!is_recorded(stream_),
                        "a push to owners needs the host and cannot be captured");
    // A rank that cannot make the call still meets the others, and all throw.
    std::optional<Error> failure;
    try {
      require_messages(values, marks, how, graph_.shard.slot_count());
    } catch (const UsageError&) {
      failure.emplace(error_in_flight());
    }
    const Call call{failure ? kFailed : call_of(values, how), word, value_bytes(values)};
    try {
      run(values, failure ? SlotMarks() : marks, how, call);
    } catch (const Error&) {
      leave_no_number(values, marks);
      throw;
    }
    require_alike(call, failure);
    return told(call);
  }
  const MessageCost& cost() const override { return cost_; }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(graph_.shard.rank); }
  // Returns where the section of a sender begins in the inbox of `owner`, in bytes.
  std::uint64_t section_begin(std::size_t owner, std::size_t sender) const {
    Bytes bytes = Bytes((ranks_ * sizeof(Header) + 255) / 256 * 256);
    for (std::size_t s = 0; s < sender; ++s)
      bytes = bytes + Bytes((sent_by_[s][owner] + 3) / 4 * 4) * kBytesPerValue;
    return bytes.value;
  }
  Section section(std::size_t owner, std::size_t sender) const {
    std::byte* const inbox = link_->slots(static_cast<int>(owner));
    std::byte* const rows = inbox + section_begin(owner, sender);
    const std::uint64_t room = (sent_by_[sender][owner] + 3) / 4 * 4;
    return {reinterpret_cast<Header*>(inbox) + sender, reinterpret_cast<std::uint32_t*>(rows),
            rows + room * sizeof(std::uint32_t)};
  }

  void make_inbox(World& world, DeviceTransport transport) {
    link_.emplace(world, DType::f32, transports_of(world, transport));
    std::vector<std::uint64_t> rows(ranks_);
    for (const HaloBlock& block : graph_.shard.halo)
      rows[static_cast<std::size_t>(block.owner)] = block.rows;
    sent_by_ = gather_vectors(world, rows);
    std::uint64_t most = 0;
    for (std::size_t r = 0; r < ranks_; ++r) most = std::max(most, section_begin(r, ranks_));
    link_->reserve(most);
  }
  static std::size_t value_bytes(const SlotValues& values) {
    return std::visit([](auto some) { return sizeof(typename decltype(some)::value_type); },
                      values);
  }

  // Without marks, this rank tells the others alone that it has failed.
  void run(const SlotValues& values, SlotMarks marks, Merge how, const Call& call) {
    std::visit([&](auto some) { enqueue(some, marks.data(), how, call); }, values);
    // The watch over ranks knows of the step, so that no mark need tell it of this wait.
    check_cuda(cudaStreamSynchronize(stream_), "a push to owners");
    if (link_) link_->signals().check();
  }
  // After a failure that other ranks may not have met.
  void leave_no_number(const SlotValues& values, SlotMarks marks) const {
    std::visit([&](auto some) { cudaMemsetAsync(some.data(), 0xff, some.size_bytes(), stream_); },
               values);
    cudaMemsetAsync(marks.data(), 0xff, marks.size_bytes(), stream_);
    cudaStreamSynchronize(stream_);
    cudaGetLastError();  // the failure that led here is reported instead
  }

  // Throws on all ranks the failure of one, or that they push differently.
  void require_alike(const Call& mine, const std::optional<Error>& failure) {
    bool failed = failure.has_value(), differ = false;
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (r == rank()) continue;
      const std::uint64_t call = told_.data()->come[r].call;
      failed = failed || call == kFailed;
      differ = differ || call != mine.call;
    }
    if (failed) agree_on_error(world_, failure, FailureOf::rank);
    require_on_all<UsageError>(!differ, "{}", kDifferentPushes);
  }

  Pushed told(const Call& call) {
    for (std::size_t b = 0; b < graph_.shard.halo.size(); ++b) {
      const std::uint64_t sent = told_.data()->sent[b], count = sent & ~kWhole;
      cost_.values += count;
      cost_.bytes +=
          count * (call.value_bytes + ((sent & kWhole) != 0 ? 0 : sizeof(std::uint32_t)));
    }
    Pushed pushed;
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Header& come = told_.data()->come[r];
      pushed.marked += r == rank() ? told_.data()->marked : come.marked;
      pushed.words.push_back(r == rank() ? call.word : come.word);
    }
    return pushed;
  }

  // Returns where marked slots of each halo block go.
  Outbox outbox() const {
    Outbox out{};
    std::size_t b = 0;
    for (const HaloBlock& block : graph_.shard.halo)
      out.of[b++] = {block.begin, block.rows, block.whole ? nullptr : block.row.data(),
                     section(static_cast<std::size_t>(block.owner), rank())};
    out.of[b] = {0, graph_.shard.own, nullptr, {}};
    return out;
  }

  // `marks` is null if this rank only tells the others that it has failed.
  template <class T>
  void enqueue(std::span<T> values, std::uint32_t* marks, Merge how, const Call& call) {
    const Outbox out = outbox();
    std::uint64_t most = graph_.shard.own;
    for (const HaloBlock& block : graph_.shard.halo) most = std::max(most, block.rows);
    const auto others = static_cast<int>(graph_.shard.halo.size());
    Counts* const counts = counts_.data();
    const auto count = [&] {
      if (marks == nullptr) return;
      count_marks<<<dim3(blocks_for(most / 32), others + 1), kThreads, 0, stream_>>>(out, marks,
                                                                                     counts);
    };
    const auto send = [&] {
      if (others > 0 && marks != nullptr)
        send_values<<<dim3(blocks_for(most), others), kThreads, 0, stream_>>>(
            out, reinterpret_cast<BitsOf<T>*>(values.data()), marks, counts, how == Merge::add);
      send_headers<<<1, kWarp, 0, stream_>>>(out, others, call, counts, told_.data());
      check_cuda(cudaGetLastError(), "a push to owners");
    };
    if (!link_) return count(), send();
    link_->operation(stream_, step_kind({static_cast<std::uint64_t>(LinkOperation::push)}), [&] {
      count();
      // The last push has been merged everywhere.
      link_->signals().wait(link_->others(DeviceSignals::kDone), stream_, 1);
      send();
      link_->signals().raise_everywhere(kArrived, stream_);
      link_->signals().wait(link_->others(kArrived), stream_);
      merge_sections(values.data(), marks, how, call);
      const std::span all_marks(marks, marks == nullptr ? 0 : mark_words(values.size()));
      link_->signals().end_step({std::as_writable_bytes(values), std::as_writable_bytes(all_marks)},
                                stream_);
    });
  }

  // Merges in the order of ranks: each sender has each row at most once.
  template <class T>
  void merge_sections(T* values, std::uint32_t* marks, Merge how, const Call& call) {
    const Headers headers{reinterpret_cast<const Header*>(link_->slots(graph_.shard.rank)),
                          static_cast<int>(ranks_), graph_.shard.rank, call.call};
    for (std::size_t s = 0; s < ranks_; ++s) {
      const auto block = std::ranges::find(graph_.send, static_cast<int>(s), &SendBlock::peer);
      if (s == rank()) continue;
      with_merge<T>(how, [&]<Merge kHow>() {
        merge_values<kHow><<<blocks_for(block->rows), kThreads, 0, stream_>>>(
            section(rank(), s), headers, block->whole ? nullptr : block->row.data(), values, marks,
            told_.data()->come + s);
      });
    }
    check_cuda(cudaGetLastError(), "a push to owners");
  }

  World& world_;
  const DeviceGraph& graph_;
  const cudaStream_t stream_;
  const std::size_t ranks_;
  std::optional<DeviceLink> link_;                   // its slots are the inbox
  std::vector<std::vector<std::uint64_t>> sent_by_;  // by sender and owner: the most values
  DeviceArray<Counts> counts_;
  PinnedArray<Told> told_;  // kernels write it, and the host reads it when they have ended
  MessageCost cost_;
};

}  // namespace

std::unique_ptr<Messages> make_gpu_messages(World& world, const DeviceGraph& graph,
                                            DeviceTransport transport, cudaStream_t stream) {
  return std::make_unique<GpuMessages>(world, graph, transport, stream);
}

}  // namespace plait
