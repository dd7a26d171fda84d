#include "plait/machine/kept_machine.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/processor.h"
#include "plait/base/user_cache.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr int kForm = 1;  // of the file

// Throws json::exception or Error for an entry that is none.
MeasuredRate rate_of(const json& entry) {
  const MeasuredRate rate{.rate = parse_rate(entry.at("rate").get<std::string>()),
                          .row_bytes = entry.at("row_bytes").get<std::uint64_t>(),
                          .value = entry.at("value").get<double>()};
  require(is_plausible(rate), "an entry is no measurement");
  return rate;
}

// Throws json::exception or Error for a file that is damaged or stale.
MachineRates rates_of(const json& file, const MachineKey& key) {
  const std::string version = file.at("version").get<std::string>();
  require(file.at("form") == kForm && version == PLAIT_VERSION, "Plait {} wrote it",
          printable(version));
  const MachineKey found{.device = file.at("device").get<std::string>(),
                         .ranks = file.at("ranks").get<int>()};
  require(found == key, "it is of another device or number of ranks");
  MachineRates rates;
  for (const json& entry : file.at("rates")) rates.push_back(rate_of(entry));
  return rates;
}

}  // namespace

MachineKey MachineKey::of_cpu(int ranks) {
  return {fmt::format("{}, {} processors", processor_name(), std::thread::hardware_concurrency()),
          ranks};
}

std::string kept_machines_folder() { return cache_folder("PLAIT_MACHINES", "machines"); }

std::string kept_machine_path(const std::string& folder, const MachineKey& key) {
  return cache_path(folder, fmt::format("{}\n{}", key.device, key.ranks));
}

KeptMachine read_kept_machine(const std::string& folder, const MachineKey& key) {
  if (folder.empty()) return {};
  KeptMachine found;
  found.note = read_cache_file(kept_machine_path(folder, key), [&](std::string_view text) {
    found.rates = rates_of(json::parse(text), key);
  });
  return found;
}

void check_kept_machine(const std::string& folder, const MachineKey& key) {
  if (!folder.empty()) begin_cache_file(kept_machine_path(folder, key));
}

void keep_machine(const std::string& folder, const MachineKey& key, const MachineRates& rates) {
  if (folder.empty()) return;
  json all = json::array();
  for (const MeasuredRate& one : rates)
    all.push_back(
        {{"rate", traits_of(one.rate).name}, {"row_bytes", one.row_bytes}, {"value", one.value}});
  const json file{{"form", kForm},
                  {"version", PLAIT_VERSION},
                  {"device", key.device},
                  {"ranks", key.ranks},
                  {"rates", all}};
  AtomicFile out = begin_cache_file(kept_machine_path(folder, key));
  out.write(file.dump(1) + "\n");
  out.commit();
}

}  // namespace plait
