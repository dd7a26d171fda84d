// gzip files (RFC 1952), unpacked in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "plait/base/array.h"

namespace plait {

// Returns the content of all members. Takes at most 2.5 times as much memory as the content, which
// deflate packs at most 1032 to one; large content is compared with the free memory first. Throws
// an InputError that names `file` if the bytes are not gzip, are damaged or end early, and
// DoesNotFitError.
Buffer<std::byte> gunzip(std::span<const std::byte> bytes, const std::string& file);

}  // namespace plait
