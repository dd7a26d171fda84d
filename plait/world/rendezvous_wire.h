// The protocol of a store and its clients over TCP.
//
// First both prove that they know the secret, without telling it:
//   client   kStoreMark, 16 random bytes
//   server   16 random bytes, store_proof(secret, 's', both)
//   client   store_proof(secret, 'c', both)
// A side that fails gets no answer. Then the client sends a message, the server answers it with
// one, and so on. A message is a list of texts: u32 bytes of everything that follows, then for each
// text u32 bytes and the bytes. Numbers are little-endian.
//
//   message                    answer
//   set KEY VALUE              -
//   get KEY MILLISECONDS       VALUE, once it is there; nothing after so long
//   all KEY...                 VALUE...; nothing unless all are there
//   replace KEY OLD VALUE      the value of KEY, which was set if it was OLD; OLD empty: not there
//   add KEY NUMBER             the sum
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/world/secret.h"

namespace plait {

inline constexpr std::array<std::byte, 8> kStoreMark{std::byte{'p'}, std::byte{'l'}, std::byte{'a'},
                                                     std::byte{'i'}, std::byte{'t'}, std::byte{'s'},
                                                     std::byte{'t'}, std::byte{1}};
inline constexpr std::size_t kLongestMessage = std::size_t{64} << 20;

using Nonce = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 8>;
using Message = std::vector<std::string>;

// The random bytes of both sides of one connection.
struct Nonces {
  Nonce client, server;
};
// Returns random bytes. Throws Error if the kernel has none.
Nonce make_nonce();
// Returns the proof of one side, whose `role` is 's' (server) or 'c' (client).
Proof store_proof(const Secret& secret, char role, const Nonces& nonces);

// Returns the bytes of a message, its length first.
std::string encode(const Message& message);
// decode() reads the bytes that follow the first length; nothing if they are malformed.
// decode_length() reads that length.
std::optional<Message> decode(std::string_view body);
std::uint32_t decode_length(std::span<const std::byte, 4> bytes);

// Returns a whole number, or nothing if the text is something else.
std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace plait
