#include "cli/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <optional>
#include <utility>

#include "plait/base/printable.h"
#include "plait/base/profile_table.h"
#include "plait/base/trace.h"

namespace plait::cli {
namespace {

using Counts = std::vector<std::uint64_t>;

std::optional<json> held;  // the result of this process, until the profile is known

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0.0, [](double all, std::uint64_t one) {
    return all + static_cast<double>(one);
  });
}

double median(Counts counts) {
  std::ranges::sort(counts);
  const std::size_t half = counts.size() / 2;
  const auto upper = static_cast<double>(counts[half]);
  return counts.size() % 2 == 1 ? upper : (static_cast<double>(counts[half - 1]) + upper) / 2;
}

// Bytes per second into one rank while the phase ran, over all ranks.
double rate(const ProfileRow& row) {
  const double ns = sum(row.ns);
  return ns > 0 ? sum(row.bytes) / ns * 1e9 : 0;
}

Counts total_ns(const std::vector<Profile>& ranks) {
  Counts total;
  for (const Profile& profile : ranks) total.push_back(profile.ns);
  return total;
}

json to_json(const std::vector<Profile>& ranks, const MoveLimit& limit) {
  const auto in_seconds = [](const Counts& ns) {
    json list = json::array();
    for (const std::uint64_t one : ns) list.push_back(seconds(one));
    return list;
  };
  json phases = json::array();
  for (const ProfileRow& row : profile_table(ranks)) {
    phases.push_back({{"phase", row.path},
                      {"calls", row.calls},
                      {"seconds", in_seconds(row.ns)},
                      {"bytes", row.bytes}});
    if (row.moves) phases.back()["bytes_per_second"] = rate(row);
  }
  json out = {{"seconds", in_seconds(total_ns(ranks))}, {"phases", phases}};
  if (limit.bytes_per_second > 0)
    out["limit"] = {{"name", limit.name}, {"bytes_per_second", limit.bytes_per_second}};
  return out;
}

// The table as text. Times are in ms, of long runs in seconds.
class Table {
 public:
  Table(const std::vector<Profile>& ranks, const MoveLimit& limit)
      : rows_(profile_table(ranks)),
        total_{.name = "total", .calls = Counts(ranks.size(), 1), .ns = total_ns(ranks)},
        several_(ranks.size() > 1),
        is_long_(sum(total_.ns) >= kLong * static_cast<double>(ranks.size())),
        limit_(limit) {
    for (const ProfileRow& row : rows_) {
      widest_ = std::max(widest_, 2 * row.depth + row.name.size());
      if (row.depth == 0) moved_ += sum(row.bytes);
    }
  }

  std::string text() const {
    std::string out = heading();
    const std::vector<bool> shown = shown_rows();
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (shown[i]) out += line(rows_[i]);
    out += line(total_);
    const auto hidden = std::ranges::count(shown, false);
    if (hidden > 0) out += fmt::format("{} rows below 0.05% are not shown\n", hidden);
    if (moved_ > 0 && limit_.bytes_per_second > 0)
      out += fmt::format("{}: {:.2f} GB/s into each rank, with all ranks at work\n", limit_.name,
                         limit_.bytes_per_second / 1e9);
    return out;
  }

 private:
  static constexpr double kShown = 0.0005;  // share that is 0.1% when rounded
  static constexpr double kMoved = 0.01;    // share of the bytes
  static constexpr double kLong = 10e9;     // ns of a run whose times are shown in seconds

  std::string time(double ns) const {
    return is_long_ ? fmt::format("{:.3f}", ns / 1e9) : fmt::format("{:.2f}", ns / 1e6);
  }
  // Rows are shown that take time, that move a part of the bytes, or that hold such a row.
  std::vector<bool> shown_rows() const {
    std::vector<bool> shown(rows_.size(), false);
    std::size_t within = 0;  // the depth of the row below that is shown
    for (std::size_t i = rows_.size(); i-- > 0;) {
      const ProfileRow& row = rows_[i];
      const bool moves = row.moves && sum(row.bytes) >= kMoved * moved_;
      const bool holds = row.depth + 1 == within;
      shown[i] = share(row) >= kShown || moves || holds || i + 1 == rows_.size();
      if (shown[i]) within = row.depth;
    }
    return shown;
  }
  double share(const ProfileRow& row) const { return sum(row.ns) / std::max(sum(total_.ns), 1.0); }

  std::string heading() const {
    std::string out = fmt::format("{:<{}} {:>8}", "phase", widest_, "calls");
    const char* const unit = is_long_ ? "s" : "ms";
    out += several_ ? fmt::format(" {:>11} {:>11}", fmt::format("median {}", unit),
                                  fmt::format("slowest {}", unit))
                    : fmt::format(" {:>11}", unit);
    out += fmt::format(" {:>7}", "share");
    if (moved_ > 0) out += fmt::format(" {:>10} {:>8}", "MB", "GB/s");
    if (moved_ > 0 && limit_.bytes_per_second > 0)
      out += fmt::format(" {:>15}", fmt::format("of {}", limit_.name));
    return out + "\n";
  }

  std::string line(const ProfileRow& row) const {
    const std::string name = std::string(2 * row.depth, ' ') + row.name;
    const std::uint64_t calls = std::ranges::max(row.calls);
    std::string out = fmt::format("{:<{}} {:>8}", name, widest_,
                                  calls > 0 ? fmt::to_string(calls) : std::string());
    out += fmt::format(" {:>11}", time(median(row.ns)));
    if (several_)
      out += fmt::format(" {:>11}", time(static_cast<double>(std::ranges::max(row.ns))));
    out += fmt::format(" {:>6.1f}%", 100 * share(row));
    if (const double bytes = sum(row.bytes); bytes > 0)
      out += fmt::format(" {:>10.2f}", bytes / 1e6);
    if (row.moves) out += fmt::format(" {:>8.3f}", rate(row) / 1e9);
    if (row.moves && limit_.bytes_per_second > 0)
      out += fmt::format(" {:>14.1f}%", 100 * rate(row) / limit_.bytes_per_second);
    return out + "\n";
  }

  std::vector<ProfileRow> rows_;
  ProfileRow total_;
  bool several_, is_long_;
  MoveLimit limit_;
  std::size_t widest_ = 5;  // "phase", "other", "total"
  double moved_ = 0;        // bytes between ranks
};

void write_spans(const Session& session, std::vector<Profile> ranks) {
  std::vector<std::vector<TraceSpan>> spans;
  std::uint64_t left_out = 0;
  for (Profile& profile : ranks) {
    spans.push_back(std::move(profile.spans));
    left_out = std::max(left_out, profile.left_out);
  }
  write_trace(session.trace, spans);
  if (left_out > 0 && !session.quiet)
    fmt::print(stderr,
               "plait: warning: {}: has the first spans of each rank; up to {} more of a rank were "
               "left out\n",
               printable(session.trace), left_out);
}

void print_held() {
  if (const std::optional<json> result = std::exchange(held, std::nullopt)) print_json(*result);
}

}  // namespace

void with_profile(const Session& session, const std::function<void()>& run) {
  if (!session.profile && session.trace.empty()) return run();
  start_profile({.spans = !session.trace.empty()});
  try {
    run();
    // The launcher of ranks has no profile, and ranks have reported theirs.
    if (profiling()) report_profile(session, {end_profile()}, {});
  } catch (...) {
    if (profiling()) end_profile();
    print_held();
    throw;
  }
}

void report_profile(const Session& session, std::vector<Profile> ranks, const MoveLimit& limit) {
  // The result comes first: a trace that cannot be written must not cost the run.
  if (std::optional<json> result = std::exchange(held, std::nullopt)) {
    if (session.profile) (*result)["profile"] = to_json(ranks, limit);
    print_json(*result);
  } else if (session.profile && !session.json) {
    std::cout.flush();
    std::fflush(stdout);  // the table comes after the result
    fmt::print(stderr, "{}", Table(ranks, limit).text());
  }
  if (!session.trace.empty()) write_spans(session, std::move(ranks));
}

bool hold_result(const json& result) {
  if (profiling()) held = result;
  return profiling();
}

}  // namespace plait::cli
