#include "plait/world/secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "plait/base/error.h"
#include "plait/world/join.h"

namespace plait {
namespace {

constexpr std::size_t kDigits = 2 * sizeof(Secret);

}  // namespace

Secret parse_secret(std::string_view text, const std::string& source) {
  Secret secret{};
  bool good = text.size() == kDigits;
  for (std::size_t i = 0; good && i < secret.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, secret[i], 16);
    good = error == std::errc() && end == digits + 2;
  }
  require<UsageError>(good && secret != Secret{},
                      "{} must hold {} hexadecimal digits, not all 0; make some with: openssl rand "
                      "-hex 16",
                      source, kDigits);
  return secret;
}

namespace {

// A file that another user could have read or written holds no secret.
std::string read_private_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require<UsageError>(descriptor >= 0, "PLAIT_SECRET_FILE: {} cannot be opened: {}", path,
                      std::strerror(errno));
  struct stat found {};
  const bool own = ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) &&
                   found.st_uid == ::geteuid() && (found.st_mode & 077) == 0;
  char text[kDigits + 2];
  const ssize_t size = own ? ::read(descriptor, text, sizeof text) : 0;
  ::close(descriptor);
  require<UsageError>(own,
                      "PLAIT_SECRET_FILE: {} must be a file of yours that nobody else may read or "
                      "write; use chmod 600",
                      path);
  std::string line(text, static_cast<std::size_t>(size > 0 ? size : 0));
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

}  // namespace

Secret make_secret() {
  Secret secret{};
  const bool filled = ::getrandom(secret.data(), secret.size(), 0) == ssize_t{sizeof secret};
  require(filled, "there are no random numbers: {}", std::strerror(errno));
  return secret;
}

std::string to_text(const Secret& secret) {
  std::string text;
  for (const auto byte : secret) text += fmt::format("{:02x}", byte);
  return text;
}

Secret secret_from_environment() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const auto text = variable("PLAIT_SECRET"); !text.empty())
    return parse_secret(text, "the environment variable PLAIT_SECRET");
  if (const auto path = variable("PLAIT_SECRET_FILE"); !path.empty())
    return parse_secret(read_private_file(path), "PLAIT_SECRET_FILE: " + path);
  return {};
}

std::uint64_t proof_of(const Secret& secret, std::span<const std::byte> message) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t key[2];
  std::memcpy(key, secret.data(), sizeof key);
  std::uint64_t v0 = key[0] ^ 0x736f6d6570736575, v1 = key[1] ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key[0] ^ 0x6c7967656e657261, v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1, v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const std::size_t whole = message.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, message.data() + i, sizeof word);
    take(word);
  }
  std::uint64_t last = std::uint64_t{message.size()} << 56;
  for (std::size_t i = whole; i < message.size(); ++i)
    last |= std::to_integer<std::uint64_t>(message[i]) << (8 * (i - whole));
  take(last);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace plait
