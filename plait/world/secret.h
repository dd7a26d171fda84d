// The secret that the ranks of one job share, so that nobody else can speak with their store.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace plait {

// 128 bits. All zero means none: the store then answers every process that can connect to it.
using Secret = std::array<std::uint8_t, 16>;

// Returns a secret from the kernel's random source. Throws Error if there is none.
Secret make_secret();
// Returns 32 hexadecimal digits.
std::string to_text(const Secret& secret);

// Reads PLAIT_SECRET, or the file that PLAIT_SECRET_FILE names, which must be this user's and
// readable by nobody else; all zero if neither is set. Throws a UsageError that names the variable.
Secret secret_from_environment();

// Returns SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) of the message: a proof, 64 bits, of
// knowing the secret, which does not give it away.
std::uint64_t proof_of(const Secret& secret, std::span<const std::byte> message);

}  // namespace plait
