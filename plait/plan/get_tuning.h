// The settings of strategy `get` on GPUs, by the names of MGG (OSDI 2023), and the table from which
// options take them. docs/architecture.md compares them with the paper's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plait {

// The threads that together read one remote row.
enum class ReadBy { thread, warp, block };

// None of the settings changes results. `ps` and `remote_ps` change the order in which a row's
// terms are added; with partial sums, the others do not change a bit.
struct GetTuning {
  static constexpr std::uint32_t kMostNeighbours = 512;
  static constexpr std::uint32_t kMostPerWarp = 16;  // of dist
  static constexpr std::uint32_t kMostWarps = 16;    // of wpb
  // As ps: no neighbour partitioning. All local edges of a row are one group, and all remote ones.
  static constexpr std::uint32_t kWholeRow = std::uint32_t{1} << 31;

  std::uint32_t ps = 16;  // neighbours in a group, 1 to kMostNeighbours, or kWholeRow
  std::optional<std::uint32_t> remote_ps = {};  // the same for remote neighbours; none: as ps
  std::uint32_t dist = 2;                       // groups of either kind that a warp takes in turns
  std::uint32_t wpb = 4;                        // warps per block
  bool asynchronous = true;                     // fetch the next remote rows while summing
  // Warps have local and remote groups in turns. Otherwise local groups come first, and warps of
  // their own, behind all others, have the remote ones.
  bool interleave = true;
  ReadBy read_by = ReadBy::warp;

  // Returns the most neighbours of a remote group.
  std::uint32_t remote() const { return remote_ps.value_or(ps); }
  // Returns the neighbours of the smaller groups, local or remote, that are full.
  std::uint32_t least_neighbours() const { return std::min(ps, remote()); }
  friend bool operator==(const GetTuning&, const GetTuning&) = default;
};

// Throws a UsageError that names the setting and its range if a number is out of range.
void require_in_range(const GetTuning& tuning);

// One setting, as an option of the command line and as a key of JSON.
struct GetParameter {
  const char* option;         // "--ps"
  std::string_view values;    // "1 to 512, or none"
  bool words;                 // `values` is a list of all words that the option takes
  std::string_view standard;  // the default, as in help
  std::string_view help;
  // Sets it from the option's value. Throws a UsageError that says what values there are.
  void (*set)(GetTuning& tuning, std::string_view value);
  // Returns the value in effect, as an option takes it.
  std::string (*show)(const GetTuning& tuning);
};

// Returns the table of all settings.
std::span<const GetParameter> get_parameters();

}  // namespace plait
