// plait doctor --measure: measures the rates and latencies of this machine, prints them as a table,
// and keeps them for later runs.
#include "cli/commands/measure.h"

#include <fmt/core.h>

#include <thread>

#include "cli/ranks.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/printable.h"
#include "plait/machine/kept_machine.h"
#include "plait/machine/machine.h"
#include "plait/machine/machine_of_rates.h"
#include "plait/measure/cpu_rates.h"
#include "plait/measure/cuda/gpu_rates.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Measured {
  MachineKey key;
  MachineRates rates;
  std::string path;  // of the file; empty: not kept
};

// "1.2 us", "2.1 GB/s", "50.0 MiB", "8".
std::string with_unit(const MeasuredRate& one) {
  const std::string_view unit = traits_of(one.rate).unit;
  if (unit == "B/s") return fmt::format("{:.1f} GB/s", one.value / 1e9);
  if (unit == "s") return fmt::format("{:.2f} us", one.value * 1e6);
  if (unit == "B") return format_bytes(static_cast<std::uint64_t>(one.value));
  return fmt::format("{:.0f}", one.value);
}

void print_text(const Measured& m, const std::string& ranks) {
  fmt::print("{}, {}: the slowest rank while all work, unless a line says otherwise\n",
             printable(m.key.device), ranks);
  fmt::print("{:<52}", "GB/s by bytes of a row");
  for (const std::uint64_t bytes : measured_row_bytes()) fmt::print("{:>8}", bytes);
  fmt::print("\n");
  for (const RateTraits& traits : all_rates()) {
    if (!traits.by_row || !value_of(m.rates, traits.rate, measured_row_bytes()[0])) continue;
    fmt::print("{:<52}", traits.what);
    for (const std::uint64_t bytes : measured_row_bytes())
      fmt::print("{:>8.1f}", value_of(m.rates, traits.rate, bytes).value_or(0) / 1e9);
    fmt::print("\n");
  }
  for (const MeasuredRate& one : m.rates)
    if (!traits_of(one.rate).by_row)
      fmt::print("{:<52}{:>16}\n", traits_of(one.rate).what, with_unit(one));
  if (m.path.empty()) return fmt::print("not kept, as there is no folder: see PLAIT_MACHINES\n");
  fmt::print("kept in {}; plans for {} follow it\n", printable(m.path), ranks);
}

// The constants of plans on GPUs that the rates change.
json constants_of(const Measured& m) {
  const json mine = json::parse(plait::to_json(machine_of(m.key.device, m.rates, m.key.ranks)));
  const json built_in = json::parse(plait::to_json(MachineProfile()));
  json list = json::array();
  for (const auto& [name, value] : mine.items())
    if (value.is_number() && value != built_in[name])
      list.push_back({{"name", name}, {"value", value}, {"built_in", built_in[name]}});
  return list;
}

json to_json(const Measured& m, const Session& session) {
  json rates = json::array();
  for (const MeasuredRate& one : m.rates) {
    const RateTraits& traits = traits_of(one.rate);
    rates.push_back({{"rate", traits.name},
                     {"row_bytes", traits.by_row ? json(one.row_bytes) : json(nullptr)},
                     {"value", one.value},
                     {"unit", traits.unit}});
  }
  return {{"device", m.key.device},
          {"ranks", m.key.ranks},
          {"rates", rates},
          {"constants", session.gpus > 0 ? constants_of(m) : json::array()},
          {"kept", m.path.empty() ? json(nullptr) : json(m.path)}};
}

// Throws an Error that ends with a remedy if rates cannot be kept.
void check_folder(const std::string& folder, const MachineKey& key) try {
  check_kept_machine(folder, key);
} catch (const Error& error) {
  throw Error(fmt::format(
      "{}; PLAIT_MACHINES names another folder, or, if it is empty, keeps nothing", error.what()));
}

void measure(const Session& session, World& world) {
  const bool gpus = session.gpus > 0;
  Measured m{
      .key = gpus ? MachineKey{current_gpu_name(), world.size()} : MachineKey::of_cpu(world.size()),
      .rates = {},
      .path = ""};
  const std::string folder = kept_machines_folder();
  on_all_or_none(world, [&] {  // before all the work
    if (world.rank() == 0) check_folder(folder, m.key);
  });
  {
    const Phase phase("measuring the machine");
    m.rates = gpus ? measure_gpu_rates(world) : measure_cpu_rates(world);
  }
  if (world.rank() != 0) return;
  keep_machine(folder, m.key, m.rates);
  if (!folder.empty()) m.path = kept_machine_path(folder, m.key);
  session.json ? print_json(to_json(m, session)) : print_text(m, ranks_of(world, session));
}

}  // namespace

void measure_machine(Session& session) {
  const unsigned cores = std::thread::hardware_concurrency();
  if (session.gpus == 0 && cores > 0 && static_cast<unsigned>(session.ranks) > cores &&
      !session.quiet)
    fmt::print(stderr,
               "plait: warning: {} ranks share {}, so that rates are of ranks that wait for each "
               "other's cores\n",
               session.ranks, counted(cores, "processor"));
  session.reaches_peers = session.gpus > 1;
  on_ranks(session, [&](World& world) { measure(session, world); });
}

}  // namespace plait::cli
