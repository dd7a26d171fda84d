#include "plait/base/memory.h"

#include <malloc.h>

#include <fstream>
#include <limits>
#include <optional>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The number on the first line of a file, if there is one ("max" is none).
std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// Returns, in bytes, the value of a line "KEY   N kB" of a file of such lines.
std::optional<std::uint64_t> read_kibibytes(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string key, rest;
  while (file >> key) {
    std::uint64_t kibibytes = 0;
    if (key == wanted && file >> kibibytes) return kibibytes * 1024;
    std::getline(file, rest);
  }
  return std::nullopt;
}

std::uint64_t meminfo_available() {
  return read_kibibytes("/proc/meminfo", "MemAvailable:").value_or(kUnlimited);
}

// Page cache counts as used by a cgroup, but is given back on demand, so only memory that no file
// backs is held against the limit.
std::uint64_t cgroup_available() {
  const std::string root = "/sys/fs/cgroup/";
  const auto limit = read_number(root + "memory.max");
  if (!limit) return kUnlimited;
  std::ifstream file(root + "memory.stat");
  std::string key;
  std::uint64_t value = 0, anonymous = 0;
  while (file >> key >> value)
    if (key == "anon" || key == "shmem" || key == "kernel") anonymous += value;
  return *limit > anonymous ? *limit - anonymous : 0;
}

}  // namespace

std::uint64_t available_memory() { return std::min(meminfo_available(), cgroup_available()); }

std::uint64_t held_memory() { return read_kibibytes("/proc/self/status", "RssAnon:").value_or(0); }

std::uint64_t held_shared_memory() {
  return read_kibibytes("/proc/self/status", "RssShmem:").value_or(0);
}

// getrusage() would also count the memory of the process before exec().
std::uint64_t peak_memory() { return read_kibibytes("/proc/self/status", "VmHWM:").value_or(0); }

// To set one threshold ends the growth of the other with the sizes of blocks, so both are set.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::uint64_t whole_bytes(double estimate) {
  return estimate < 0x1p63 ? static_cast<std::uint64_t>(estimate) : ~std::uint64_t{0};
}

void require_memory(std::uint64_t bytes, std::string_view what, std::uint64_t free) {
  require<DoesNotFitError>(bytes <= free, "{} needs {}, but only {} is free", what,
                           format_bytes(bytes), format_bytes(free));
}

}  // namespace plait
