// One value of every rank, on every rank.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "plait/base/error.h"
#include "plait/world/world.h"

namespace plait {

// Collective; by rank.
template <class T>
std::vector<T> gather_values(World& world, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const auto& bytes : world.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    require(bytes.size() == sizeof(T),
            "a rank has sent {} bytes instead of {}; do all run the same version of Plait?",
            bytes.size(), sizeof(T));
    T value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    all.push_back(value);
  }
  return all;
}

// Collective; by rank. Sizes may differ.
template <class T>
std::vector<std::vector<T>> gather_vectors(World& world, const std::vector<T>& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::vector<T>> all;
  for (const auto& bytes : world.all_gather(std::as_bytes(std::span(mine)))) {
    all.emplace_back(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(all.back().data(), bytes.data(), all.back().size() * sizeof(T));
  }
  return all;
}

// Collective.
template <class T>
T largest_of_all(World& world, const T& mine) {
  return std::ranges::max(gather_values(world, mine));
}

}  // namespace plait
