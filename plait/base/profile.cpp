#include "plait/base/profile.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "plait/base/error.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr std::size_t kNoSpan = std::numeric_limits<std::size_t>::max();

// The clock that all processes of a host share.
std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

struct Span {
  int phase;
  std::uint64_t begin, end;
};

struct ProfileRecorder {
  ProfileOptions options;
  std::uint64_t begin = now();
  std::vector<PhaseTotal> phases;
  std::vector<Span> spans;
  std::uint64_t left_out = 0;
  int current = -1;  // index of the phase under way
  void (*wait)() = nullptr;

  int find_or_add(std::string_view name) {
    const auto found = std::ranges::find_if(phases, [&](const PhaseTotal& phase) {
      return phase.outer == current && phase.name == name;
    });
    if (found == phases.end()) {
      phases.push_back({.name = std::string(name), .outer = current});
      return static_cast<int>(phases.size()) - 1;
    }
    return static_cast<int>(found - phases.begin());
  }
  PhaseTotal& at_current() { return phases[static_cast<std::size_t>(current)]; }

  // Spans take their place where they begin, so that none is kept without the ones around it.
  std::size_t begin_span(std::uint64_t time) {
    if (!options.spans) return kNoSpan;
    const bool outermost = at_current().outer < 0;
    if (spans.size() >= options.most_spans * (outermost ? 2 : 1)) {
      ++left_out;
      return kNoSpan;
    }
    spans.push_back({current, time, time});
    return spans.size() - 1;
  }
};

thread_local std::unique_ptr<ProfileRecorder> owned;
thread_local ProfileRecorder* active = nullptr;  // `owned`, or null while it is paused

void settle_quietly(void (*wait)()) {
  if (wait == nullptr || std::uncaught_exceptions() > 0) return;
  try {
    wait();
  } catch (const std::exception&) {
    // An error of the device stays, and the next operation throws it.
  }
}

}  // namespace

void start_profile(const ProfileOptions& options) {
  owned = std::make_unique<ProfileRecorder>(ProfileRecorder{.options = options});
  active = owned.get();
}

Profile end_profile() {
  require<UsageError>(owned != nullptr, "there is no profile to end");
  active = nullptr;
  const std::unique_ptr<ProfileRecorder> recorder = std::move(owned);
  Profile profile{.ns = now() - recorder->begin, .left_out = recorder->left_out};
  for (const Span& span : recorder->spans)
    profile.spans.push_back({recorder->phases[static_cast<std::size_t>(span.phase)].name, "phases",
                             span.begin, span.end});
  profile.phases = std::move(recorder->phases);
  return profile;
}

bool profiling() { return active != nullptr; }

void settle_phases_by(void (*wait)()) {
  require<UsageError>(active != nullptr, "there is no profile whose phases could wait");
  active->wait = wait;
}

void count_moved(std::uint64_t bytes) {
  if (active != nullptr && active->current >= 0) active->at_current().bytes += bytes;
}

Timed::Timed(std::string_view name) : recorder_(active) {
  if (active == nullptr) return;
  if (active->wait != nullptr) active->wait();
  outer_ = active->current;
  active->current = active->find_or_add(name);
  begin_ = now();
  span_ = active->begin_span(begin_);
}

Timed::~Timed() {
  if (recorder_ == nullptr || recorder_ != owned.get()) return;
  ProfileRecorder& recorder = *owned;
  settle_quietly(recorder.wait);
  const std::uint64_t end = now();
  PhaseTotal& phase = recorder.at_current();
  ++phase.calls;
  phase.ns += end - begin_;
  if (span_ != kNoSpan) recorder.spans[span_].end = end;
  recorder.current = outer_;
}

ProfilePause::ProfilePause() : recorder_(std::exchange(active, nullptr)) {}

ProfilePause::~ProfilePause() { active = static_cast<ProfileRecorder*>(recorder_); }

std::string to_text(const Profile& profile) {
  json phases = json::array();
  for (const PhaseTotal& p : profile.phases)
    phases.push_back({p.name, p.outer, p.calls, p.ns, p.bytes});
  return json{profile.ns, phases, profile.left_out}.dump();
}

Profile profile_of_text(std::string_view text) {
  Profile profile;
  try {
    const json whole = json::parse(text);
    profile.ns = whole.at(0).get<std::uint64_t>();
    profile.left_out = whole.at(2).get<std::uint64_t>();
    for (const json& p : whole.at(1)) {
      const int outer = p.at(1).get<int>();
      require(outer >= -1 && outer < static_cast<int>(profile.phases.size()),
              "a rank's profile cannot be read: phase {} is part of phase {}",
              profile.phases.size(), outer);
      profile.phases.push_back({p.at(0).get<std::string>(), outer, p.at(2).get<std::uint64_t>(),
                                p.at(3).get<std::uint64_t>(), p.at(4).get<std::uint64_t>()});
    }
  } catch (const json::exception& error) {
    throw Error(fmt::format("a rank's profile cannot be read: {}", error.what()));
  }
  return profile;
}

}  // namespace plait
