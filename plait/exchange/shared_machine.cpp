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
    std::uint64_t size = text.size();
    world.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
    text.resize(size);
    world.broadcast(std::as_writable_bytes(std::span(text)), 0);
  });
  const std::uint64_t size = text.size();
  if (size > 0) use_machine(parse_machine(text, "the profile of rank 0"));
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
