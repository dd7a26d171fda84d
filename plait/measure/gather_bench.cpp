#include "plait/measure/gather_bench.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/exchange/row_parts.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/symmetric/agreement.h"
#include "plait/table/sharded/table.h"
#include "plait/world/gather.h"
#include "plait/world/nccl.h"

namespace plait {
namespace {

// Rows of bench_feature().
TableSource bench_rows(std::uint64_t width) {
  return [width](std::span<const std::uint64_t> ids, std::byte* rows) {
    auto* const out = reinterpret_cast<float*>(rows);
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::uint64_t k = 0; k < width; ++k) out[i * width + k] = bench_feature(ids[i], k);
  };
}

std::unique_ptr<Table> bench_table(World& world, const GatherQuestion& q) {
  const TableSettings settings{.rows = q.rows,
                               .width = q.width,
                               .type = DType::f32,
                               .place = q.gpus ? TablePlace::gpu : TablePlace::host};
  return Table::create(world, settings, bench_rows(q.width), device_of(q.gpus));
}

}  // namespace

// Rows of tensors between ranks, by NCCL or Gloo.
class GatherBench::RowMessages {
 public:
  RowMessages(World& world, bool gpus) : world_(world), nccl_(gpus ? Nccl::join(world) : nullptr) {}

  // Sends counts[r] rows to rank r, and receives received[r] from it; counts are on the CPU.
  void exchange(const torch::Tensor& from, const torch::Tensor& counts, const torch::Tensor& to,
                const torch::Tensor& received) const {
    nccl_ ? by_nccl(from, counts, to, received) : by_gloo(from, counts, to, received);
  }

 private:
  // Returns the rows of each rank.
  template <class Byte>
  std::vector<std::span<Byte>> parts(const torch::Tensor& rows, const torch::Tensor& counts) const {
    const std::size_t stride = rows.dim() < 2
                                   ? rows.element_size()
                                   : rows.element_size() * static_cast<std::size_t>(rows.size(1));
    const std::span count(static_cast<const std::uint64_t*>(counts.const_data_ptr()),
                          static_cast<std::size_t>(world_.size()));
    return RowParts<Byte>{static_cast<std::byte*>(rows.mutable_data_ptr()), count, stride}.parts();
  }
  void by_gloo(const torch::Tensor& from, const torch::Tensor& counts, const torch::Tensor& to,
               const torch::Tensor& received) const {
    world_.all_to_all(parts<const std::byte>(from, counts), parts<std::byte>(to, received));
  }
  // Own rows are copied.
  void by_nccl(const torch::Tensor& from, const torch::Tensor& counts, const torch::Tensor& to,
               const torch::Tensor& received) const {
    nccl_->all_to_all(parts<const std::byte>(from, counts), parts<std::byte>(to, received),
                      current_stream(to.device()));
    own_rows_of(to, received).copy_(own_rows_of(from, counts));
  }
  torch::Tensor own_rows_of(const torch::Tensor& rows, const torch::Tensor& counts) const {
    const auto rank = static_cast<std::int64_t>(world_.rank());
    const auto before = counts.slice(0, 0, rank).sum().item<std::int64_t>();
    return rows.narrow(0, before, counts[rank].item<std::int64_t>());
  }

  World& world_;
  const std::unique_ptr<Nccl> nccl_;
};

std::string_view to_string(GatherWay way) { return way == GatherWay::reads ? "reads" : "messages"; }

struct GatherBench::State {
  World& world;
  const GatherQuestion question;
  const torch::Device device;
  const std::unique_ptr<Table> table;
  std::unique_ptr<RowMessages> messages;  // when they are first used
  torch::Tensor starts;                   // of the ranges of all ranks but the first
  torch::Tensor ids, out;
  double crossing = 0;
  std::uint64_t bytes = 0;

  State(World& w, const GatherQuestion& q)
      : world(w), question(q), device(torch_device(q.gpus)), table(bench_table(w, q)) {
    const StoredRows& rows = table->rows().rows;
    starts = at::empty({world.size() - 1}, at::kLong);
    for (int rank = 1; rank < world.size(); ++rank)
      starts[rank - 1] = static_cast<std::int64_t>(rows.starts[rank]);
    starts = starts.to(device);
  }

  std::int64_t width() const { return static_cast<std::int64_t>(question.width); }

  // Writes the rows of `wanted` (int64) to `rows`, of as many rows.
  void read(const torch::Tensor& wanted, const torch::Tensor& rows) const {
    table->gather(reinterpret_cast<const std::uint64_t*>(wanted.const_data_ptr()),
                  static_cast<std::uint64_t>(wanted.numel()), rows.mutable_data_ptr<float>(),
                  question.width, current_stream(device));
  }
  void gather(GatherWay way) {
    if (way == GatherWay::reads) return read(ids, out);
    const torch::Tensor owners = at::bucketize(ids, starts, false, true);
    const torch::Tensor order = std::get<1>(at::sort(owners, true, 0, false));
    const torch::Tensor wanted = at::bincount(owners, {}, world.size());
    const torch::Tensor one_each = at::ones({world.size()}, at::kLong);
    const torch::Tensor given = at::empty_like(wanted);
    messages->exchange(wanted, one_each, given, one_each);
    const torch::Tensor wanted_here = wanted.cpu(), given_here = given.cpu();
    const torch::Tensor asked = at::empty({given_here.sum().item<std::int64_t>()}, ids.options());
    messages->exchange(ids.index_select(0, order), wanted_here, asked, given_here);
    const torch::Tensor answers = at::empty({asked.size(0), width()}, out.options());
    read(asked, answers);
    const torch::Tensor rows = at::empty_like(out);
    messages->exchange(answers, given_here, rows, wanted_here);
    out.index_copy_(0, order, rows);
  }

  // Joins NCCL before anything is timed.
  void prepare(GatherWay way) {
    if (way == GatherWay::messages && !messages)
      messages = std::make_unique<RowMessages>(world, question.gpus);
  }
  void wait() const {
    if (question.gpus) wait_for_gpu();
  }
};

GatherBench::GatherBench(World& world, const GatherQuestion& question)
    : state_(std::make_unique<State>(world, question)) {}

GatherBench::~GatherBench() = default;

void GatherBench::set_ids(std::span<const std::uint64_t> ids) {
  State& s = *state_;
  const StoredRows& rows = s.table->rows().rows;
  std::uint64_t crossing = 0;
  for (const std::uint64_t id : ids) crossing += crosses(rows, place_of(rows, rows.starts, id));
  std::uint64_t all = 0, most = 0, crossed = 0;
  for (const std::uint64_t count : gather_values(s.world, std::uint64_t{ids.size()}))
    all += count, most = std::max(most, count);
  for (const std::uint64_t count : gather_values(s.world, crossing)) crossed += count;
  s.crossing = all == 0 ? 0 : static_cast<double>(crossed) / static_cast<double>(all);
  s.bytes = most * s.question.width * sizeof(float);
  const auto count = static_cast<std::int64_t>(ids.size());
  torch::Tensor here = at::empty({count}, at::kLong);
  std::ranges::copy(ids, here.mutable_data_ptr<std::int64_t>());
  on_all_or_none(s.world, [&] {
    try {
      s.ids = torch::Tensor(), s.out = torch::Tensor();
      s.ids = here.to(s.device);
      s.out = at::empty({count, s.width()}, at::TensorOptions(at::kFloat).device(s.device));
    } catch (const c10::OutOfMemoryError& error) {
      throw DoesNotFitError(fmt::format("results of gathers: {}", error.what_without_backtrace()));
    }
  });
}

double GatherBench::crossing() const { return state_->crossing; }
std::uint64_t GatherBench::bytes() const { return state_->bytes; }

double GatherBench::check(GatherWay way) {
  State& s = *state_;
  s.prepare(way);
  s.out.fill_(std::numeric_limits<double>::quiet_NaN());
  s.gather(way);
  const torch::Tensor out = s.out.cpu(), ids = s.ids.cpu();
  const auto* const row = out.const_data_ptr<float>();
  const auto* const id = ids.const_data_ptr<std::int64_t>();
  double worst = 0;
  for (std::int64_t i = 0; i < ids.numel(); ++i)
    for (std::int64_t k = 0; k < s.width(); ++k) {
      const float wanted =
          bench_feature(static_cast<std::uint64_t>(id[i]), static_cast<std::uint64_t>(k));
      const double error = std::abs(double{row[i * s.width() + k]} / double{wanted} - 1);
      worst = std::max(worst, std::isnan(error) ? 1.0 : error);
    }
  return largest_of_all(s.world, worst);
}

Times GatherBench::time(GatherWay way, const BenchEffort& effort) {
  State& s = *state_;
  s.prepare(way);
  return time_steps(s.world, effort, [&](int steps) {
    for (int k = 0; k < steps; ++k) s.gather(way);
    s.wait();
  });
}

}  // namespace plait
