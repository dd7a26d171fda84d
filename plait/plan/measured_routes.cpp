#include "plait/plan/measured_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/user_cache.h"
#include "plait/plan/route.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr int kRoutesForm = 5;  // of the file
constexpr const char* kNoMeasurement = "an entry is no measurement";

json changes_to_json(const GetTuning& tuning) {
  json changes = json::object();
  for (const GetChange& change : changes_of(tuning)) changes[change.name] = change.value;
  return changes;
}

json to_json(const MeasuredRoute& route) {
  return {{"model", route.kind.model},
          {"widths", route.kind.widths},
          {"transport", to_string(route.kind.transport)},
          {"exact", route.kind.exact},
          {"wire", to_string(route.kind.wire)},
          {"partition", to_string(route.partition)},
          {"strategy", to_string(route.way.strategy)},
          {"passes", route.way.passes},
          {"get", changes_to_json(route.way.get)},
          {"ms", route.ms}};
}

// Returns a whole number. Throws Error for one that is negative, has a fraction, or is too large,
// which json itself would bend until it fits.
template <class T>
T whole(const json& value) {
  require(value.is_number_unsigned() && std::in_range<T>(value.get<std::uint64_t>()),
          kNoMeasurement);
  return value.get<T>();
}

std::vector<std::uint64_t> widths_of(const json& list) {
  require(list.is_array(), kNoMeasurement);
  std::vector<std::uint64_t> widths;
  for (const json& width : list) widths.push_back(whole<std::uint64_t>(width));
  return widths;
}

// Throws json::exception or Error for changes of settings that are none.
GetTuning settings_of(const json& changes) {
  require(changes.is_object(), kNoMeasurement);
  std::vector<GetChange> all;
  for (const auto& [name, value] : changes.items()) all.push_back({name, value.get<std::string>()});
  return with_changes(all);
}

// Throws json::exception or Error for an entry that is none.
MeasuredRoute route_of(const json& entry) {
  const MeasuredRoute route{
      .kind = {.model = entry.at("model").get<std::string>(),
               .widths = widths_of(entry.at("widths")),
               .transport = parse_device_transport(entry.at("transport").get<std::string>()),
               .exact = entry.at("exact").get<bool>(),
               .wire = parse_wire(entry.at("wire").get<std::string>())},
      .partition = parse_partition_scheme(entry.at("partition").get<std::string>()),
      .way = {.strategy = parse_strategy(entry.at("strategy").get<std::string>()),
              .passes = whole<int>(entry.at("passes")),
              .get = settings_of(entry.at("get"))},
      .ms = entry.at("ms").get<double>()};
  const RunKind& kind = route.kind;
  require((!kind.model.empty() || (kind.widths.size() == 1 && kind.widths.front() > 0)) &&
              route.way.strategy != Strategy::automatic && route.way.passes <= kMostPasses &&
              route.ms > 0 && std::isfinite(route.ms),
          kNoMeasurement);
  require(route.way.get == GetTuning{} || route.way.strategy == Strategy::get, kNoMeasurement);
  // Settings that no run on GPUs can have would end it.
  if (route.way.strategy == Strategy::get)
    resolved({.strategy = Strategy::get,
              .transport = kind.transport,
              .gpu = true,
              .get = route.way.get});
  return route;
}

// Tells whether a new measurement takes the place of an old one.
bool replaces(const MeasuredRoute& one, const MeasuredRoute& old) {
  const bool same = one.kind == old.kind && one.partition == old.partition;
  return same && (!one.kind.model.empty() || one.way == old.way);
}

// Throws json::exception or Error for a file that is damaged or stale.
MeasuredRoutes routes_of(const json& file, const MeasuredKey& key) {
  const std::string version = file.at("version").get<std::string>();
  require(file.at("form") == kRoutesForm && version == PLAIT_VERSION, "Plait {} wrote it",
          printable(version));
  const MeasuredKey found{.graph = file.at("graph").get<std::string>(),
                          .device = file.at("device").get<std::string>(),
                          .ranks = whole<int>(file.at("ranks")),
                          .here = whole<int>(file.at("here"))};
  require(found == key, "it is of another graph, device or number of ranks");
  MeasuredRoutes kept;
  for (const json& entry : file.at("routes")) kept.routes.push_back(route_of(entry));
  return kept;
}

}  // namespace

std::string measured_routes_folder() { return cache_folder("PLAIT_ROUTES", "routes"); }

std::string measured_routes_path(const std::string& folder, const MeasuredKey& key) {
  return cache_path(folder,
                    fmt::format("{}\n{}\n{}\n{}", key.graph, key.device, key.ranks, key.here));
}

MeasuredRoutes read_measured_routes(const std::string& folder, const MeasuredKey& key) {
  if (folder.empty()) return {};
  MeasuredRoutes found;
  found.note = read_cache_file(measured_routes_path(folder, key), [&](std::string_view text) {
    found = routes_of(json::parse(text), key);
  });
  return found;
}

void check_measured_routes(const std::string& folder, const MeasuredKey& key) {
  if (!folder.empty()) begin_cache_file(measured_routes_path(folder, key));
}

void keep_measured_routes(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredRoute>& routes) {
  if (folder.empty()) return;
  const auto lock = lock_cache(folder);
  json entries = json::array();
  for (const MeasuredRoute& old : read_measured_routes(folder, key).routes)
    if (std::ranges::none_of(routes, [&](const auto& one) { return replaces(one, old); }))
      entries.push_back(to_json(old));
  for (const MeasuredRoute& one : routes) entries.push_back(to_json(one));
  const json file{{"form", kRoutesForm},  {"version", PLAIT_VERSION}, {"graph", key.graph},
                  {"device", key.device}, {"ranks", key.ranks},       {"here", key.here},
                  {"routes", entries}};
  AtomicFile out = begin_cache_file(measured_routes_path(folder, key));
  out.write(file.dump(1) + "\n");
  out.commit();
}

}  // namespace plait
