#include "plait/machine/rates.h"

#include <algorithm>
#include <array>
#include <string>

#include "plait/base/error.h"
#include "plait/base/printable.h"

namespace plait {
namespace {

constexpr std::array kRates{
    RateTraits{Rate::local_rows, "local rows", "random rows of own memory", "B/s", true},
    RateTraits{Rate::cached_rows, "cached rows", "random rows of memory that fits in a cache",
               "B/s", true},
    RateTraits{Rate::peer_rows, "peer rows", "random rows of one peer, by one rank alone", "B/s",
               true},
    RateTraits{Rate::all_peer_rows, "all peer rows", "random rows of all peers", "B/s", true},
    RateTraits{Rate::host_rows, "host rows", "random rows of the host's memory", "B/s", true},
    RateTraits{Rate::copy, "copy", "copy within own memory, bytes copied", "B/s", false},
    RateTraits{Rate::host_copy, "host copy", "copy from the host", "B/s", false},
    RateTraits{Rate::engine_push, "engine push", "push to peers in turn by copy engines", "B/s",
               false},
    RateTraits{Rate::kernel_push, "kernel push", "push to all peers by a kernel", "B/s", false},
    RateTraits{Rate::signal, "signal", "step of signals between all GPUs, with its launches", "s",
               false},
    RateTraits{Rate::launch, "launch", "kernel that does nothing, or loop over all threads", "s",
               false},
    RateTraits{Rate::barrier, "barrier", "barrier of all ranks", "s", false},
    RateTraits{Rate::cache, "cache", "last cache", "B", false},
    RateTraits{Rate::threads, "threads", "threads of a rank", "", false}};

// The least and the largest value of a unit that is believed.
struct Bounds {
  std::string_view unit;
  double least, most;
};
constexpr std::array kBounds{Bounds{"B/s", 1e3, 1e17}, Bounds{"s", 1e-12, 1e3},
                             Bounds{"B", 1, 1e15}, Bounds{"", 1, 1e6}};

constexpr std::array<std::uint64_t, 8> kRowBytes{32, 64, 128, 256, 512, 1024, 2048, 4096};

}  // namespace

const RateTraits& traits_of(Rate rate) { return kRates[static_cast<std::size_t>(rate)]; }
std::span<const RateTraits> all_rates() { return kRates; }

Rate parse_rate(std::string_view name) {
  const auto found = std::ranges::find(kRates, name, &RateTraits::name);
  require(found != kRates.end(), "rate '{}' is unknown", printable(std::string(name)));
  return found->rate;
}

bool is_plausible(const MeasuredRate& measured) {
  const RateTraits& traits = traits_of(measured.rate);
  const Bounds& bounds = *std::ranges::find(kBounds, traits.unit, &Bounds::unit);
  constexpr std::uint64_t kMostRowBytes = std::uint64_t{1} << 30;
  return measured.value >= bounds.least && measured.value <= bounds.most &&
         traits.by_row == (measured.row_bytes > 0) && measured.row_bytes <= kMostRowBytes;
}

std::span<const std::uint64_t> measured_row_bytes() { return kRowBytes; }

std::optional<double> value_of(const MachineRates& rates, Rate rate, std::uint64_t row_bytes) {
  for (const MeasuredRate& one : rates)
    if (one.rate == rate && one.row_bytes == row_bytes) return one.value;
  return std::nullopt;
}

std::optional<double> seconds_of_row(const MachineRates& rates, Rate rate, double row_bytes) {
  const MeasuredRate* below = nullptr;
  const MeasuredRate* above = nullptr;
  for (const MeasuredRate& one : rates) {
    if (one.rate != rate || one.row_bytes == 0) continue;
    const auto bytes = static_cast<double>(one.row_bytes);
    if (bytes <= row_bytes && (below == nullptr || one.row_bytes > below->row_bytes)) below = &one;
    if (bytes >= row_bytes && (above == nullptr || one.row_bytes < above->row_bytes)) above = &one;
  }
  const auto seconds = [](const MeasuredRate& one) {
    return static_cast<double>(one.row_bytes) / one.value;
  };
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return seconds(*above);
  if (above == nullptr) return row_bytes / below->value;
  if (above == below) return seconds(*below);
  const double share = (row_bytes - static_cast<double>(below->row_bytes)) /
                       static_cast<double>(above->row_bytes - below->row_bytes);
  return seconds(*below) + share * (seconds(*above) - seconds(*below));
}

}  // namespace plait
