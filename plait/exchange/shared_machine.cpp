#include "plait/exchange/shared_machine.h"

#include "plait/base/gpu.h"
#include "plait/machine/machine_of_rates.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/together.h"

namespace plait {

void share_machine(World& world, const std::optional<MachineProfile>& of_first) {
  std::string text;
  together(world, "while ranks shared a profile of the machine", [&] {
    if (of_first && world.rank() == 0) text = to_json(*of_first);
    share_first_list(world, text);
  });
  if (!text.empty()) use_machine(parse_machine(text, "the profile of rank 0"));
}

std::string use_measured_machine(World& world) {
  MeasuredMachine measured;
  on_all_or_none(world, [&] {  // a file that rank 0 cannot read is an error on all ranks
    if (world.rank() == 0) measured = measured_machine({current_gpu_name(), world.size()});
  });
  share_machine(world, measured.profile);
  return measured.note;
}

}  // namespace plait
