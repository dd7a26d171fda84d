// What ranks must agree on before memory is shared: all refuse, or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plait/base/error.h"
#include "plait/world/world.h"

namespace plait {

// What each rank gets, of the sizes that ranks ask for.
enum class SizeRule { equal, largest };

// Collective. Every rank asks for `bytes` of memory of which `available` are free to `sharers`
// ranks together. Returns what each gets. Throws UsageError if sizes differ that should be equal,
// DoesNotFitError if it is too much anywhere.
struct MemoryRequest {
  std::uint64_t bytes, available, sharers;
};
std::uint64_t agree_on_size(World& world, const MemoryRequest& mine, const std::string& where,
                            SizeRule rule = SizeRule::equal);

// What `work` throws, or an empty text.
template <class Work>
std::string failure_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Collective. A rank that could not do its part must not leave the others waiting for it: the first
// text that is not empty, with its rank if there are several; empty if all are.
std::string first_failure(World& world, const std::string& failure);
// Collective. Throws it as DoesNotFitError.
void agree_on_failure(World& world, const std::string& failure);

// Collective. Frees what `held` has and makes it by make(bytes), for where both do not fit at once.
// make() throws DoesNotFitError on all ranks or on none; `held` is then made as large as it was,
// and the error goes on. Nothing is held if not even that can be had.
template <class Memory, class Make>
void replace_memory(World& world, std::unique_ptr<Memory>& held, std::size_t bytes, Make make) {
  if (!held) {
    held = make(bytes);
    return;
  }
  const std::size_t before = held->bytes();
  held.reset();
  world.barrier();  // shared memory is free when all ranks have let go of it
  try {
    held = make(bytes);
  } catch (const DoesNotFitError&) {
    try {
      held = make(before);
    } catch (const DoesNotFitError&) {  // the first is the one to tell
    }
    throw;
  }
}

}  // namespace plait
