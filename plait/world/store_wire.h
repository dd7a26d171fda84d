// What a store and its clients say to each other over TCP.
//
// First both prove that they know the secret, without telling it:
//   client   kMark, 16 random bytes
//   server   16 random bytes, proof_of(secret, "server", both)
//   client   proof_of(secret, "client", both)
// Whoever fails is left without an answer. Then the client sends a message, the server answers it
// with one, and so on. A message is a list of texts: u32 bytes of all that follows, then for each
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

struct Nonces {
  Nonce client, server;
};
Nonce make_nonce();
// `role` is 's' or 'c'.
Proof store_proof(const Secret& secret, char role, const Nonces& nonces);

std::string encode(const Message& message);
// Of what follows the first length. Nothing if it is malformed.
std::optional<Message> decode(std::string_view body);
std::uint32_t decode_length(std::span<const std::byte, 4> bytes);

// A whole number, nothing if the text is something else.
std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace plait
