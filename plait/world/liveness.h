// The watch over ranks: no rank waits for one that is gone.
//
// Each rank has two threads. One exchanges heartbeats with the store: it writes this rank's (a
// counter, its phase, whether it has left) and reads all others'. The other one judges the store
// and acts, so that it can do so even while the store does not answer. A rank is lost
//   - when the store says so, told by the launcher that saw it die, or by the rank itself as an
//     exception ended it;
//   - when its counter has stood still for 0.8 timeouts;
//   - when it keeps the store, and the connection breaks;
//   - when it has left after fewer operations than this rank has begun, so that it will never
//     join this one;
//   - when the operation that it has begun is of another kind than this rank's, after as many
//     before: the two would wait for each other for ever. Operations of all ranks are compared
//     with those of all. Ranks of a host may have operations of their own besides: they are
//     compared, in one order with those of all ranks, within the host;
//   - when its GPU stands still: work is under way that neither ends nor waits for another rank.
//     Each rank judges this of itself (watched_work.h) and tells the store.
//
// A rank that computes for long is not lost: its heartbeat thread goes on.
//
// Only time in which this process itself ran is counted, on its own clock: a whole job that is
// suspended and continued loses nobody, and clocks of hosts are never compared.
//
// The first verdict is put into the store, so that all ranks name the same one. On each of them
// either the main thread takes it, by check() or explain(), as an exception; or, as the main thread
// may be blocked where nothing can reach it, the watch prints the line and ends the process with
// exit code 1. Waits of watched work end with the verdict.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plait/world/loss.h"
#include "plait/world/rendezvous.h"
#include "plait/world/watched_work.h"

namespace plait {

// The watch of one rank. Any thread may call its functions, except that check(), explain() and
// yield_to_watch() are for the main thread.
class Liveness {
 public:
  // The place of this rank, and the times after which a rank is lost.
  struct Options {
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds timeout{5000};
    int store_keeper = kNoRank;  // the rank in whose process the store is, if any
    std::string store_place;     // for messages
    std::string world;           // tells this world's keys from the keys of an earlier one
    std::chrono::milliseconds work_timeout{0};  // of watched work that stands still; 0: none
    std::vector<std::string> kind_names;        // of operations: "a reduction over ranks"
  };

  // Starts both threads. `store` must be a connection that nobody else uses.
  Liveness(Options options, std::unique_ptr<Rendezvous> store);
  ~Liveness() { stop(); }

  // Counts an operation in which all ranks take part, in the same order on each; by one thread at a
  // time. Operations of different kinds cannot meet. `kind`: an index of kind_names of the options;
  // the last name is that of all greater kinds, too.
  static constexpr std::uint64_t kKinds = 4096;
  void begin_operation(std::size_t kind) {
    count(of_all_, kind);
    count(on_host_, kind);
  }
  // Counts an operation of this host's ranks alone. Before the first, set_host() must be called.
  void begin_host_operation(std::size_t kind) { count(on_host_, kKinds + kind); }
  // Names the ranks of this host, whose operations are compared.
  void set_host(const std::vector<int>& ranks);

  // Throws LostRankError if a rank is lost.
  void check();
  // Must be called after an operation has failed here with `error`, as it does when a peer
  // vanishes. Waits up to the timeout for the verdict, so that the message can name the rank, and
  // throws LostRankError; without a verdict, Error with this text.
  [[noreturn]] void explain(const std::string& error);
  // Has the beat thread announce that this rank "failed REASON". The main thread knows, so it has
  // the verdict.
  void declare_failed(const std::string& reason);
  // Waits up to the timeout, and tells whether there is a verdict. Leaves it to the watch.
  bool await_verdict();
  // Tells whether there is a verdict, without waiting.
  bool has_verdict();
  // Does not return if there is a verdict that the main thread has not taken.
  void yield_to_watch();

  // Sends a heartbeat soon: others then know the present phase of this rank, even if it is killed
  // before its next heartbeat is due.
  void tell_phase();

  // As World's. The work outlives its being watched.
  void watch(WatchedWork& work);
  void unwatch(WatchedWork& work);

  // Tells the others that this rank has done all its operations and leaves; others may still work.
  void announce_leave();
  // Ends both threads and the waits of watched work. Losses do not matter any more.
  void stop();

 private:
  using Duration = std::chrono::nanoseconds;
  struct Peer {
    std::string counter;                    // as last read; empty before its first heartbeat
    std::string phase;                      // as last read
    std::uint64_t of_all = 0, on_host = 0;  // as the members of these names, as last read
    bool left = false;                      // after these operations
    bool near = false;                      // it is on this host
    Duration silence{0};
  };
  struct Watched {
    WatchedWork* work = nullptr;
    std::uint64_t moved = 0;  // as last seen
    Duration still{0};        // since when it has been the same, with work under way
  };
  struct Verdict {
    int rank = kNoRank;  // kNoRank: the store, kept by no rank
    std::string text;
    bool patient = false;  // the rank failed by itself, as this one may be about to
  };

  // A number of operations and the kind of the last one, in one number. A kind of the host's ranks
  // is kKinds greater than that of all ranks.
  using Operations = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t kAllKinds = 2 * kKinds;
  static void count(Operations& operations, std::uint64_t kind) {
    const std::uint64_t begun = operations.load(std::memory_order_relaxed) / kAllKinds + 1;
    operations.store(begun * kAllKinds + kind, std::memory_order_relaxed);
  }

  // The beat thread.
  void run_beat();
  void exchange(Duration elapsed);
  std::string next_heartbeat();
  void read_peer(Peer& peer, const std::string& heartbeat, Duration elapsed);
  std::optional<Loss> judge();
  std::optional<Loss> judge_operations(int rank, std::uint64_t theirs, std::uint64_t ours);
  std::string kind_name(std::uint64_t operation) const;
  std::optional<Loss> judge_work(Duration elapsed);
  std::optional<Loss> declared();

  // The watch thread.
  void run_watch();
  void act(Duration verdict_age);
  bool told_by_itself();

  void adopt(const Loss& loss);
  std::string last_phase(int rank);
  void lose_store(const std::string& how);
  void set_verdict(Verdict verdict);
  void end_waits();  // under the mutex
  Duration time_run(std::chrono::steady_clock::time_point& last) const;
  Duration patience() const;

  const Options options_;
  const Duration interval_;
  const std::unique_ptr<Rendezvous> store_;
  std::vector<std::string> keys_;  // the lost key, then one heartbeat per rank
  // Operations that have begun: of all ranks; of all ranks and of this host's, in one order.
  Operations of_all_{0}, on_host_{0};

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::vector<Watched> watched_;
  std::optional<Verdict> verdict_;
  std::optional<Loss> declared_;  // this rank's own failure
  Duration store_silence_{0};
  std::uint64_t beats_ = 0;
  bool left_ = false;
  bool urgent_ = false;   // someone waits for the verdict: look often
  bool tells_ = false;    // a heartbeat is wanted before it is due
  bool claimed_ = false;  // the main thread has the verdict
  bool stopping_ = false;

  std::thread beat_;
  std::thread watch_;
};

}  // namespace plait
