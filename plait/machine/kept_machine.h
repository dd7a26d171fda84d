// The rates that `plait doctor --measure` measured, kept in files from one run to the next.
//
// There is one file per kind of device and number of ranks, in the folder kept_machines_folder(). A
// file that is damaged, or that another version of Plait wrote, counts as none, and the reader is
// told why.
#pragma once

#include <string>

#include "plait/machine/rates.h"

namespace plait {

// The machine that rates were measured on, and hold for.
struct MachineKey {
  std::string device;  // name of the GPU or of the processor, with the number of its cores
  int ranks = 1;

  // Returns the key of ranks on the processor of this host.
  static MachineKey of_cpu(int ranks);

  friend bool operator==(const MachineKey&, const MachineKey&) = default;
};

// The rates that are kept for a key.
struct KeptMachine {
  MachineRates rates;  // empty: nothing
  std::string note;    // why a file that is there was not used; else empty
};

// Returns the folder: the environment's PLAIT_MACHINES (empty: nothing is kept), else
// plait/machines in XDG_CACHE_HOME or ~/.cache. Empty if there is none.
std::string kept_machines_folder();
// Returns the path of a key's file in the folder.
std::string kept_machine_path(const std::string& folder, const MachineKey& key);

// Reads the rates of a key. Throws nothing for a file that is missing, damaged or stale.
KeptMachine read_kept_machine(const std::string& folder, const MachineKey& key);
// Both make the folder, and throw Error if the file of a key cannot be written. The first leaves it
// as it is; the second keeps these rates in the place of all earlier ones of the key. With an empty
// folder they do nothing.
void check_kept_machine(const std::string& folder, const MachineKey& key);
void keep_machine(const std::string& folder, const MachineKey& key, const MachineRates& rates);

}  // namespace plait
