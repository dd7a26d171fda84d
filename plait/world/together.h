// Work in which ranks meet several times, and its errors: errors of all ranks, and errors of one
// rank alone, which the others would wait for.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "plait/base/error.h"
#include "plait/world/world.h"

namespace plait {

// Marks errors that all ranks throw alike, because they have compared what leads to them. No rank
// waits for another after one, so it is an ordinary refusal: the next operation is right.
class OfAllRanks {
 protected:
  ~OfAllRanks() = default;
};
// An E that all ranks throw.
template <class E>
struct OnAllRanks : E, OfAllRanks {
  explicit OnAllRanks(const std::string& text) : E(text) {}
  explicit OnAllRanks(const E& error) : E(error) {}
};

// Throws E, marked, unless `condition` holds; it is the same on all ranks.
template <class E = Error, class... Args>
void require_on_all(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw OnAllRanks<E>(fmt::format(text, std::forward<Args>(args)...));
}

// Collective. Returns work(), in which ranks meet several times. An exception that leaves it on
// this rank alone would let the others wait at their next meeting for as long as this process
// lives: they are told that this rank has "failed IN", as World::declare_failed() does. Errors of
// all ranks and the loss of a rank go through. What all ranks refuse without comparing is refused
// before the call.
template <class Work>
decltype(auto) together(World& world, const char* in, Work&& work) {
  try {
    return work();
  } catch (const OfAllRanks&) {
    throw;
  } catch (const LostRankError&) {
    throw;
  } catch (...) {
    if (world.size() > 1) world.declare_failed(in);
    throw;
  }
}

}  // namespace plait
