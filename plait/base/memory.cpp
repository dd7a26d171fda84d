#include "plait/base/memory.h"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>

#include "plait/base/cgroup.h"
#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/saturating.h"

namespace plait {
namespace {

constexpr auto kNoLimit = std::numeric_limits<std::uint64_t>::max();

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
  return read_kibibytes("/proc/meminfo", "MemAvailable:").value_or(kNoLimit);
}

// Returns the number of bytes that the user allows: digits, and K, M, G or T for powers of 1024.
std::uint64_t allowed_memory() {
  const char* const given = std::getenv("PLAIT_HOST_MEMORY");
  if (given == nullptr || *given == '\0') return kNoLimit;
  static constexpr std::string_view kUnits = "KMGT";
  std::string_view digits = given;
  const auto unit = kUnits.find(digits.back());
  if (unit != kUnits.npos) digits.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  require<UsageError>(error == std::errc() && end == digits.data() + digits.size(),
                      "PLAIT_HOST_MEMORY is '{}'; give a number of bytes, as 2000000 or 8G",
                      printable(given));
  for (std::size_t power = 0; unit != kUnits.npos && power <= unit; ++power)
    value = (Bytes(value) * 1024).value;
  return value;
}

// The findings of the EqualDemands that lives. Threads read them.
struct Demands {
  std::uint64_t processes = 1, free = 0, held = 0;
};
Demands demands;

}  // namespace

std::uint64_t available_memory() {
  return std::min({meminfo_available(), cgroup_available(), allowed_memory()});
}

std::uint64_t held_memory() { return read_kibibytes("/proc/self/status", "RssAnon:").value_or(0); }

std::uint64_t held_shared_memory() {
  return read_kibibytes("/proc/self/status", "RssShmem:").value_or(0);
}

// getrusage() would also count the memory of the process before exec().
std::uint64_t peak_memory() { return read_kibibytes("/proc/self/status", "VmHWM:").value_or(0); }

void give_back_freed_memory() { malloc_trim(0); }

// To set one threshold ends the growth of the other with the sizes of blocks, so both are set.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(kKeptBlock));
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

void require_memory(std::uint64_t bytes, std::string_view what) {
  if (demands.processes > 1) {
    const std::uint64_t held = held_memory();
    const std::uint64_t more = held > demands.held ? held - demands.held : 0;
    const Bytes all = (Bytes(bytes) + Bytes(more)) * demands.processes;
    require<DoesNotFitError>(all.value <= demands.free,
                             "{} needs {} on each of {} ranks of a host, but only {} is free", what,
                             format_bytes(bytes), demands.processes, format_bytes(demands.free));
  }
  require_memory(bytes, what, available_memory());
}

EqualDemands::EqualDemands(std::uint64_t processes) {
  demands = {processes, available_memory(), held_memory()};
}
EqualDemands::~EqualDemands() { demands = {}; }

}  // namespace plait
