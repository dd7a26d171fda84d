#include "plait/plan/get_tuning.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/names.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kNone = "none";
constexpr std::array kModes{"blocking"sv, "async"sv};
constexpr std::array kSwitch{"off"sv, "on"sv};
constexpr std::array kReaders{"thread"sv, "warp"sv, "block"sv};
constexpr std::array kWays{"addresses"sv, "nvshmem"sv};
constexpr std::array kSums{"ordered"sv, "atomic"sv};
constexpr std::string_view kByWidth = "auto";
constexpr std::array kWorkers{kByWidth, "1"sv, "2"sv, "4"sv, "8"sv, "16"sv, "32"sv};

// A range of whole numbers that begins at 1; `none`: the word "none" stands for kWholeRow.
struct Range {
  std::string_view name;
  std::uint32_t most;
  bool none;

  bool has(std::uint64_t value) const {
    return (value >= 1 && value <= most) || (none && value == GetTuning::kWholeRow);
  }
  void require_has(std::uint64_t value, std::string_view shown) const {
    require<UsageError>(has(value), "{} is '{}', which is not 1 to {}{}", setting(name), shown,
                        most, none ? " or none" : "");
  }
  std::uint32_t parse(std::string_view text) const {
    if (none && text == kNone) return GetTuning::kWholeRow;
    std::uint32_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool number = error == std::errc() && stop == end && value <= most;
    require_has(number ? value : 0, text);
    return value;
  }
};

constexpr Range kPs{"ps", GetTuning::kMostNeighbours, true},
    kRemotePs{"remote-ps", GetTuning::kMostNeighbours, true},
    kDist{"dist", GetTuning::kMostPerWarp, false}, kWpb{"wpb", GetTuning::kMostWarps, false};

std::string shown(std::uint32_t value) {
  return value == GetTuning::kWholeRow ? std::string(kNone) : fmt::to_string(value);
}

std::vector<GetParameter> all_parameters() {
  return {
      {"ps", "1 to 512, or none", false, "16",
       "Neighbours in a group: MGG's ps; none: no neighbour partitioning, all local and "
       "all remote neighbours of a row are one group each",
       [](GetTuning& t, std::string_view value) { t.ps = kPs.parse(value); },
       [](const GetTuning& t) { return shown(t.ps); }},
      {"remote-ps", "1 to 512, or none", false, "as " + setting("ps"),
       "Neighbours in a group of remote neighbours",
       [](GetTuning& t, std::string_view value) { t.remote_ps = kRemotePs.parse(value); },
       [](const GetTuning& t) { return shown(t.remote()); }},
      {"dist", "1 to 16", false, "2",
       "Local, and remote, groups that a warp takes in turns: MGG's dist",
       [](GetTuning& t, std::string_view value) { t.dist = kDist.parse(value); },
       [](const GetTuning& t) { return shown(t.dist); }},
      {"wpb", "1 to 16", false, "4", "Warps per block: MGG's wpb",
       [](GetTuning& t, std::string_view value) { t.wpb = kWpb.parse(value); },
       [](const GetTuning& t) { return shown(t.wpb); }},
      {"get", "blocking, async", true, "blocking",
       "Wait for remote rows before summing them, or fetch the next ones while summing",
       [](GetTuning& t, std::string_view value) {
         t.asynchronous = place_of_word(setting("get"), value, kModes) == 1;
       },
       [](const GetTuning& t) { return std::string(kModes[t.asynchronous]); }},
      {"interleave", "on, off", true, "on",
       "Let each warp have local and remote groups; off: all local groups come first, "
       "and other warps have the remote ones",
       [](GetTuning& t, std::string_view value) {
         t.interleave = place_of_word(setting("interleave"), value, kSwitch) == 1;
       },
       [](const GetTuning& t) { return std::string(kSwitch[t.interleave]); }},
      {"read-by", "thread, warp, block", true, "warp",
       "Threads that read a remote row together: one thread, a warp or a block",
       [](GetTuning& t, std::string_view value) {
         t.read_by = static_cast<ReadBy>(place_of_word(setting("read-by"), value, kReaders));
       },
       [](const GetTuning& t) {
         return std::string(kReaders[static_cast<std::size_t>(t.read_by)]);
       }},
      {"read-with", "addresses, nvshmem", true, "addresses",
       "Read remote rows at their addresses, or by NVSHMEM's device functions, which "
       "need " +
           setting("transport", "nvshmem"),
       [](GetTuning& t, std::string_view value) {
         t.read_with = static_cast<ReadWith>(place_of_word(setting("read-with"), value, kWays));
       },
       [](const GetTuning& t) {
         return std::string(kWays[static_cast<std::size_t>(t.read_with)]);
       }},
      {"dw", "auto, 1, 2, 4, 8, 16, 32", true, "auto",
       "Lanes of a warp that share the columns of a row, GNNAdvisor's dimension workers; "
       "auto: as many as the width takes",
       [](GetTuning& t, std::string_view value) {
         const std::size_t place = place_of_word(setting("dw"), value, kWorkers);
         t.dw = place == 0 ? std::nullopt : std::optional(1u << (place - 1));
       },
       [](const GetTuning& t) { return t.dw ? fmt::to_string(*t.dw) : std::string(kByWidth); }},
      {"sums", "ordered, atomic", true, "ordered",
       "Add the sums of a row's groups in order, up to 8 GiB of them, for the same bits each "
       "time, or by atomics, which takes no memory",
       [](GetTuning& t, std::string_view value) {
         t.sums = static_cast<GroupSums>(place_of_word(setting("sums"), value, kSums));
       },
       [](const GetTuning& t) { return std::string(kSums[static_cast<std::size_t>(t.sums)]); }},
  };
}

}  // namespace

void require_in_range(const GetTuning& tuning) {
  for (const auto& [range, value] : {std::pair{kPs, tuning.ps},
                                     {kRemotePs, tuning.remote()},
                                     {kDist, tuning.dist},
                                     {kWpb, tuning.wpb}})
    range.require_has(value, shown(value));
  const std::uint32_t dw = tuning.dw.value_or(GetTuning::kMostWorkers);
  require<UsageError>(std::has_single_bit(dw) && dw <= GetTuning::kMostWorkers,
                      "{} is '{}', which is not a power of two up to {}", setting("dw"), dw,
                      GetTuning::kMostWorkers);
  const bool by_nvshmem = tuning.read_with == ReadWith::nvshmem;
  require<UsageError>(
      dw >= GetTuning::kLeastLanes || (tuning.read_by == ReadBy::warp && !by_nvshmem),
      "{} is for rows that warps read at their addresses; take {}, or a {} of {} or more",
      setting("dw", fmt::to_string(dw)),
      by_nvshmem ? setting("read-with", "addresses") : setting("read-by", "warp"), setting("dw"),
      GetTuning::kLeastLanes);
}

std::span<const GetParameter> get_parameters() {
  static const std::vector<GetParameter> kParameters = all_parameters();
  return kParameters;
}

std::vector<GetChange> changes_of(const GetTuning& tuning) {
  std::vector<GetChange> changes;
  GetTuning made;  // with the changes so far, as remote-ps is ps by default
  for (const GetParameter& p : get_parameters()) {
    std::string value = p.show(tuning);
    if (value == p.show(made)) continue;
    p.set(made, value);
    changes.push_back({std::string(p.name), std::move(value)});
  }
  return changes;
}

GetTuning with_changes(const std::vector<GetChange>& changes) {
  GetTuning tuning;
  const auto all = get_parameters();
  for (const GetChange& change : changes) {
    const auto found = std::ranges::find(all, change.name, &GetParameter::name);
    require<UsageError>(found != all.end(), "strategy get has no setting '{}'", change.name);
    found->set(tuning, change.value);
  }
  require_in_range(tuning);
  return tuning;
}

std::string changes_text(const GetTuning& tuning) {
  std::string text;
  for (const GetChange& change : changes_of(tuning))
    text += fmt::format(", {} {}", change.name, change.value);
  return text;
}

}  // namespace plait
