// The settings of strategy `get` on GPUs, by the names of MGG (OSDI 2023), and the table from which
// options take them. docs/architecture.md compares them with the paper's.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// The threads that together read one remote row.
enum class ReadBy { thread, warp, block };

// How they read it.
enum class ReadWith {
  addresses,  // as their own memory, where the row is mapped
  nvshmem,    // by NVSHMEM's device functions; needs DeviceTransport::nvshmem
};

// How the sums of a row's groups come together.
enum class GroupSums {
  // Written, and added in order: the same bits each time. Sums that would take more than
  // MachineProfile::get_partial_sums bytes are added by atomics all the same.
  ordered,
  atomic,  // added to y by atomics, as MGG does: takes no memory, but bits vary
};

// None of the settings changes results beyond rounding. `ps`, `remote_ps` and `dw` change the order
// in which a row's terms are added; with ordered sums, the others do not change a bit.
struct GetTuning {
  static constexpr std::uint32_t kMostNeighbours = 512;
  static constexpr std::uint32_t kMostPerWarp = 16;  // of dist
  static constexpr std::uint32_t kMostWarps = 16;    // of wpb
  static constexpr std::uint32_t kMostWorkers = 32;  // of dw, which is a power of two
  static constexpr std::uint32_t kLeastLanes = 4;    // of dw, unless warps read rows by addresses
  // As ps: no neighbour partitioning. All local edges of a row are one group, and all remote ones.
  static constexpr std::uint32_t kWholeRow = std::uint32_t{1} << 31;

  std::uint32_t ps = 16;  // neighbours in a group, 1 to kMostNeighbours, or kWholeRow
  std::optional<std::uint32_t> remote_ps = {};  // the same for remote neighbours; none: as ps
  std::uint32_t dist = 2;                       // groups of either kind that a warp takes in turns
  std::uint32_t wpb = 4;                        // warps per block
  bool asynchronous = false;                    // fetch the next remote rows while summing
  // Warps have local and remote groups in turns. Otherwise local groups come first, and warps of
  // their own, behind all others, have the remote ones.
  bool interleave = true;
  ReadBy read_by = ReadBy::warp;
  ReadWith read_with = ReadWith::addresses;
  // Lanes that share the columns of one row: GNNAdvisor's dimension workers (OSDI 2021, section
  // 4.2). Each has 16 bytes of it, or 4 where rows do not stand at multiples of 16 bytes; wider
  // rows are cut into slices. The warp's other lanes read other neighbours. None: by the width,
  // from 4.
  std::optional<std::uint32_t> dw = {};
  GroupSums sums = GroupSums::ordered;

  // Returns the most neighbours of a remote group.
  std::uint32_t remote() const { return remote_ps.value_or(ps); }
  // Returns the neighbours of the smaller groups, local or remote, that are full.
  std::uint32_t least_neighbours() const { return std::min(ps, remote()); }
  friend auto operator<=>(const GetTuning&, const GetTuning&) = default;
};

// Throws a UsageError that names the setting and its range if a number is out of range, or if
// threads, blocks or NVSHMEM read rows and dw is below kLeastLanes.
void require_in_range(const GetTuning& tuning);

// One setting, of which doors make an option or a key.
struct GetParameter {
  std::string_view name;    // "remote-ps", as setting() takes it
  std::string_view values;  // "1 to 512, or none"
  bool words;               // `values` is a list of all words that `set` takes
  std::string standard;     // the default, as in help
  std::string help;
  // Sets it from a word or a number. Throws a UsageError that says what values there are.
  void (*set)(GetTuning& tuning, std::string_view value);
  // Returns the value in effect, as `set` takes it.
  std::string (*show)(const GetTuning& tuning);
};

// Returns the table of all settings. Its texts have the names that setting() gives at the first
// call.
std::span<const GetParameter> get_parameters();

// A setting that differs from its default: its name, and its value as GetParameter::set takes it.
struct GetChange {
  std::string name, value;
};
// Returns the changes that make these settings of the default ones.
std::vector<GetChange> changes_of(const GetTuning& tuning);
// Returns the settings that the changes make. Throws a UsageError for a setting that is none, and
// as require_in_range().
GetTuning with_changes(const std::vector<GetChange>& changes);
// Returns the changes as text that goes on with a comma: ", ps 32, dist 4"; empty for none.
std::string changes_text(const GetTuning& tuning);

}  // namespace plait
