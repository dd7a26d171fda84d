#include "plait/measure/made_data.h"

#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/measure/bench.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

constexpr std::uint64_t kLabelStream = std::uint64_t{23} << 56;  // the high half of counters

Buffer<std::int32_t> made_labels(const Dataset& dataset, const MadeData& made) {
  Buffer<std::int32_t> labels(dataset.vertices());
  parallel_blocks(labels.size(), 4096, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v)
      labels[v] = made_label(dataset.number(v), made.classes, made.seed);
  });
  return labels;
}

}  // namespace

std::int32_t made_label(std::uint64_t number, std::int32_t classes, std::uint64_t seed) {
  const Philox::Block random = Philox(seed)(number, kLabelStream);
  return static_cast<std::int32_t>(
      uniform_below(static_cast<std::uint64_t>(classes), random[0], random[1]));
}

TableSource made_rows(const Dataset& dataset, std::uint64_t width) {
  if (width == 0) return {};
  return [numbers = dataset.numbers, width](std::span<const std::uint64_t> ids, std::byte* rows) {
    auto* out = reinterpret_cast<float*>(rows);
    for (const std::uint64_t id : ids) {
      const std::uint64_t number = numbers.empty() ? id : numbers[id];
      for (std::uint64_t c = 0; c < width; ++c) *out++ = bench_feature(number, c);
    }
  };
}

Dataset with_made_data(World& world, Dataset dataset, const MadeData& made) {
  on_all_or_none(world, [&] {
    const std::uint64_t each = sizeof(Split) + (made.classes > 0 ? sizeof(std::int32_t) : 0);
    require_memory(world.ranks_of_host().size() * dataset.vertices() * each,
                   fmt::format("labels and a split of {} vertices", dataset.vertices()));
  });
  if (made.classes > 0) {
    dataset.labels = made_labels(dataset, made);
    dataset.label_sets = {}, dataset.graph_ids = {}, dataset.graphs = 0;
    dataset.classes = made.classes;
  }
  if (made.width > 0) dataset.features = {.rows = dataset.vertices(), .width = made.width};
  dataset.splits = Buffer<Split>(dataset.examples(), Split::train);
  dataset.split_count = 1;
  return dataset;
}

}  // namespace plait
