// Gathers values of every rank, on every rank or on one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plait/base/error.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns the values by rank. It takes one exchange, as all ranks know the size, where
// World::all_gather() takes two.
template <class T>
std::vector<T> gather_values(World& world, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto all = std::make_unique<T[]>(ranks);
  std::vector<std::span<const std::byte>> send(ranks, std::as_bytes(std::span(&mine, 1)));
  std::vector<std::span<std::byte>> receive(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    receive[rank] = std::as_writable_bytes(std::span(&all[rank], 1));
  world.all_to_all(send, receive);
  return std::vector<T>(all.get(), all.get() + ranks);
}

// Collective. Returns the vectors by rank. Sizes may differ.
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

// Collective. Returns the values of all ranks, one after the other, in a vector or a Buffer like
// that of each rank.
template <class Values>
Values gather_joined(World& world, const Values& mine) {
  const auto parts = world.all_gather(std::as_bytes(std::span(mine.data(), mine.size())));
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  Values all(bytes / sizeof(*mine.data()));
  auto* to = reinterpret_cast<std::byte*>(all.data());
  for (const auto& part : parts) to = std::ranges::copy(part, to).out;
  return all;
}

// Collective. Returns on `root` the bytes that every rank gives, by rank, and nothing on the
// others. Sizes may differ.
inline std::vector<std::string> gather_at(World& world, int root, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto sizes = gather_values(world, mine.size());
  std::vector<std::string> all;
  std::vector<std::span<std::byte>> receive(ranks);
  if (world.rank() == root) {
    for (const std::size_t size : sizes) all.emplace_back(size, '\0');
    for (std::size_t rank = 0; rank < ranks; ++rank)
      receive[rank] = std::as_writable_bytes(std::span(all[rank]));
  }
  std::vector<std::span<const std::byte>> send(ranks);
  send[static_cast<std::size_t>(root)] = std::as_bytes(std::span(mine));
  world.all_to_all(send, receive);
  return all;
}

// Collective. Gives all ranks the value of rank 0.
template <class T>
void share_first(World& world, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  world.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0);
}

// Collective. Gives all ranks the text, or the vector, of rank 0.
template <class Values>
void share_first_list(World& world, Values& values) {
  std::uint64_t size = values.size();
  share_first(world, size);
  values.resize(size);
  world.broadcast(std::as_writable_bytes(std::span(values)), 0);
}

// Collective. Returns the largest value of all ranks.
template <class T>
T largest_of_all(World& world, const T& mine) {
  return std::ranges::max(gather_values(world, mine));
}

}  // namespace plait
