// A world of several ranks: rendezvous through the store, collectives through memory that a host's
// ranks share or through Gloo, and the watch over all of it.
#include "plait/world/world.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/system_limits.h"
#include "plait/world/descriptors.h"
#include "plait/world/fail.h"
#include "plait/world/gloo.h"
#include "plait/world/host.h"
#include "plait/world/host_collectives.h"
#include "plait/world/host_world.h"
#include "plait/world/join.h"
#include "plait/world/liveness.h"
#include "plait/world/loss.h"
#include "plait/world/phase.h"
#include "plait/world/rendezvous.h"
#include "plait/world/rendezvous_wire.h"
#include "plait/world/together.h"
#include "plait/world/turn.h"
#include "plait/world/watched_world.h"
#include "plait/world/world_channel.h"

namespace plait {
namespace {

using std::chrono::milliseconds;

// Worlds of one process, one after the other, do not share keys.
std::string next_world_name() {
  static int count = 0;
  return fmt::format("world{}", count++);
}

class Joined : public WatchedWorld {
 public:
  Joined(const WorldConfig& config, std::unique_ptr<Rendezvous> served);
  ~Joined() override { close(std::uncaught_exceptions() > exceptions_, "failed"); }

  int rank() const override { return config_.rank; }
  int size() const override { return config_.size; }
  milliseconds timeout() const override { return config_.timeout; }

  std::unique_ptr<Channel> open_channel() override;

  const std::vector<int>& ranks_of_host() const override { return ranks_of_host_; }
  World& host_world() override;
  void store_set(const std::string& key, const std::string& value) override {
    try {
      store_->set("user/" + key, "=" + value);
    } catch (const Error& error) {
      liveness_->explain(error.what());
    }
  }
  std::string store_get(const std::string& key) override;

  void check_alive() override {
    require_own_process();
    liveness_->check();
  }
  [[noreturn]] void explain(const std::string& error) override { liveness_->explain(error); }
  void declare_failed(const std::string& reason) override {
    // A process that was forked from a rank is none, and has no watch.
    if (process_ == ::getpid()) liveness_->declare_failed(reason);
  }
  void watch(WatchedWork& work) override { liveness_->watch(work); }
  void unwatch(WatchedWork& work) override { liveness_->unwatch(work); }
  std::uint64_t bytes_sent() const override {
    return collectives_->bytes_sent() + (host_ ? host_->bytes_sent() : 0);
  }

  static void end(bool failing, const std::string& reason) {
    if (is_open()) open_->close(failing, "failed with " + reason);
  }

 private:
  bool keeps_store() const { return config_.rank == 0 && !config_.store_is_external; }
  std::string place() const {
    return fmt::format("{}:{}", config_.master_address, config_.master_port);
  }
  std::string key(const char* name) const { return name_ + '/' + name; }
  void open_store();
  std::unique_ptr<Rendezvous> reach_store();
  bool takes_place(Rendezvous& store) const;
  void meet();
  void compare_hosts();
  std::unique_ptr<Collectives> join_group(const std::string& name, const std::vector<int>& members,
                                          std::function<void()> check);
  std::unique_ptr<Collectives> join_over_network(const std::string& name,
                                                 const std::vector<int>& members);
  bool arrive(const char* counter, const char* all, milliseconds limit);
  bool wait_for_all(const char* all, milliseconds limit);
  std::vector<int> missing_ranks();
  void tell_missing();
  void close(bool failing, const std::string& reason);
  void leave();
  static void end_after(milliseconds limit);
  // Tells whether this process has a world to close; a process forked from a rank has none.
  static bool is_open() { return open_ != nullptr && open_->process_ == ::getpid(); }
  void require_own_process() const {
    require<UsageError>(process_ == ::getpid(),
                        "this process was forked from rank {} after the ranks had joined, so it is "
                        "no rank itself; call collective operations in the rank's own process",
                        config_.rank);
  }
  static void at_exit(int status, void* world);

  void begin_kind(std::size_t kind) override {
    require_own_process();
    liveness_->begin_operation(kind);
  }
  Collectives& collectives() override { return *collectives_; }

  static Joined* open_;  // the world that is not closed yet, for at_exit()
  WorldConfig config_;   // as it was given, but for the prefix of this turn
  const int exceptions_ = std::uncaught_exceptions();
  const pid_t process_ = ::getpid();
  const std::string name_ = next_world_name();
  std::vector<int> all_ranks_, ranks_of_host_;
  bool closed_ = false;
  int channels_ = 0;  // that were opened
  // In this order: groups and the watch end before the store that this process may keep.
  std::unique_ptr<Rendezvous> store_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<HostWorld> host_;
};

Joined* Joined::open_ = nullptr;

namespace {

// Ranks, and the libraries that they use, may write to a socket or a pipe that its peer's death has
// closed. This is an error of this process, and not its end. The program's own handling of the
// signal stays.
void ignore_broken_pipes() {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Joined::Joined(const WorldConfig& config, std::unique_ptr<Rendezvous> served)
    : config_(config),
      all_ranks_(static_cast<std::size_t>(config.size)),
      store_(std::move(served)) {
  std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
  if (keeps_store()) require_descriptors_of_rank(config_.size, true);
  open_store();
  try {
    require_descriptors_of_rank(config_.size, keeps_store());
    const Phase phase("joining");
    ignore_broken_pipes();
    meet();
    compare_hosts();
    collectives_ = join_group(name_, all_ranks_, [this] { liveness_->check(); });
  } catch (const std::exception&) {
    close(true, "failed");
    throw;
  }
  liveness_->tell_phase();  // a heartbeat may just have said that this rank is joining
  open_ = this;
  // A program may end without destroying its World; the others must know whether it was done.
  static const int registered = ::on_exit(at_exit, nullptr);
  static_cast<void>(registered);
}

void Joined::open_store() {
  try {
    if (config_.store_is_torchruns) config_.store_prefix = take_turn(config_);
    if (!store_) store_ = reach_store();
    const RendezvousAddress address = rendezvous_address(config_);
    Liveness::Options options{config_.rank, config_.size, config_.timeout, kNoRank, place(), name_};
    if (!config_.store_is_external) options.store_keeper = 0;
    options.work_timeout = config_.work_timeout;
    options.kind_names = kind_names();
    liveness_ =
        std::make_unique<Liveness>(options, Rendezvous::connect(address, config_.join_timeout));
  } catch (const SystemLimitError&) {
    if (store_) {
      prepare_loss(*store_);
      announce_loss(*store_, {config_.rank, "failed", Phase::at_failure()});
    }
    throw;
  } catch (const Error& error) {
    throw Error(
        fmt::format("rank {}: {} (rank 0 or the launcher keeps it; check the address "
                    "MASTER_ADDR, the port MASTER_PORT and PLAIT_SECRET)",
                    config_.rank, error.what()));
  }
}

std::unique_ptr<Rendezvous> Joined::reach_store() {
  const RendezvousAddress address = rendezvous_address(config_);
  if (keeps_store()) return Rendezvous::serve(address, config_.listen_address);
  if (config_.store_is_external) return Rendezvous::connect(address, config_.join_timeout);
  // The program before may not have ended yet on rank 0, whose store has had this rank already.
  const auto end = std::chrono::steady_clock::now() + config_.join_timeout;
  for (;;) {
    const auto left = end - std::chrono::steady_clock::now();
    auto store = Rendezvous::connect(address, std::chrono::duration_cast<milliseconds>(left));
    if (takes_place(*store)) return store;
    require(std::chrono::steady_clock::now() < end,
            "another process has joined there as rank {} already", config_.rank);
    std::this_thread::sleep_for(milliseconds(50));
  }
}

// Returns whether this process is the first of its rank in the store, which may be about to end.
bool Joined::takes_place(Rendezvous& store) const {
  const Nonce nonce = make_nonce();
  const std::string mine(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  try {
    return store.replace(fmt::format("{}/place/{}", name_, config_.rank), "", mine) == mine;
  } catch (const Error&) {
    return false;
  }
}

// Waits once for all ranks at the same point. Returns whether they came within the limit.
bool Joined::arrive(const char* counter, const char* all, milliseconds limit) {
  if (store_->add(key(counter), 1) == config_.size) store_->set(key(all), "1");
  return wait_for_all(all, limit);
}

bool Joined::wait_for_all(const char* all, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!store_->get(key(all), milliseconds(200))) {
    if (std::chrono::steady_clock::now() > end) return false;
    if (liveness_->has_verdict()) return false;
  }
  return true;
}

// Returns the ranks that have not told their host yet, as they do first of all.
std::vector<int> Joined::missing_ranks() {
  std::vector<int> missing;
  for (int rank = 0; rank < config_.size; ++rank)
    if (!store_->get(fmt::format("{}/host/{}", name_, rank), milliseconds(1)))
      missing.push_back(rank);
  return missing;
}

// The first rank that is there tells. A launcher of Plait's own ends the others if one has failed.
void Joined::tell_missing() {
  if (config_.store_is_external && !config_.store_is_torchruns) return;
  const std::vector<int> missing = missing_ranks();
  int first = 0;
  while (std::ranges::binary_search(missing, first)) ++first;
  if (missing.empty() || first != config_.rank) return;
  fmt::print(stderr, "plait: rank {} waits for ranks that have not joined yet: {}\n", config_.rank,
             fmt::join(missing, ", "));
}

void Joined::meet() {
  constexpr milliseconds kPatience = std::chrono::seconds(5);
  const milliseconds limit = config_.join_timeout, silent = std::min(kPatience, limit / 2);
  try {
    store_->set(fmt::format("{}/host/{}", name_, config_.rank), host_identity());
    if (arrive("joined", "all_joined", silent)) return;
    if (!liveness_->has_verdict()) {
      tell_missing();
      if (wait_for_all("all_joined", limit - silent)) return;
    }
  } catch (const Error& error) {
    liveness_->explain(error.what());
  }
  liveness_->check();
  std::string refused;
  if (const int count = store_->refused(); count > 0)
    refused = fmt::format("; connections with another secret (PLAIT_SECRET) were refused {} time{}",
                          count, count == 1 ? "" : "s");
  throw Error(fmt::format("rank {}: of {} ranks, these have not joined within {:g} s: {}{}",
                          config_.rank, config_.size,
                          std::chrono::duration<double>(config_.join_timeout).count(),
                          fmt::join(missing_ranks(), ", "), refused));
}

void Joined::compare_hosts() {
  std::vector<std::string> keys;
  for (int rank = 0; rank < config_.size; ++rank)
    keys.push_back(fmt::format("{}/host/{}", name_, rank));
  const auto hosts = store_->get_all(keys);
  const auto& mine = hosts[static_cast<std::size_t>(config_.rank)];
  for (int rank = 0; rank < config_.size; ++rank)
    if (hosts[static_cast<std::size_t>(rank)] == mine) ranks_of_host_.push_back(rank);
}

// Joins the group of this name, which no group of the store has had before. `members`: its ranks,
// ascending, this one among them. `check`: what is called while the group's operations wait, if it
// is of one host; a group over the network finds out by itself that a rank has gone.
std::unique_ptr<Collectives> Joined::join_group(const std::string& name,
                                                const std::vector<int>& members,
                                                std::function<void()> check) {
  try {
    const std::string& interface = config_.interface_address;
    require(interface.empty() || is_of_this_host(interface),
            "this host has no address or interface '{}', as PLAIT_INTERFACE says", interface);
    if (!std::ranges::includes(ranks_of_host_, members)) return join_over_network(name, members);
    const auto place = std::ranges::find(members, config_.rank) - members.begin();
    return join_host_group(
        {static_cast<int>(place), members, name + "/memory"}, *store_, config_.join_timeout,
        [this] { liveness_->check(); }, std::move(check));
  } catch (const SystemLimitError&) {  // of this rank, so that it knows what to say
    throw;
  } catch (const DoesNotFitError&) {
    throw;
  } catch (const Error& error) {
    liveness_->explain(error.what());
  }
}

std::unique_ptr<Collectives> Joined::join_over_network(const std::string& name,
                                                       const std::vector<int>& members) {
  const auto place = std::ranges::find(members, config_.rank) - members.begin();
  GlooOptions options{static_cast<int>(place),
                      static_cast<int>(members.size()),
                      {},
                      config_.interface_address,
                      config_.join_timeout};
  options.store = rendezvous_address(config_);
  options.store.prefix += '/' + name;
  if (options.interface.empty())
    options.interface = local_address_towards(config_.master_address, config_.master_port);
  try {
    return join_gloo(options);
  } catch (const SystemLimitError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format(
        "Gloo cannot connect the ranks: {} (this rank listens on {}; PLAIT_INTERFACE names another "
        "address or interface)",
        error.what(), options.interface));
  }
}

std::unique_ptr<Channel> Joined::open_channel() {
  meet_for_group();
  const Phase phase("opening a channel");
  // The watch ends a channel's waits itself (world_channel.h): its verdict is the main thread's.
  return together(*this, "while opening a channel", [&] {
    return make_channel(
        *this, join_group(fmt::format("{}/channel{}", name_, ++channels_), all_ranks_, {}));
  });
}

World& Joined::host_world() {
  if (one_host()) return *this;
  if (host_) return *host_;
  meet_for_group();
  const Phase phase("joining the ranks of this host");
  liveness_->set_host(ranks_of_host_);
  host_ = together(*this, "while joining the ranks of its host", [&] {
    return std::make_unique<HostWorld>(
        *this, *liveness_, [this](const std::string& name, std::function<void()> check) {
          return join_group(name_ + '/' + name, ranks_of_host_, std::move(check));
        });
  });
  return *host_;
}

std::string Joined::store_get(const std::string& key) {
  std::optional<std::string> value;
  try {
    value = store_->get("user/" + key, config_.timeout);
  } catch (const Error& error) {
    liveness_->explain(error.what());
  }
  liveness_->check();
  require(value && !value->empty(), "rank {}: no rank has set '{}' in the store within {} ms",
          config_.rank, key, config_.timeout.count());
  return value->substr(1);
}

void Joined::at_exit(int status, void*) {
  if (is_open()) open_->close(status != 0, fmt::format("failed with exit code {}", status));
}

// Ends this process if it has not ended by itself: without a watch over ranks, nothing else ends a
// wait for a GPU that stands still, as in the destructors of what is on it. Where no thread can be
// started for that, the launcher ends it.
void Joined::end_after(milliseconds limit) try {
  start_thread([limit] {
    std::this_thread::sleep_for(limit);
    ::_exit(1);
  }).detach();
} catch (const SystemLimitError&) {
}

void Joined::close(bool failing, const std::string& reason) {
  if (std::exchange(closed_, true)) return;
  open_ = nullptr;
  if (failing && liveness_->has_verdict()) end_after(config_.timeout);
  try {
    if (!failing) {
      leave();
    } else {
      if (!liveness_->has_verdict()) {
        liveness_->stop();  // or it would learn of this loss in its turn
        store_->limit_answers(config_.timeout);
        announce_loss(*store_, {config_.rank, reason, Phase::at_failure()});
      }
      // Others read it from the store that ends with this process.
      if (keeps_store()) std::this_thread::sleep_for(config_.timeout / 10);
    }
  } catch (const Error&) {
    // The store is gone. With this rank's work done, this is a loss all the same.
    if (!failing) liveness_->await_verdict();
  }
  if (!failing) liveness_->yield_to_watch();
  liveness_->stop();
}

void Joined::leave() {
  store_->set(fmt::format("left/{}", config_.rank), "1");
  liveness_->announce_leave();
  // A rank may compute for days after the others are done.
  const bool together = arrive("left", "all_left", std::chrono::hours(10000));
  if (together && config_.store_is_torchruns) end_turn(*store_);
  if (!together || config_.store_is_external) return;
  // The keeper of the store must be the last to go: the others stop their watch first.
  if (keeps_store()) {
    store_->get(key("all_gone"), config_.timeout);
    return;
  }
  liveness_->stop();
  if (store_->add(key("gone"), 1) == config_.size - 1) store_->set(key("all_gone"), "1");
}

}  // namespace

void World::explain(const std::string& error) { throw Error(error); }

void fail_world(const std::string& reason) { Joined::end(true, reason); }

void leave_world() { Joined::end(false, ""); }

std::unique_ptr<World> World::join(const WorldConfig& config) { return join_at(config, nullptr); }

std::unique_ptr<World> join_at(const WorldConfig& config, std::unique_ptr<Rendezvous> served) {
  require<UsageError>(config.size >= 1 && config.rank >= 0 && config.rank < config.size,
                      "rank {} is outside 0..{}, the ranks of a world of {}", config.rank,
                      config.size - 1, config.size);
  if (config.size == 1) return World::alone();
  return std::make_unique<Joined>(config, std::move(served));
}

}  // namespace plait
