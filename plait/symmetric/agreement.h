// Agreement of ranks before memory is shared: all refuse, or none. The errors that these functions
// throw on all ranks are marked (OnAllRanks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/world/gather.h"
#include "plait/world/together.h"
#include "plait/world/world.h"

namespace plait {

// Each rank gets the size that it asks for, which must be equal on all, or the largest that any
// asks for.
enum class SizeRule { equal, largest };

// Returns the exception that is being handled as an Error, with the text and the exit code that a
// program ends with (base/failure.h): a rank that lacks memory, or whose library fails, must not
// leave the others waiting either.
Error error_in_flight();

// Returns the text of what `work` throws, or an empty text.
template <class Work>
std::string failure_of(Work work) {
  try {
    work();
  } catch (...) {
    return error_in_flight().what();
  }
  return {};
}

// The prefix of a failure's text, if there are several ranks, names the rank that has failed; or,
// where ranks of a host have done work together, a rank of that host, unless the text begins with
// the number of a rank.
enum class FailureOf { rank, host };

// Collective. A rank that could not do its part must not leave the others waiting for it. Returns
// on all ranks the first text that is not empty; empty if all are.
std::string first_failure(World& world, const std::string& failure, FailureOf of = FailureOf::rank);
// Collective. Throws the first failure, if any, as DoesNotFitError on all ranks.
void agree_on_failure(World& world, const std::string& failure);
// Collective. If any rank gives an error, all ranks throw the first that is no DoesNotFitError, or
// else the first. It is thrown as UsageError, as DoesNotFitError, as Interrupted, or as Error with
// its exit code.
void agree_on_error(World& world, const std::optional<Error>& error, FailureOf of);

// Collective. Calls `work`; if it throws on any rank, all ranks throw as agree_on_error().
template <class Work>
void on_all_or_none(World& world, Work work, FailureOf of = FailureOf::rank) {
  std::optional<Error> caught;
  try {
    work();
  } catch (...) {
    caught.emplace(error_in_flight());
  }
  agree_on_error(world, caught, of);
}

// Collective. Returns by rank what find() returns; if it throws on any rank, all ranks throw as
// agree_on_error(). Unless one throws, this takes the one exchange of gather_values().
template <class Find>
auto gather_found(World& world, Find find) {
  using T = decltype(find());
  struct Found {
    T value{};
    bool failed = false;
  } mine;
  std::optional<Error> caught;
  try {
    mine.value = find();
  } catch (...) {
    caught.emplace(error_in_flight());
    mine.failed = true;
  }
  std::vector<T> values;
  bool failed = false;
  for (const Found& found : gather_values(world, mine)) {
    failed = failed || found.failed;
    values.push_back(found.value);
  }
  if (failed) agree_on_error(world, caught, FailureOf::rank);
  return values;
}

// A rank asks for `bytes` of memory; `available` bytes are free for `sharers` ranks together, this
// one among them.
struct MemoryRequest {
  std::uint64_t bytes, available, sharers;
};
// Collective. Returns the bytes that each rank gets, by the requests that `ask` returns on each. If
// `ask` throws on any rank, all throw. `where` names the memory in messages: "this host". Throws
// UsageError if sizes differ that should be equal, DoesNotFitError if they are too much anywhere.
std::uint64_t agree_on_size(World& world, const std::function<MemoryRequest()>& ask,
                            const std::string& where, SizeRule rule = SizeRule::equal);

// Collective. Calls `work`, which is collective among `near`, the world or its host_world(): if it
// throws an Error on the ranks of one host, the ranks of all hosts throw as agree_on_error().
template <class Work>
void on_all_hosts(World& world, World& near, Work work) {
  if (&world == &near) return work();
  on_all_or_none(world, work, FailureOf::host);
}

// Collective. Frees the memory of `held` and makes it anew by make(bytes), for memory too large to
// be held twice. After a DoesNotFitError that make() throws on all ranks, `held` is made as large
// as it was, and the error goes on. `held` is null if not even that fits. Other errors go on at
// once: the ranks might not come to make() again together.
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
  } catch (const OnAllRanks<DoesNotFitError>&) {
    try {
      held = make(before);
    } catch (const OnAllRanks<DoesNotFitError>&) {  // the first is the one to tell
    }
    throw;
  }
}

}  // namespace plait
