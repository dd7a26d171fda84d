#include "plait/machine/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/json_text.h"

namespace plait {
namespace {

using nlohmann::json;

// Calls visit(name, member) for every number of a profile: the one list of them.
template <class Profile, class Visit>
void for_numbers(Profile& p, const Visit& visit) {
  visit("link", p.passes.link);
  visit("first_row", p.passes.first_row);
  visit("pass", p.passes.pass);
  visit("row", p.passes.row);
  visit("edge", p.passes.edge);
  visit("edge_byte", p.passes.edge_byte);
  visit("cache", p.passes.cache);
  visit("miss", p.passes.miss);
  visit("first_byte", p.passes.first_byte);
  visit("work_edge_byte", p.passes.work_edge_byte);
  visit("attention_row", p.passes.attention_row);
  visit("extremum_row", p.passes.extremum_row);
  visit("y_byte", p.passes.y_byte);
  visit("slice", p.passes.slice);
  visit("beside_link", p.passes.beside_link);
  visit("nccl_link", p.nccl_link);
  visit("nccl_begin", p.nccl_begin);
  visit("picked_link", p.picked_link);
  visit("peer_reads", p.peer_reads);
  visit("peer_row", p.peer_row);
  visit("warps_at_once", p.warps_at_once);
  visit("short_group", p.short_group);
  visit("even_row", p.even_row);
  visit("even_edges", p.even_edges);
  visit("pick_blocks", p.pick_blocks);
  visit("push_blocks", p.push_blocks);
  visit("push_by_kernel", p.push_by_kernel);
  visit("recorded_halo", p.recorded_halo);
  visit("get_partial_sums", p.get_partial_sums);
}

template <class T>
T number_of(const json& value, const std::string& what) {
  const bool fits = std::is_floating_point_v<T> ? value.is_number() : value.is_number_unsigned();
  require(fits && value.get<double>() > 0 && std::isfinite(value.get<double>()),
          "{} is {}, not a number above 0{}", what, short_text(value),
          std::is_floating_point_v<T> ? "" : " without a fraction");
  require(value.get<double>() <= static_cast<double>(std::numeric_limits<T>::max()),
          "{} is {}, which is too large", what, short_text(value));
  return value.get<T>();
}

MachineProfile machine_of_environment() {
  if (!machine_is_given()) return {};
  const char* const path = std::getenv("PLAIT_MACHINE");
  return parse_machine(MappedFile::open(path)->text(), path);
}

MachineProfile& profile_in_use() {
  static MachineProfile profile = machine_of_environment();
  return profile;
}

}  // namespace

const MachineProfile& machine() { return profile_in_use(); }

bool machine_is_given() {
  const char* const path = std::getenv("PLAIT_MACHINE");
  return path != nullptr && *path != '\0';
}

void use_machine(const MachineProfile& profile) {
  if (!machine_is_given()) profile_in_use() = profile;
}

MachineProfile parse_machine(std::string_view text, const std::string& source) {
  const json given = json::parse(text, nullptr, /*allow_exceptions=*/false);
  require(given.is_object(), "{}: not a JSON object of a machine's constants", source);
  MachineProfile profile;
  std::size_t known = 0;
  if (const auto name = given.find("name"); name != given.end()) {
    require(name->is_string(), "{}: 'name' is not text", source);
    profile.name = name->get<std::string>();
    ++known;
  }
  for_numbers(profile, [&](const char* name, auto& member) {
    const auto found = given.find(name);
    if (found == given.end()) return;
    using T = std::remove_reference_t<decltype(member)>;
    member = number_of<T>(*found, source + ": '" + name + "'");
    ++known;
  });
  constexpr std::uint32_t kMostBlocks = 65535;  // a launch takes more, a link needs few
  require(std::max(profile.pick_blocks, profile.push_blocks) <= kMostBlocks,
          "{}: kernels of more than {} blocks", source, kMostBlocks);
  require(known == given.size(), "{}: fields that no profile of a machine has", source);
  return profile;
}

std::string to_json(const MachineProfile& profile) {
  json out{{"name", profile.name}};
  for_numbers(profile, [&](const char* name, const auto& member) { out[name] = member; });
  return out.dump();
}

}  // namespace plait
