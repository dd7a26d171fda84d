// The end of a process that reads a mapped file beyond the file's end, where the kernel sends
// SIGBUS: the file was made shorter while it was mapped, or its disk has failed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace plait {

// From name_mapped_range() to forget_mapped_range(), which is called before the memory is given
// back: SIGBUS on an address of `bytes` prints one line that names the file, and ends the process
// with exit code 1. SIGBUS elsewhere does what it did before the first call: the handler of that
// time is called.
void name_mapped_range(std::span<const std::byte> bytes, const std::string& file);
void forget_mapped_range(std::span<const std::byte> bytes);

// Makes this process and those that it forks from now on print one such line in all.
void tell_bus_errors_once();
// Tells whether one of them has printed it.
bool bus_error_told();

}  // namespace plait
