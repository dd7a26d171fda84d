#include "plait/plan/cpu_cost_model.h"

#include <algorithm>

#include "plait/base/row_stride.h"

namespace plait {
namespace {

// The table of rows in memory whose rates are known (measure/cpu_rates.cpp).
constexpr double kTableBytes = 64 << 20;
constexpr double kLoops = 4;     // over all threads, in a step
constexpr double kBarriers = 2;  // of a step
// A step's bytes and edges take so many times as long as the rates say, which are of one loop over
// smaller arrays: fitted to steps (docs/performance.md).
constexpr double kPlaced = 3.8;   // a byte of an own row, which is placed, and summed into y
constexpr double kBrought = 2.9;  // a byte of a row of the halo
constexpr double kSummed = 1.33;  // an edge
constexpr double kGot = 2;        // an edge if slots are translated to (rank, row), besides

// The rates that a prediction needs, at one width.
struct CpuCosts {
  double cached, local;  // seconds of a row, in a cache and in memory
  double byte;           // seconds of a byte that is copied
  double step;           // seconds of a step's barriers and loops
  double cache;          // bytes

  // Returns the seconds of a row by the bytes of all rows that are read: halfway between a cache
  // and memory if they take as much as the cache has.
  double row(double bytes, double far) const {
    const double most = kTableBytes / (kTableBytes + cache);
    return cached + std::max(0.0, local - cached) * far * bytes / (bytes + cache) / most;
  }
};

std::optional<CpuCosts> costs_at(double row_bytes, const MachineRates& rates) {
  const auto cached = seconds_of_row(rates, Rate::cached_rows, row_bytes);
  const auto local = seconds_of_row(rates, Rate::local_rows, row_bytes);
  const auto copy = value_of(rates, Rate::copy);
  if (!cached || !local || !copy) return std::nullopt;
  return CpuCosts{.cached = *cached,
                  .local = *local,
                  .byte = 1 / *copy,
                  .step = kLoops * value_of(rates, Rate::launch).value_or(0) +
                          kBarriers * value_of(rates, Rate::barrier).value_or(0),
                  .cache = value_of(rates, Rate::cache).value_or(kTableBytes / 2)};
}

double seconds_of(const PartQuality& part, double halo, bool gets, const CpuRows& rows,
                  const CpuCosts& costs) {
  const auto bytes = static_cast<double>(row_bytes(rows.width));
  const auto own = static_cast<double>(part.vertices);
  const double read = (own + static_cast<double>(part.halo_rows)) * bytes;
  const double moved = kPlaced * own + (gets ? 0 : kBrought * halo);
  const double edges = kSummed * (gets ? kGot : 1) * static_cast<double>(part.edges);
  return costs.step + moved * bytes * costs.byte + edges * costs.row(read, rows.far_share);
}

}  // namespace

double far_share(double averaged_edge_span, std::uint64_t vertices) {
  if (vertices == 0) return 0;
  return std::min(1.0, 3 * averaged_edge_span / static_cast<double>(vertices));
}

std::optional<double> predict_cpu_aggregation(Strategy strategy, const PartitionQuality& quality,
                                              const CpuRows& rows, const MachineRates& rates) {
  const auto costs = costs_at(static_cast<double>(row_bytes(rows.width)), rates);
  if (!costs || strategy == Strategy::automatic || !traits_of(strategy).cpu.possible)
    return std::nullopt;
  std::uint64_t vertices = 0;
  for (const PartQuality& part : quality.parts) vertices += part.vertices;
  double most = 0;
  for (const PartQuality& part : quality.parts) {
    const std::uint64_t halo =
        strategy == Strategy::replicate ? vertices - part.vertices : part.halo_rows;
    most = std::max(
        most, seconds_of(part, static_cast<double>(halo), strategy == Strategy::get, rows, *costs));
  }
  return most;
}

}  // namespace plait
