#include "plait/plan/measured_routes.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/user_cache.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr int kForm = 1;  // of the file

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

// Throws json::exception or Error for a file that is damaged or stale.
std::vector<MeasuredRoute> routes_of(const json& file, const MeasuredKey& key) {
  const std::string version = file.at("version").get<std::string>();
  require(file.at("form") == kForm && version == PLAIT_VERSION, "Plait {} wrote it",
          printable(version));
  const MeasuredKey found{.graph = file.at("graph").get<std::string>(),
                          .device = file.at("device").get<std::string>(),
                          .ranks = file.at("ranks").get<int>(),
                          .here = file.at("here").get<int>()};
  require(found == key, "it is of another graph, device or number of ranks");
  std::vector<MeasuredRoute> routes;
  for (const json& entry : file.at("routes")) routes.push_back(route_of(entry));
  return routes;
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
    found.routes = routes_of(json::parse(text), key);
  });
  return found;
}

void check_measured_routes(const std::string& folder, const MeasuredKey& key) {
  if (!folder.empty()) begin_cache_file(measured_routes_path(folder, key));
}

void keep_measured_routes(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredRoute>& routes) {
  if (folder.empty()) return;
  json all = json::array();
  for (const MeasuredRoute& route : routes) all.push_back(to_json(route));
  const json file{{"form", kForm},        {"version", PLAIT_VERSION}, {"graph", key.graph},
                  {"device", key.device}, {"ranks", key.ranks},       {"here", key.here},
                  {"routes", all}};
  AtomicFile out = begin_cache_file(measured_routes_path(folder, key));
  out.write(file.dump(1) + "\n");
  out.commit();
}

}  // namespace plait
