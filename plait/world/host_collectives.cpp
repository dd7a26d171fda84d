// The memory of a group is a barrier and, for each rank, two slots: a header that says what the
// rank takes part in, and a window of its bytes. An operation is a number of turns. In a turn each
// rank fills its slot, all meet at the barrier, and each reads the slots of others; what is longer
// than a window takes several turns.
//
// Turns use both slots in turn, so that one barrier per turn suffices: who fills a slot again has
// passed the barrier of the turn between, at which the others arrived after they had read it. The
// barrier orders all accesses (futex_barrier.h), so that slots are plain memory.
#include "plait/world/host_collectives.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/system_limits.h"
#include "plait/world/descriptor_socket.h"
#include "plait/world/futex_barrier.h"

namespace plait {
namespace {

constexpr std::size_t kLine = 64;
// All windows of a turn should stay in a processor's cache.
constexpr std::size_t kMostWindow = std::size_t{256} << 10, kLeastWindow = std::size_t{16} << 10,
                      kWindows = std::size_t{4} << 20;
// Up to this many bytes each rank reduces the values of all by itself, in one turn; above, each
// reduces a share, and the others copy it.
constexpr std::size_t kReducedByAll = std::size_t{16} << 10;

enum class Operation : std::uint64_t { barrier, reduction, exchange, broadcast };

// The operation in which a rank takes part. Zeroes, as fresh memory has them, are a barrier.
struct Header {
  Operation operation = Operation::barrier;
  std::uint64_t bytes = 0;   // of the values; in exchanges: that this rank sends to others
  std::uint64_t detail = 0;  // of reductions: which, and of what type; of broadcasts: the root
  bool operator==(const Header&) const = default;
};

// The beginning of the memory. Zeroes are its initial state.
struct Common {
  BarrierState barrier;
  // Not 0 once a rank has failed in an operation, or has left: a round of the barrier that has not
  // ended then never ends, as whoever leaves in order has passed its last one.
  alignas(kLine) std::atomic<std::uint32_t> broken;
};

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Where things are in the memory of a group of so many ranks.
struct Layout {
  explicit Layout(std::size_t group_size)
      : ranks(group_size),
        window(std::clamp(kWindows / ranks / kLine * kLine, kLeastWindow, kMostWindow)),
        header(whole_lines(sizeof(Header) + ranks * sizeof(std::uint64_t))) {}

  std::size_t slot(std::size_t rank, std::size_t turn) const {
    return whole_lines(sizeof(Common)) + (2 * rank + turn) * (header + window);
  }
  std::size_t bytes() const { return slot(ranks, 0); }

  std::size_t ranks, window, header;
};

// A range of bytes among all that go through a rank's window.
struct Range {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end > begin ? end - begin : 0; }
  Range within(const Range& other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

class HostCollectives : public Collectives {
 public:
  HostCollectives(const HostGroup& group, SharedMemory memory, std::function<void()> check)
      : layout_(group.numbers.size()),
        rank_(static_cast<std::size_t>(group.rank)),
        numbers_(group.numbers),
        memory_(std::move(memory)),
        check_(std::move(check)),
        common_(*std::launder(reinterpret_cast<Common*>(memory_.bytes().data()))),
        barrier_(common_.barrier, static_cast<int>(layout_.ranks)) {}

  // A process that was forked from this one has a mapping of its own.
  ~HostCollectives() override {
    if (process_ == ::getpid()) common_.broken = 1;
  }

  // Waits until all ranks have joined.
  void meet_first(const std::function<void()>& check) {
    Call call(*this);
    meet(check);
    call.end();
  }

  void barrier() override {
    Call call(*this);
    begin_turn({});
    meet_alike();
    call.end();
  }
  void all_reduce(const ReducedValues& values, Reduction how) override {
    std::visit([&](auto some) { reduce(some, how); }, values);
  }

  // The bytes for all other ranks go through the window one behind the other, beginning with those
  // for the next rank, so that in each turn all ranks have something to copy.
  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override {
    std::vector<std::uint64_t> starts(layout_.ranks);
    std::vector<Range> parts(layout_.ranks);  // by sender: what it sends to this rank
    for (std::size_t step = 1; step < layout_.ranks; ++step)
      starts[step] = starts[step - 1] + send[after(rank_, step)].size();
    Call call(*this);
    std::uint64_t longest = 0;
    for (std::uint64_t at = 0; at == 0 || at < longest; at += layout_.window) {
      const Range window{at, at + layout_.window};
      begin_turn({Operation::exchange, starts.back()});
      if (at == 0) std::ranges::copy(starts, starts_of(rank_));
      for (std::size_t step = 1; step < layout_.ranks; ++step)
        put(send[after(rank_, step)], {starts[step - 1], starts[step]}, window);
      meet_for(Operation::exchange);
      if (at == 0) {
        for (std::size_t r = 0; r < layout_.ranks; ++r) {
          longest = std::max(longest, header(r).bytes);
          if (r != rank_) parts[r] = part_from(r, received[r].size());
        }
      }
      for (std::size_t step = 1; step < layout_.ranks; ++step) {
        const std::size_t r = after(rank_, layout_.ranks - step);
        take(received[r], r, parts[r], window);
      }
    }
    const std::span<const std::byte> own = send[rank_];
    if (!own.empty() && own.data() != received[rank_].data())
      std::memmove(received[rank_].data(), own.data(), own.size());
    bytes_sent_ += starts.back();
    call.end();
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const auto from = static_cast<std::size_t>(root);
    const Range all{0, bytes.size()};
    Call call(*this);
    for (std::uint64_t at = 0; at == 0 || at < bytes.size(); at += layout_.window) {
      const Range window{at, at + layout_.window};
      begin_turn({Operation::broadcast, bytes.size(), from});
      if (rank_ == from) put(bytes, all, window);
      meet_alike();
      if (rank_ != from) take(bytes, from, all, window);
    }
    if (rank_ == from) count_sent(bytes.size());
    call.end();
  }

  void end_waits() override { ended_ = true; }
  std::uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  static constexpr const char* kEnded = "waits for other ranks have been ended";

  // An operation of this rank. Unless it comes to its end, the group is of no use any more, to any
  // rank: nothing is written where others may still read.
  class Call {
   public:
    explicit Call(HostCollectives& group) : group_(group) {
      require(group.process_ == ::getpid(), "this process was forked from a rank, and is none");
      require(!group.ended_, "{}", kEnded);
      require(group.common_.broken == 0, "a rank has left the others, or has failed");
    }
    ~Call() {
      if (!ended_) group_.common_.broken = 1;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void end() { ended_ = true; }

   private:
    HostCollectives& group_;
    bool ended_ = false;
  };

  // Returns the rank `steps` after another one, in a ring.
  std::size_t after(std::size_t rank, std::size_t steps) const {
    return (rank + steps) % layout_.ranks;
  }
  std::byte* slot(std::size_t rank) const {
    return memory_.bytes().data() + layout_.slot(rank, turn_);
  }
  Header& header(std::size_t rank) const {
    return *std::launder(reinterpret_cast<Header*>(slot(rank)));
  }
  // By steps to the receiver, less one: where its bytes begin, and at the end their number.
  std::uint64_t* starts_of(std::size_t rank) const {
    return std::launder(reinterpret_cast<std::uint64_t*>(slot(rank) + sizeof(Header)));
  }
  std::byte* window_of(std::size_t rank) const { return slot(rank) + layout_.header; }

  void begin_turn(const Header& mine) {
    turn_ = 1 - turn_;
    header(rank_) = mine;
  }

  // The round cannot end before this rank has arrived, so that the generation before is its own;
  // and a rank that breaks the group after the round's end has seen that end.
  void meet(const std::function<void()>& check) {
    const std::atomic<std::uint32_t>& generation = common_.barrier.generation;
    const auto round = generation.load(std::memory_order_relaxed);
    barrier_.wait([&] {
      require(!ended_, "{}", kEnded);
      if (check) check();
      const bool broken = common_.broken.load(std::memory_order_acquire) != 0;
      require(!broken || generation.load(std::memory_order_acquire) != round,
              "a rank has left the others, or has failed");
    });
  }
  // Ends a turn. Calls that do not match would read bytes of another meaning: all ranks throw.
  void meet_for(Operation operation, bool alike = false) {
    meet(check_);
    for (std::size_t r = 0; r < layout_.ranks; ++r) {
      const bool matches = alike ? header(r) == header(rank_) : header(r).operation == operation;
      require(matches, "ranks {} and {} make calls that do not match", numbers_[std::min(r, rank_)],
              numbers_[std::max(r, rank_)]);
    }
  }
  // Ends a turn whose headers are the same on all ranks.
  void meet_alike() { meet_for(header(rank_).operation, true); }

  Range part_from(std::size_t sender, std::uint64_t room) const {
    const std::size_t step = after(rank_, layout_.ranks - sender);
    const Range part{starts_of(sender)[step - 1], starts_of(sender)[step]};
    require(part.size() == room, "rank {} sends {} bytes to rank {}, which has room for {}",
            numbers_[sender], part.size(), numbers_[rank_], room);
    return part;
  }

  // Copies what a window shows of `bytes`, which are `part` of all that goes through it, to this
  // rank's slot; and back from the slot of `rank`.
  void put(std::span<const std::byte> bytes, const Range& part, const Range& window) const {
    const Range here = part.within(window);
    if (here.size() > 0)
      std::memcpy(window_of(rank_) + (here.begin - window.begin),
                  bytes.data() + (here.begin - part.begin), here.size());
  }
  void take(std::span<std::byte> bytes, std::size_t rank, const Range& part,
            const Range& window) const {
    const Range here = part.within(window);
    if (here.size() > 0)
      std::memcpy(bytes.data() + (here.begin - part.begin),
                  window_of(rank) + (here.begin - window.begin), here.size());
  }
  void count_sent(std::uint64_t bytes) {
    if (layout_.ranks > 1) bytes_sent_ += bytes;
  }

  template <class T>
  T* values_of(std::size_t rank) const {
    return std::launder(reinterpret_cast<T*>(window_of(rank)));
  }

  // Combines in the order of ranks, whoever does it: the same bits on all.
  template <class T>
  void combine_all(std::span<T> values, std::size_t at, Reduction how) const {
    std::copy_n(values_of<T>(0) + at, values.size(), values.data());
    for (std::size_t r = 1; r < layout_.ranks; ++r) combine(values, values_of<T>(r) + at, how);
  }

  template <class T>
  void reduce(std::span<T> values, Reduction how) {
    const std::uint64_t type = ReducedValues(values).index();
    const std::size_t most = layout_.window / sizeof(T);
    std::vector<T> share(std::min(most, values.size()) / layout_.ranks + 1);
    Call call(*this);
    for (std::size_t at = 0; at == 0 || at < values.size(); at += most) {
      const std::span<T> some = values.subspan(at, std::min(most, values.size() - at));
      begin_turn(
          {Operation::reduction, values.size_bytes(), type << 8 | static_cast<std::uint64_t>(how)});
      std::ranges::copy(some, values_of<T>(rank_));
      meet_alike();
      if (layout_.ranks <= 2 || some.size_bytes() <= kReducedByAll) {
        combine_all(some, 0, how);
        continue;
      }
      const auto begin = [&](std::size_t r) { return some.size() * r / layout_.ranks; };
      const std::span<T> mine = std::span(share).first(begin(rank_ + 1) - begin(rank_));
      combine_all(mine, begin(rank_), how);
      // Nobody else reads a rank's own values of its own share.
      std::ranges::copy(mine, values_of<T>(rank_) + begin(rank_));
      meet(check_);
      for (std::size_t r = 0; r < layout_.ranks; ++r)
        std::copy_n(values_of<T>(r) + begin(r), begin(r + 1) - begin(r), some.data() + begin(r));
      count_sent(mine.size_bytes());
    }
    count_sent(values.size_bytes());
    call.end();
  }

  const Layout layout_;
  const std::size_t rank_;
  const std::vector<int> numbers_;
  const SharedMemory memory_;
  const std::function<void()> check_;
  const pid_t process_ = ::getpid();
  Common& common_;
  FutexBarrier barrier_;
  std::size_t turn_ = 0;
  std::atomic<bool> ended_ = false;
  std::uint64_t bytes_sent_ = 0;
};

// Joining takes steps that need not succeed at once.
class Patience {
 public:
  Patience(std::chrono::milliseconds limit, const std::function<void()>& check)
      : end_(std::chrono::steady_clock::now() + limit), limit_(limit), check_(check) {}
  void check() const {
    check_();
    require(std::chrono::steady_clock::now() < end_,
            "the ranks of this host have not shared memory within {} ms", limit_.count());
  }
  // Checks, and sleeps for a moment.
  void pause() const {
    check();
    is_readable(Descriptor());
  }

 private:
  const std::chrono::steady_clock::time_point end_;
  const std::chrono::milliseconds limit_;
  const std::function<void()>& check_;
};

constexpr std::chrono::milliseconds kGet{200};

[[noreturn]] void refuse_socket(int error) {
  const std::string text =
      fmt::format("a Unix-domain socket between ranks cannot be used: {}", reason(error));
  if (error == EMFILE || error == ENFILE) throw SystemLimitError(text);
  throw Error(text + "; if the ranks are on several hosts, give each host another PLAIT_HOST_ID");
}

// Makes the memory, and gives it to each other rank of the group.
SharedMemory give_memory(const HostGroup& group, std::size_t bytes, Rendezvous& store,
                         const Patience& patience) {
  auto [memory, descriptor] = SharedMemory::create(bytes);
  if (group.numbers.size() == 1) return std::move(memory);
  const SocketName name = random_socket_name();
  const Descriptor listener = listen_at(name);
  store.set(group.key, std::string(name.begin(), name.end()));
  for (std::size_t given = 1; given < group.numbers.size();) {
    patience.check();
    if (!is_readable(listener)) continue;
    const Descriptor socket = accept_from(listener);
    if (!socket.open() && (errno == EMFILE || errno == ENFILE)) refuse_socket(errno);
    if (!socket.open()) continue;
    int error = send_descriptor(socket, group.rank, descriptor);
    // All processes of the user together may have too many descriptors under way.
    while (error == EAGAIN || error == EINTR || error == ETOOMANYREFS) {
      patience.pause();
      error = send_descriptor(socket, group.rank, descriptor);
    }
    if (error == 0) ++given;  // a peer that has gone is found out by the watch
  }
  return std::move(memory);
}

SharedMemory take_memory(const HostGroup& group, std::size_t bytes, Rendezvous& store,
                         const Patience& patience) {
  std::optional<std::string> text;
  for (; !text; patience.check()) text = store.get(group.key, kGet);
  SocketName name{};
  require(text->size() == name.size(), "a rank tells of no socket");
  std::ranges::copy(*text, name.begin());
  const Descriptor socket = open_socket();
  if (!socket.open()) refuse_socket(errno);
  for (int error = connect_to(socket, name); error != 0; error = connect_to(socket, name)) {
    if (error != EAGAIN && error != EINTR) refuse_socket(error);
    patience.pause();
  }
  auto received = receive_descriptor(socket);
  for (; !received; received = receive_descriptor(socket)) {
    patience.check();
    is_readable(socket);
  }
  if (received->cut) refuse_socket(EMFILE);
  require(received->rank == 0 && received->descriptor.open(),
          "a rank has handed over no shared memory");
  return SharedMemory::map(received->descriptor, bytes);
}

}  // namespace

std::unique_ptr<Collectives> join_host_group(const HostGroup& group, Rendezvous& store,
                                             std::chrono::milliseconds limit,
                                             const std::function<void()>& check_join,
                                             std::function<void()> check) {
  const Patience patience(limit, check_join);
  const std::size_t bytes = Layout(group.numbers.size()).bytes();
  SharedMemory memory = group.rank == 0 ? give_memory(group, bytes, store, patience)
                                        : take_memory(group, bytes, store, patience);
  auto joined = std::make_unique<HostCollectives>(group, std::move(memory), std::move(check));
  joined->meet_first([&] { patience.check(); });
  return joined;
}

}  // namespace plait
