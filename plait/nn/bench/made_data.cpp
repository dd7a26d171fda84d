#include "plait/nn/bench/made_data.h"

#include "plait/aggregate/bench.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

constexpr std::uint64_t kLabelStream = std::uint64_t{23} << 56;  // the high half of counters

// Returns the rows of an array over all vertices whose memory is used where only own rows are
// written: all of them unless own rows stand together, as a page may hold rows of several ranks.
std::uint64_t rows_used(const Partition& partition, int rank) {
  return partition.is_contiguous() ? partition.size(rank) : partition.vertices();
}

// Throws DoesNotFitError unless each rank of this host has memory for as many rows as this one.
void require_memory_for_features(const World& world, std::uint64_t rows, std::uint64_t width) {
  const std::uint64_t here = world.ranks_of_host().size();
  const double bytes = static_cast<double>(rows) * static_cast<double>(width) * sizeof(float);
  require_memory(whole_bytes(bytes),
                 fmt::format("an array of {} features for {} vertices", width, rows),
                 available_memory() / here);
}

Features made_features(const Partition& partition, int rank, std::uint64_t width) {
  const std::uint64_t own = partition.size(rank), all = partition.vertices();
  Buffer<float> values(all * width);
  parallel_blocks(own, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::uint64_t number = partition.number(rank, r);
      float* const row = values.data() + partition.vertex(rank, r) * width;
      for (std::uint64_t c = 0; c < width; ++c) row[c] = bench_feature(number, c);
    }
  });
  return {.rows = all, .width = width, .f32 = std::move(values)};
}

}  // namespace

std::int32_t made_label(std::uint64_t number, std::int32_t classes, std::uint64_t seed) {
  const Philox::Block random = Philox(seed)(number, kLabelStream);
  return static_cast<std::int32_t>(
      uniform_below(static_cast<std::uint64_t>(classes), random[0], random[1]));
}

Dataset with_made_data(World& world, Dataset dataset, const Partition& partition,
                       const MadeData& made) {
  if (made.classes > 0) {
    Buffer<std::int32_t> labels(dataset.vertices());
    parallel_blocks(labels.size(), 4096, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v)
        labels[v] = made_label(dataset.number(v), made.classes, made.seed);
    });
    dataset.labels = std::move(labels);
    dataset.label_sets = {}, dataset.graph_ids = {}, dataset.graphs = 0;
    dataset.classes = made.classes;
  }
  if (made.width > 0) {
    on_all_or_none(world, [&] {
      require_memory_for_features(world, rows_used(partition, world.rank()), made.width);
      dataset.features = made_features(partition, world.rank(), made.width);
    });
  }
  dataset.splits = Buffer<Split>(dataset.examples(), Split::train);
  dataset.split_count = 1;
  return dataset;
}

}  // namespace plait
