#include "plait/world/report.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>

#include "plait/base/error.h"
#include "plait/base/failure.h"
#include "plait/world/launch.h"
#include "plait/world/loss.h"
#include "plait/world/rendezvous.h"
#include "plait/world/turn.h"

namespace plait {
namespace {

using std::chrono::milliseconds;

// c10's allocator on the CPU has no type of its own for a lack of memory.
bool is_of_cpu_allocator(const std::exception& error) {
  return dynamic_cast<const c10::Error*>(&error) != nullptr &&
         std::string_view(error.what()).find("DefaultCPUAllocator") != std::string_view::npos;
}

Failure failure_with_torch(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr)
    return {failure_of(error).text, ExitCode::does_not_fit};
  return is_of_cpu_allocator(error) ? failure_of(std::bad_alloc()) : failure_of(error);
}

// Returns the text that shows to ranks that they fail alike. If memory does not suffice, it leaves
// out the memory that was free when each rank looked.
std::string cause_of(const std::exception& error, const std::string& text) {
  const bool measured = dynamic_cast<const DoesNotFitError*>(&error) != nullptr;
  return measured ? text.substr(0, text.find(", but only ")) : text;
}

std::unique_ptr<Rendezvous> store_of(const WorldConfig& config) {
  RendezvousAddress address = rendezvous_address(config);
  address.prefix = prefix_of_turn(config);
  return Rendezvous::connect(address, std::min(config.timeout, milliseconds(1000)));
}

// Tells the store. Returns whether a lower rank has told the same.
bool told_by_lower_rank(const WorldConfig& config, const std::string& cause) {
  const auto store = store_of(config);
  store->set(failure_key(config.rank), "=" + cause);
  if (config.rank == 0) return false;
  store->get(failure_key(0), std::min(config.timeout / 10, milliseconds(5000)));
  for (int rank = 0; rank < config.rank; ++rank)
    if (store->get(failure_key(rank), milliseconds(1)) == "=" + cause) return true;
  return false;
}

// Tells whether the rank that failed has printed its own line.
bool told_by_itself(const WorldConfig& config, int rank) {
  if (!config.store_is_external) return false;
  try {
    return store_of(config)
        ->get(failure_key(rank), std::min(config.timeout / 4, milliseconds(1000)))
        .has_value();
  } catch (const Error&) {  // the launcher is gone
    return false;
  }
}

}  // namespace

int report_error(const std::exception& error) {
  const auto [text, exit_code] = failure_with_torch(error);
  const int code = static_cast<int>(exit_code);
  const auto config = valid_world_from_environment();
  // The text of a LostRankError begins with the rank already.
  const auto* lost = dynamic_cast<const LostRankError*>(&error);
  if (!config || config->size == 1 || lost != nullptr) {
    const bool told =
        config && lost != nullptr && lost->own_failure() && told_by_itself(*config, lost->rank());
    if (!told) print_failure(text);
    return code;
  }
  bool told = false;
  try {
    if (config->store_is_external) told = told_by_lower_rank(*config, cause_of(error, text));
  } catch (const Error&) {  // the launcher is gone
  }
  const std::string prefix = fmt::format("rank {}: ", config->rank);
  if (!told) print_failure(config->rank == 0 || text.starts_with(prefix) ? text : prefix + text);
  return code;
}

}  // namespace plait
