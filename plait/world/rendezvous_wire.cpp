#include "plait/world/rendezvous_wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace plait {
namespace {

void append_length(std::string& text, std::size_t length) {
  const auto value = static_cast<std::uint32_t>(length);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Nonce make_nonce() {
  const Secret random = make_secret();
  Nonce nonce;
  std::memcpy(nonce.data(), random.data(), nonce.size());
  return nonce;
}

Proof store_proof(const Secret& secret, char role, const Nonces& nonces) {
  std::array<std::byte, 1 + 2 * sizeof(Nonce)> message{std::byte(role)};
  std::ranges::copy(nonces.client, message.begin() + 1);
  std::ranges::copy(nonces.server, message.begin() + 1 + sizeof(Nonce));
  const std::uint64_t value = proof_of(secret, message);
  Proof proof;
  std::memcpy(proof.data(), &value, sizeof value);
  return proof;
}

std::string encode(const Message& message) {
  std::size_t size = 0;
  for (const std::string& text : message) size += sizeof(std::uint32_t) + text.size();
  std::string bytes;
  bytes.reserve(sizeof(std::uint32_t) + size);
  append_length(bytes, size);
  for (const std::string& text : message) {
    append_length(bytes, text.size());
    bytes += text;
  }
  return bytes;
}

std::uint32_t decode_length(std::span<const std::byte, 4> bytes) {
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length;
}

std::optional<Message> decode(std::string_view body) {
  Message message;
  while (!body.empty()) {
    std::uint32_t length = 0;
    if (body.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, body.data(), sizeof length);
    body.remove_prefix(sizeof length);
    if (length > body.size()) return std::nullopt;
    message.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  return message;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace plait
