// For tests of files: every truncation and every single-bit flip of a good file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "plait/base/array.h"
#include "plait/base/error.h"

namespace plait {

// Memory is aligned and of just this size, so that a sanitizer sees a read beyond its end.
inline Buffer<std::byte> to_bytes(std::string_view text) {
  Buffer<std::byte> bytes(text.size());
  std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), bytes.data());
  return bytes;
}

inline Buffer<std::byte> first_bytes(std::span<const std::byte> bytes, std::size_t size) {
  Buffer<std::byte> copy(size);
  std::copy_n(bytes.begin(), size, copy.data());
  return copy;
}

// Tells whether read(bytes) is content; if it throws, this must be an Error of one line.
template <class Read>
bool reads(const Buffer<std::byte>& bytes, Read read) {
  try {
    read(bytes);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return false;
  }
}

// Every shorter file must be refused.
template <class Read>
void expect_every_truncation_refused(std::span<const std::byte> good, Read read) {
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(reads(first_bytes(good, size), read)) << "cut to " << size << " bytes";
}

// Reads the file with each of its bits flipped in turn and returns the number of refused ones.
// Nothing but an Error may come of it.
template <class Read>
std::size_t count_refused_flips(std::span<const std::byte> good, Read read) {
  Buffer<std::byte> bytes = first_bytes(good, good.size());
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    const std::byte mask{static_cast<unsigned char>(1u << bit % 8)};
    bytes[bit / 8] ^= mask;
    refused += !reads(bytes, read);
    bytes[bit / 8] ^= mask;
  }
  return refused;
}

// Returns a name that no other test process uses at the same time.
inline std::string temporary_path(const std::string& name) {
  return std::filesystem::temp_directory_path() / fmt::format("{}-{}", getpid(), name);
}

}  // namespace plait
