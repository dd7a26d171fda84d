// Plain values between all ranks, by the all_to_all() of the world of ranks (world/world.h), of the
// groups that it is made of, or of a channel (channel.h). The functions throw as all_to_all() does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace plait {

// Collective. Sends from(r) to each rank r, and receives to(r) from it: spans of plain values,
// whose sizes both sides know.
template <class Ranks, class From, class To>
void exchange_parts(Ranks& among, std::size_t ranks, const From& from, const To& to) {
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> received;
  for (std::size_t r = 0; r < ranks; ++r) {
    send.push_back(std::as_bytes(from(r)));
    received.push_back(std::as_writable_bytes(to(r)));
  }
  among.all_to_all(send, received);
}

// Collective. Sends send[r] to each rank r, and returns what has come from each. Takes two
// exchanges, as nobody knows the sizes of others.
template <class Ranks, class T>
std::vector<std::vector<T>> exchange_vectors(Ranks& among,
                                             const std::vector<std::vector<T>>& send) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t ranks = send.size();
  std::vector<std::uint64_t> sizes, found(ranks);
  for (const auto& part : send) sizes.push_back(part.size());
  exchange_parts(
      among, ranks, [&](std::size_t r) { return std::span<const std::uint64_t>(&sizes[r], 1); },
      [&](std::size_t r) { return std::span(&found[r], 1); });
  std::vector<std::vector<T>> received(ranks);
  for (std::size_t r = 0; r < ranks; ++r) received[r].resize(found[r]);
  exchange_parts(
      among, ranks, [&](std::size_t r) { return std::span(send[r]); },
      [&](std::size_t r) { return std::span(received[r]); });
  return received;
}

}  // namespace plait
