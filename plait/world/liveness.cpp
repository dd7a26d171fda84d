#include "plait/world/liveness.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/system_limits.h"
#include "plait/world/phase.h"
#include "plait/world/rendezvous_wire.h"

namespace plait {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr const char* kNoHeartbeat = "-";
constexpr const char* kLeft = "left";
// Time for which a verdict waits for the main thread to take it.
constexpr nanoseconds kGrace = 100ms;
// Time between looks while someone waits for the verdict.
constexpr nanoseconds kUrgentInterval = 20ms;

constexpr nanoseconds longest_silence(nanoseconds timeout) { return timeout * 4 / 5; }

std::string not_answered(nanoseconds silence) {
  return fmt::format("has not answered for {:.1f} s", duration<double>(silence).count());
}

std::string in_phase(const std::string& phase) {
  return phase.empty() ? "" : fmt::format(" while in '{}'", phase);
}

}  // namespace

Liveness::Liveness(Options options, std::unique_ptr<Rendezvous> store)
    : options_(std::move(options)),
      interval_(std::clamp<Duration>(options_.timeout / 20, 10ms, 1s)),
      store_(std::move(store)),
      peers_(static_cast<std::size_t>(options_.size)) {
  prepare_loss(*store_);
  keys_.push_back(kLostKey);
  for (int rank = 0; rank < options_.size; ++rank) {
    keys_.push_back(fmt::format("{}/alive/{}", options_.world, rank));
    store_->create(keys_.back(), kNoHeartbeat);  // get_all() needs every key
  }
  beat_ = start_thread([this] { run_beat(); });
  try {
    watch_ = start_thread([this] { run_watch(); });
  } catch (const Error&) {
    stop();
    throw;
  }
}

void Liveness::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    end_waits();
  }
  changed_.notify_all();
  store_->give_up();  // it may never answer the beat thread
  if (beat_.joinable()) beat_.join();
  if (watch_.joinable()) watch_.join();
}

// --- the beat thread ---

void Liveness::run_beat() {
  auto last = steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_ && !verdict_) {
    lock.unlock();
    try {
      exchange(time_run(last));
    } catch (const Error&) {
      return lose_store("has broken the connection");
    }
    lock.lock();
    if (stopping_ || verdict_) return;
    const auto beat = beats_;
    changed_.wait_for(lock, urgent_ ? kUrgentInterval : interval_,
                      [&] { return stopping_ || tells_ || beats_ != beat; });
    tells_ = false;
  }
}

void Liveness::exchange(Duration elapsed) {
  store_->set(keys_[static_cast<std::size_t>(options_.rank) + 1], next_heartbeat());
  const auto values = store_->get_all(keys_);
  {
    const std::lock_guard lock(mutex_);
    store_silence_ = Duration(0);
    for (std::size_t rank = 0; rank < peers_.size(); ++rank)
      read_peer(peers_[rank], values[rank + 1], elapsed);
  }
  if (const auto told = parse_loss(values[0]))
    adopt(*told);
  else if (const auto failed = declared())
    adopt(announce_loss(*store_, *failed));
  else if (const auto found = judge())
    adopt(announce_loss(*store_, *found));
  else if (const auto own = judge_work(elapsed))
    adopt(announce_loss(*store_, *own));
}

// "COUNTER STATE OPERATION OPERATION_ON_HOST PHASE"; the state is "left" or "-".
std::string Liveness::next_heartbeat() {
  const std::string phase = Phase::at_failure();
  const std::lock_guard lock(mutex_);
  return fmt::format("{} {} {} {} {}", ++beats_, left_ ? kLeft : "-",
                     of_all_.load(std::memory_order_relaxed),
                     on_host_.load(std::memory_order_relaxed), phase);
}

void Liveness::read_peer(Peer& peer, const std::string& heartbeat, Duration elapsed) {
  if (heartbeat == kNoHeartbeat) return;
  std::array<std::string, 4> words;
  std::size_t at = 0;
  for (std::string& word : words) {
    const std::size_t end = heartbeat.find(' ', at);
    if (end == std::string::npos) return;
    word = heartbeat.substr(at, end - at);
    at = end + 1;
  }
  peer.silence = words[0] == peer.counter ? peer.silence + elapsed : Duration(0);
  peer.counter = words[0];
  peer.phase = printable(heartbeat.substr(at));
  peer.left = words[1] == kLeft;
  const auto read = [](const std::string& word, std::uint64_t& operations) {
    if (const auto begun = parse_number(word); begun && *begun >= 0)
      operations = static_cast<std::uint64_t>(*begun);
  };
  read(words[2], peer.of_all);
  read(words[3], peer.on_host);
}

std::optional<Loss> Liveness::judge() {
  const std::lock_guard lock(mutex_);
  const auto of_all = of_all_.load(std::memory_order_relaxed);
  const auto on_host = on_host_.load(std::memory_order_relaxed);
  for (int rank = 0; rank < options_.size; ++rank) {
    const auto& peer = peers_[static_cast<std::size_t>(rank)];
    if (rank == options_.rank) continue;
    if (peer.silence >= longest_silence(options_.timeout))
      return Loss{rank, not_answered(peer.silence), peer.phase};
    if (auto found = judge_operations(rank, peer.of_all, of_all)) return found;
    if (!peer.near) continue;
    if (auto found = judge_operations(rank, peer.on_host, on_host)) return found;
  }
  return std::nullopt;
}

// Under the mutex. Operations as of_all_, or as on_host_.
std::optional<Loss> Liveness::judge_operations(int rank, std::uint64_t theirs, std::uint64_t ours) {
  const std::uint64_t begun = ours / kAllKinds;
  if (peers_[static_cast<std::size_t>(rank)].left && theirs / kAllKinds < begun)
    return Loss{rank, fmt::format("has ended, but rank {} still waits for it", options_.rank),
                Phase::current()};
  if (theirs / kAllKinds != begun || theirs == ours) return std::nullopt;
  const std::string their_kind = kind_name(theirs), our_kind = kind_name(ours);
  return Loss{
      rank,
      fmt::format("has called {} where rank {} has called {}; every rank must make the "
                  "same calls in the same order",
                  their_kind, options_.rank, their_kind == our_kind ? "another one" : our_kind),
      ""};
}

std::string Liveness::kind_name(std::uint64_t operation) const {
  const auto& names = options_.kind_names;
  const std::uint64_t kind = operation % kAllKinds;
  const std::string name = names.empty()
                               ? "an operation"
                               : names[std::min<std::size_t>(kind % kKinds, names.size() - 1)];
  return kind < kKinds ? name : name + " on one host";
}

std::optional<Loss> Liveness::judge_work(Duration elapsed) {
  if (options_.work_timeout.count() == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::vector<WatchedWork::Progress> all;
  bool any_moves = false;
  for (const Watched& watched : watched_) {
    all.push_back(watched.work->progress());
    any_moves |= !all.back().of_host && all.back().moved != watched.moved;
  }
  for (std::size_t w = 0; w < all.size(); ++w) {
    Watched& watched = watched_[w];
    const WatchedWork::Progress& progress = all[w];
    const bool stands =
        progress.under_way && progress.moved == watched.moved && !(progress.of_host && any_moves);
    watched.still = stands ? watched.still + elapsed : Duration(0);
    watched.moved = progress.moved;
    if (watched.still >= options_.work_timeout)
      return Loss{options_.rank,
                  fmt::format("has a GPU that has not moved on for {:.1f} s",
                              duration<double>(watched.still).count()),
                  Phase::current()};
  }
  return std::nullopt;
}

void Liveness::set_host(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) peers_[static_cast<std::size_t>(rank)].near = true;
}

void Liveness::tell_phase() {
  const std::lock_guard lock(mutex_);
  tells_ = true;
  changed_.notify_all();
}

void Liveness::watch(WatchedWork& work) {
  const std::lock_guard lock(mutex_);
  watched_.push_back({.work = &work});
  if (verdict_ || stopping_) end_waits();
}

void Liveness::unwatch(WatchedWork& work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const Watched& watched) { return watched.work == &work; });
}

void Liveness::end_waits() {
  for (const Watched& watched : watched_) watched.work->end_waits();
}

// --- the watch thread ---

void Liveness::run_watch() {
  auto last = steady_clock::now();
  std::optional<Duration> verdict_age;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, verdict_ || urgent_ ? kUrgentInterval : interval_);
    if (stopping_) return;
    const Duration elapsed = time_run(last);
    if (verdict_) {
      // The time before this thread has seen it counts for nothing: the main thread may not have
      // it.
      verdict_age = verdict_age ? *verdict_age + elapsed : Duration(0);
      act(*verdict_age);
      continue;
    }
    store_silence_ += elapsed;
    if (store_silence_ < longest_silence(options_.timeout)) continue;
    const auto how = not_answered(store_silence_);
    lock.unlock();
    lose_store(how);
    lock.lock();
  }
}

// Once the main thread has the verdict, it has another timeout to unwind.
void Liveness::act(Duration verdict_age) {
  Duration grace = verdict_->patient ? std::max(patience(), kGrace) : kGrace;
  // Others must read the verdict before the store ends; they ask once in an interval.
  if (options_.store_keeper == options_.rank) grace = std::max(patience(), 2 * interval_ + kGrace);
  if (verdict_age < grace) return;
  if (claimed_ && verdict_age < grace + options_.timeout) return;
  if (!claimed_ && !told_by_itself()) {
    const std::string line = "plait: " + verdict_->text + "\n";
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(1);
  }
  ::_exit(1);
}

// Tells whether the lost rank failed by itself and has printed why. The beat thread, which else
// uses the connection, has ended with the verdict.
bool Liveness::told_by_itself() {
  if (!verdict_->patient) return false;
  try {
    return store_->get(failure_key(verdict_->rank), std::chrono::milliseconds(1)).has_value();
  } catch (const Error&) {  // the launcher is gone
    return false;
  }
}

// --- the verdict ---

void Liveness::adopt(const Loss& loss) {
  const std::string what = loss.reason + in_phase(loss.phase.value_or(last_phase(loss.rank)));
  const std::string whom = loss.rank == options_.rank ? "this rank was taken for lost: it"
                                                      : fmt::format("rank {}", loss.rank);
  set_verdict(
      {loss.rank, fmt::format("rank {}: {} {}", options_.rank, whom, what), loss.own_failure()});
}

std::string Liveness::last_phase(int rank) {
  if (rank < 0 || rank >= options_.size) return "";
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<std::size_t>(rank)].phase;
}

void Liveness::lose_store(const std::string& how) {
  const int keeper = options_.store_keeper;
  const auto store =
      keeper == kNoRank
          ? fmt::format("the store at {}, which the launcher keeps,", options_.store_place)
          : fmt::format("rank {}, which keeps the store at {},", keeper, options_.store_place);
  set_verdict(
      {keeper,
       fmt::format("rank {}: {} {}{}", options_.rank, store, how, in_phase(last_phase(keeper))),
       false});
}

void Liveness::set_verdict(Verdict verdict) {
  {
    const std::lock_guard lock(mutex_);
    if (verdict_ || stopping_) return;
    verdict_ = std::move(verdict);
    end_waits();
  }
  changed_.notify_all();
}

void Liveness::check() {
  const std::lock_guard lock(mutex_);
  if (!verdict_) return;
  claimed_ = true;
  throw LostRankError(verdict_->rank, verdict_->text, verdict_->patient);
}

void Liveness::declare_failed(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!declared_) declared_ = Loss{options_.rank, "failed " + reason, Phase::at_failure()};
    claimed_ = true;
    tells_ = true;
  }
  changed_.notify_all();
}

std::optional<Loss> Liveness::declared() {
  const std::lock_guard lock(mutex_);
  return declared_;
}

bool Liveness::has_verdict() {
  const std::lock_guard lock(mutex_);
  return verdict_.has_value();
}

bool Liveness::await_verdict() {
  std::unique_lock lock(mutex_);
  urgent_ = true;
  ++beats_;  // wakes the beat thread
  changed_.notify_all();
  return changed_.wait_for(lock, options_.timeout, [&] { return verdict_.has_value(); });
}

void Liveness::yield_to_watch() {
  const auto unclaimed = [&] {
    const std::lock_guard lock(mutex_);
    return verdict_ && !claimed_ && !stopping_;
  };
  while (unclaimed()) std::this_thread::sleep_for(kUrgentInterval);
}

void Liveness::explain(const std::string& error) {
  if (await_verdict()) check();
  throw Error(fmt::format("rank {}: {}", options_.rank, error));
}

void Liveness::announce_leave() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
    ++beats_;  // wakes the beat thread
  }
  changed_.notify_all();
}

Liveness::Duration Liveness::patience() const {
  return std::min<Duration>(options_.timeout / 10, 500ms);
}

// Returns the time since `last` in which this process ran: a longer gap means that it was stopped.
Liveness::Duration Liveness::time_run(steady_clock::time_point& last) const {
  const auto now = steady_clock::now();
  const Duration gap = now - std::exchange(last, now);
  return std::min(gap, 2 * interval_);
}

}  // namespace plait
