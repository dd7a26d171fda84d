// What those that write files share: errors of the system as lines, and whole writes. Internal to
// this room.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

namespace plait {

// "no space left on device": the system's words, made to follow a colon.
std::string reason(int error);
[[noreturn]] void fail_read(const std::string& path, const std::string& why);
[[noreturn]] void fail_write(const std::string& path, const std::string& why);

// All of `bytes`, at `offset`. `path` is for the message of an error.
void write_all(int descriptor, std::size_t offset, std::span<const std::byte> bytes,
               const std::string& path);

// Closes a descriptor at the end of a scope.
struct Closer {
  int descriptor;
  ~Closer() { close(descriptor); }
};

}  // namespace plait
