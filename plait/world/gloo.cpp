// Collectives through c10d's ProcessGroupGloo on plain memory wrapped as tensors.
#include "plait/world/gloo.h"

#include <ATen/ATen.h>
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "plait/base/system_limits.h"
#include "plait/world/rendezvous_torchrun.h"

namespace plait {
namespace {

// In effect, this limit is never reached: the watch over ranks ends a wait for a lost rank.
constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(10000);
constexpr const char* kEnded = "waits for other ranks have been ended";

// Turns c10d's and Gloo's exceptions into ours, without stack traces and in one line.
template <class Operation>
auto translate(Operation&& operation) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  try {
    return operation();
  } catch (const c10::Error& error) {
    throw Error(first_line(error.what_without_backtrace()));
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      refuse_thread(error.code().value());
    throw Error(first_line(error.what()));
  } catch (const std::exception& error) {
    throw Error(first_line(error.what()));
  }
}

bool is_address(const std::string& text) {
  in6_addr ignored;
  return inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

template <class T>
at::Tensor as_tensor(std::span<T> values) {
  constexpr auto type = std::is_same_v<T, float>          ? at::kFloat
                        : std::is_same_v<T, double>       ? at::kDouble
                        : std::is_same_v<T, std::int32_t> ? at::kInt
                        : std::is_same_v<T, std::int64_t> ? at::kLong
                                                          : at::kByte;
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, type);
}

// Gloo only reads what it sends, but a tensor has no read-only form.
at::Tensor as_tensor(std::span<const std::byte> bytes) {
  return as_tensor(std::span(const_cast<std::byte*>(bytes.data()), bytes.size()));
}

// The ranks' store as c10d sees it, as far as Gloo uses it to meet.
class GlooStore : public c10d::Store {
 public:
  explicit GlooStore(std::unique_ptr<plait::Rendezvous> store) : store_(std::move(store)) {}

  c10::intrusive_ptr<c10d::Store> clone() override { refuse(); }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    store_->set(key, {value.begin(), value.end()});
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const std::string value = await(key, getTimeout());
    return {value.begin(), value.end()};
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return store_->add(key, amount);
  }
  bool deleteKey(const std::string&) override { refuse(); }
  bool check(const std::vector<std::string>& keys) override {
    return std::ranges::all_of(keys, [&](const std::string& key) {
      return store_->get(key, std::chrono::milliseconds(1)).has_value();
    });
  }
  std::int64_t getNumKeys() override { refuse(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& limit) override {
    for (const std::string& key : keys) await(key, limit);
  }

 private:
  [[noreturn]] static void refuse() { throw Error("this is more than Gloo asks of a store"); }
  std::string await(const std::string& key, std::chrono::milliseconds limit) {
    auto value = store_->get(key, limit);
    require(value.has_value(), "a rank has not come within {} ms", limit.count());
    return std::move(*value);
  }

  const std::unique_ptr<plait::Rendezvous> store_;
};

class Gloo : public Collectives {
 public:
  explicit Gloo(const GlooOptions& options) : rank_(options.rank), size_(options.size) {
    translate([&] { connect(options); });
  }

  void barrier() override {
    translate([&] { group_->barrier()->wait(); });
  }
  void all_reduce(const ReducedValues& values, Reduction how) override {
    std::visit([&](auto some) { reduce(some, how); }, values);
  }

  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> received) override {
    const int tag = next_tag();
    translate([&] {
      // All receives and sends are posted before any is waited for, so that no order of the ranks
      // can block them. Peers are taken in turn from the own rank on, to spread the load.
      Works work;
      for (int step = 1; step < size_; ++step) {
        const int source = (rank_ + size_ - step) % size_;
        const auto bytes = received[static_cast<std::size_t>(source)];
        if (bytes.empty()) continue;
        std::vector<at::Tensor> tensors{as_tensor(bytes)};
        work.push_back(group_->recv(tensors, source, tag));
      }
      for (int step = 1; step < size_; ++step) {
        const int target = (rank_ + step) % size_;
        const auto bytes = send[static_cast<std::size_t>(target)];
        if (bytes.empty()) continue;
        std::vector<at::Tensor> tensors{as_tensor(bytes)};
        work.push_back(group_->send(tensors, target, tag));
        bytes_sent_ += bytes.size();
      }
      copy_own(send[static_cast<std::size_t>(rank_)], received[static_cast<std::size_t>(rank_)]);
      await(work);
    });
  }

  void end_waits() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const auto& one : awaited_) one->abort();
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (bytes.empty()) return;
    translate([&] {
      std::vector<at::Tensor> tensors{as_tensor(bytes)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      options.rootTensor = 0;
      group_->broadcast(tensors, options)->wait();
    });
    bytes_sent_ += bytes.size() * broadcast_children(root);
  }

  std::uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  void connect(const GlooOptions& options) {
    quieten_torch();
    RendezvousAddress address = options.store;
    address.prefix += "/gloo";
    auto store =
        c10::make_intrusive<GlooStore>(plait::Rendezvous::connect(address, options.join_timeout));
    store->setTimeout(options.join_timeout);
    auto gloo = c10d::ProcessGroupGloo::Options::create(options.join_timeout);
    gloo->devices = {is_address(options.interface)
                         ? c10d::ProcessGroupGloo::createDeviceForHostname(options.interface)
                         : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface)};
    gloo->threads = 1;  // collectives come one at a time
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank_, size_, gloo);
    group_->setTimeout(kLongestWait);
  }

  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  // The sends and receives that end_waits() ends. Gloo reads and writes the caller's memory while
  // one of them is held: none is, however the wait for them ends.
  class Awaited {
   public:
    Awaited(Gloo& gloo, const Works& work) : gloo_(gloo) {
      const std::lock_guard lock(gloo_.mutex_);
      require(!gloo_.ended_, "{}", kEnded);
      gloo_.awaited_ = work;
    }
    ~Awaited() {
      const std::lock_guard lock(gloo_.mutex_);
      gloo_.awaited_.clear();
    }
    Awaited(const Awaited&) = delete;
    Awaited& operator=(const Awaited&) = delete;

   private:
    Gloo& gloo_;
  };

  void await(const Works& work) {
    const Awaited awaited(*this, work);
    // Without a time of their own, sends and receives would wait as long as joining may take. An
    // aborted one returns false.
    for (const auto& one : work) require(one->wait(kLongestWait), "{}", kEnded);
  }

  // Gloo has no unsigned numbers: shifted by half their range, they are signed ones in the same
  // order. Sums wrap alike.
  template <class T>
  void reduce(std::span<T> values, Reduction how) {
    if (values.empty()) return;
    if constexpr (std::unsigned_integral<T>) {
      const T half = how == Reduction::sum ? 0 : T{1} << (8 * sizeof(T) - 1);
      using Signed = std::make_signed_t<T>;
      std::vector<Signed> shifted;
      for (const T value : values) shifted.push_back(static_cast<Signed>(value ^ half));
      reduce(std::span(shifted), how);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(shifted[i]) ^ half;
    } else {
      reduce_as_they_are(values, how);
    }
  }

  template <class T>
  void reduce_as_they_are(std::span<T> values, Reduction how) {
    constexpr c10d::ReduceOp::RedOpType kOperation[] = {c10d::ReduceOp::SUM, c10d::ReduceOp::MIN,
                                                        c10d::ReduceOp::MAX};
    translate([&] {
      std::vector<at::Tensor> tensors{as_tensor(values)};
      c10d::AllreduceOptions options;
      options.reduceOp = kOperation[static_cast<std::size_t>(how)];
      group_->allreduce(tensors, options)->wait();
    });
    // A ring: each rank passes on (n - 1) / n of the data twice.
    const auto ranks = static_cast<std::uint64_t>(size_);
    bytes_sent_ += 2 * values.size_bytes() * (ranks - 1) / ranks;
  }

  static void copy_own(std::span<const std::byte> from, std::span<std::byte> to) {
    if (!from.empty() && from.data() != to.data())
      std::memmove(to.data(), from.data(), from.size());
  }

  // Returns the number of ranks to which this one passes a broadcast on, in a binomial tree.
  std::uint64_t broadcast_children(int root) const {
    const int place = (rank_ - root + size_) % size_;
    std::uint64_t children = 0;
    for (int step = 1; place + step < size_; step *= 2)
      if (step > place) ++children;
    return children;
  }

  // Tells one exchange from the next. Gloo needs it below 2^31; equal tags far apart do no harm.
  int next_tag() { return tag_ = (tag_ + 1) & 0x3fffffff; }

  const int rank_, size_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  int tag_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::mutex mutex_;  // guards the members below
  Works awaited_;     // by an all_to_all()
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Collectives> join_gloo(const GlooOptions& options) {
  return std::make_unique<Gloo>(options);
}

}  // namespace plait
