#include "plait/plan/measured_routes.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/user_cache.h"
#include "plait/plan/route.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr int kRoutesForm = 3;  // of the file

json to_json(const MeasuredRoute& route) {
  return {{"strategy", to_string(route.strategy)},
          {"partition", to_string(route.partition)},
          {"transport", to_string(route.transport)},
          {"width", route.width},
          {"ms", route.ms}};
}

// Throws json::exception or Error for an entry that is none.
MeasuredRoute route_of(const json& entry) {
  const MeasuredRoute route{
      .strategy = parse_strategy(entry.at("strategy").get<std::string>()),
      .partition = parse_partition_scheme(entry.at("partition").get<std::string>()),
      .transport = parse_device_transport(entry.at("transport").get<std::string>()),
      .width = entry.at("width").get<std::uint64_t>(),
      .ms = entry.at("ms").get<double>()};
  require(route.strategy != Strategy::automatic && route.width > 0 && route.ms > 0 &&
              std::isfinite(route.ms),
          "an entry is no measurement");
  return route;
}

json to_json(const MeasuredEpoch& epoch) {
  return {{"model", epoch.kind.model},
          {"widths", epoch.kind.widths},
          {"partition", to_string(epoch.kind.partition)},
          {"transport", to_string(epoch.kind.transport)},
          {"exact", epoch.kind.exact},
          {"wire", to_string(epoch.kind.wire)},
          {"strategy", to_string(epoch.way.strategy)},
          {"passes", epoch.way.passes},
          {"ms", epoch.ms}};
}

// Throws json::exception or Error for an entry that is none.
MeasuredEpoch epoch_of(const json& entry) {
  const MeasuredEpoch epoch{
      .kind = {.model = entry.at("model").get<std::string>(),
               .widths = entry.at("widths").get<std::vector<std::uint64_t>>(),
               .partition = parse_partition_scheme(entry.at("partition").get<std::string>()),
               .transport = parse_device_transport(entry.at("transport").get<std::string>()),
               .exact = entry.at("exact").get<bool>(),
               .wire = parse_wire(entry.at("wire").get<std::string>())},
      .way = {.strategy = parse_strategy(entry.at("strategy").get<std::string>()),
              .passes = entry.at("passes").get<int>()},
      .ms = entry.at("ms").get<double>()};
  require(epoch.way.strategy != Strategy::automatic && epoch.way.passes >= 0 &&
              epoch.way.passes <= kMostPasses && epoch.ms > 0 && std::isfinite(epoch.ms),
          "an entry is no measurement");
  return epoch;
}

// Throws json::exception or Error for a file that is damaged or stale.
MeasuredRoutes routes_of(const json& file, const MeasuredKey& key) {
  const std::string version = file.at("version").get<std::string>();
  require(file.at("form") == kRoutesForm && version == PLAIT_VERSION, "Plait {} wrote it",
          printable(version));
  const MeasuredKey found{.graph = file.at("graph").get<std::string>(),
                          .device = file.at("device").get<std::string>(),
                          .ranks = file.at("ranks").get<int>(),
                          .here = file.at("here").get<int>()};
  require(found == key, "it is of another graph, device or number of ranks");
  MeasuredRoutes kept;
  for (const json& entry : file.at("routes")) kept.routes.push_back(route_of(entry));
  for (const json& entry : file.at("epochs")) kept.epochs.push_back(epoch_of(entry));
  return kept;
}

void keep(const std::string& folder, const MeasuredKey& key, const MeasuredRoutes& kept) {
  if (folder.empty()) return;
  json routes = json::array(), epochs = json::array();
  for (const MeasuredRoute& route : kept.routes) routes.push_back(to_json(route));
  for (const MeasuredEpoch& epoch : kept.epochs) epochs.push_back(to_json(epoch));
  const json file{{"form", kRoutesForm},  {"version", PLAIT_VERSION}, {"graph", key.graph},
                  {"device", key.device}, {"ranks", key.ranks},       {"here", key.here},
                  {"routes", routes},     {"epochs", epochs}};
  AtomicFile out = begin_cache_file(measured_routes_path(folder, key));
  out.write(file.dump(1) + "\n");
  out.commit();
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
  const auto lock = lock_cache(folder);
  keep(folder, key, {.routes = routes, .epochs = {}, .note = {}});
}

void keep_measured_epochs(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredEpoch>& epochs) {
  const auto lock = lock_cache(folder);
  MeasuredRoutes kept = read_measured_routes(folder, key);
  if (!epochs.empty())
    std::erase_if(kept.epochs,
                  [&](const MeasuredEpoch& one) { return one.kind == epochs.front().kind; });
  kept.epochs.insert(kept.epochs.end(), epochs.begin(), epochs.end());
  keep(folder, key, kept);
}

}  // namespace plait
