#include "plait/base/fault.h"

#include <mutex>

#include "plait/base/error.h"

namespace plait {
namespace {

struct State {
  std::mutex mutex;
  Fault fault;
  int parts_before;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

void switch_fault(Fault fault, int number) {
  const std::lock_guard lock(state().mutex);
  state().fault = fault;
  state().parts_before = number;
  detail::fault_on = true;
}

bool take_back_fault() { return detail::fault_on.exchange(false); }

void fault_now() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.parts_before-- != 0 || !detail::fault_on.exchange(false)) return;
  if (s.fault == Fault::refusal) throw UsageError("a refusal, for a test");
  if (s.fault == Fault::memory) throw DoesNotFitError("no memory, for a test");
  throw Error("a device that fails, for a test");
}

}  // namespace plait
