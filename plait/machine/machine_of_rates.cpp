#include "plait/machine/machine_of_rates.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <optional>
#include <string>

namespace plait {
namespace {

// A constant, the rate that it depends on, and whether it falls as the rate rises.
struct Dependence {
  double& (*constant)(MachineProfile&);
  Rate rate;
  std::uint64_t row_bytes;
  bool falls;
};

constexpr std::array kDependences{
    // Rates.
    Dependence{[](MachineProfile& p) -> double& { return p.passes.link; }, Rate::engine_push, 0,
               false},
    Dependence{[](MachineProfile& p) -> double& { return p.nccl_link; }, Rate::engine_push, 0,
               false},
    Dependence{[](MachineProfile& p) -> double& { return p.picked_link; }, Rate::engine_push, 0,
               false},
    Dependence{[](MachineProfile& p) -> double& { return p.peer_reads; }, Rate::all_peer_rows, 256,
               false},
    // Seconds per row, byte or step.
    Dependence{[](MachineProfile& p) -> double& { return p.peer_row; }, Rate::all_peer_rows, 64,
               true},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.edge_byte; }, Rate::cached_rows,
               256, true},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.y_byte; }, Rate::copy, 0, true},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.miss; }, Rate::local_rows, 64,
               true},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.first_byte; }, Rate::copy, 0,
               true},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.first_row; }, Rate::signal, 0,
               false},
    Dependence{[](MachineProfile& p) -> double& { return p.passes.pass; }, Rate::launch, 0, false},
};

}  // namespace

MachineProfile machine_of(const std::string& name, const MachineRates& rates, int ranks) {
  MachineProfile profile;
  profile.name = name;
  for (const Dependence& d : kDependences) {
    const std::optional<double> measured = value_of(rates, d.rate, d.row_bytes);
    const std::optional<double> of_h200 = value_of(reference_rates(ranks), d.rate, d.row_bytes);
    if (!measured || !of_h200) continue;
    d.constant(profile) *= d.falls ? *of_h200 / *measured : *measured / *of_h200;
  }
  return profile;
}

MeasuredMachine measured_machine(const MachineKey& gpus) {
  if (machine_is_given()) return {};
  const KeptMachine kept = read_kept_machine(kept_machines_folder(), gpus);
  MeasuredMachine measured{.profile = {}, .note = kept.note};
  if (kept.rates.empty()) return measured;
  const std::string source = "the kept profile of " + gpus.device;
  try {  // absurd rates make constants that no profile may have
    measured.profile =
        parse_machine(to_json(machine_of(gpus.device, kept.rates, gpus.ranks)), source);
  } catch (const std::exception& error) {
    measured.note = fmt::format("{} is not used: {}", source, error.what());
  }
  return measured;
}

const MachineRates& reference_rates(int ranks) {
  // The latencies are those of the host of two H100s: constants were fitted on another host.
  static const auto rates_of = [](double copy, double local, double cached, double few_bytes,
                                  double bytes, double push) {
    return MachineRates{
        {Rate::copy, 0, copy},
        {Rate::local_rows, 64, local},
        {Rate::cached_rows, 256, cached},
        {Rate::all_peer_rows, 64, few_bytes},
        {Rate::all_peer_rows, 256, bytes},
        {Rate::engine_push, 0, push},
        {Rate::signal, 0, 16.8e-6},
        {Rate::launch, 0, 4.6e-6},
    };
  };
  static const MachineRates of_two = rates_of(2050e9, 2600e9, 9300e9, 279e9, 332e9, 391e9);
  static const MachineRates of_four = rates_of(2030e9, 2530e9, 9160e9, 272e9, 320e9, 311e9);
  return ranks <= 2 ? of_two : of_four;
}

}  // namespace plait
