#include "plait/partition/quality.h"

#include <algorithm>
#include <atomic>

#include "plait/base/parallel.h"

namespace plait {
namespace {

template <class Get>
double imbalance(const std::vector<PartQuality>& parts, Get get) {
  std::uint64_t most = 0, sum = 0;
  for (const auto& part : parts) {
    most = std::max(most, get(part));
    sum += get(part);
  }
  if (sum == 0) return 1;
  return static_cast<double>(most) * static_cast<double>(parts.size()) / static_cast<double>(sum);
}

// The reads of one part from another.
struct PartRead {
  std::uint64_t rows = 0;     // distinct
  std::uint64_t readers = 0;  // own rows that read some
  std::uint64_t edges = 0;
  std::uint64_t last_row = 0;  // the last own row that read some, from 1
};

// The rows and sums that all others want of a part.
struct PartAsked {
  std::atomic<std::uint64_t> packed = 0, packed_beside_sums = 0, whole = 0, sums = 0,
                             summed_edges = 0;
};

template <VertexId V>
std::vector<PartRead> count_reads(const Csr<V>& graph, const Partition& partition, int part) {
  std::vector<PartRead> reads(static_cast<std::size_t>(partition.parts()));  // by owner
  std::vector<bool> seen(graph.vertices(), false);
  for (std::uint64_t row = 0; row < partition.size(part); ++row)
    for (const V j : graph.row(partition.vertex(part, row))) {
      PartRead& read = reads[static_cast<std::size_t>(partition.owner(j))];
      ++read.edges;
      if (!seen[j]) ++read.rows;
      seen[j] = true;
      if (read.last_row != row + 1) ++read.readers;
      read.last_row = row + 1;
    }
  return reads;
}

template <VertexId V>
PartQuality measure_part(const Csr<V>& graph, const Partition& partition, int part,
                         std::vector<PartAsked>& asked) {
  PartQuality quality{.vertices = partition.size(part)};
  const std::vector<PartRead> reads = count_reads(graph, partition, part);
  for (const PartRead& read : reads) quality.edges += read.edges;
  SummedHalo& summed = quality.summed;
  summed.kept_edges = quality.edges;
  for (int owner = 0; owner < partition.parts(); ++owner) {
    const PartRead& read = reads[static_cast<std::size_t>(owner)];
    if (owner == part || read.rows == 0) continue;
    PartAsked& ask = asked[static_cast<std::size_t>(owner)];
    const bool whole = reads_most(read.rows, partition.size(owner));
    const std::uint64_t rows = whole ? partition.size(owner) : read.rows;
    const std::uint64_t listed = whole ? 0 : rows;
    quality.remote_edges += read.edges;
    quality.halo_rows += read.rows;
    quality.dense_rows += rows;
    quality.listed_rows += listed;
    ask.packed += listed;
    ask.whole += rows - listed;
    if (sums_are_fewer(rows, read.readers)) {
      summed.rows += read.readers;
      summed.kept_edges -= read.edges - read.readers;
      ask.sums += read.readers;
      ask.summed_edges += read.edges;
    } else {
      summed.rows += rows;
      summed.listed_rows += listed;
      ask.packed_beside_sums += listed;
    }
  }
  return quality;
}

}  // namespace

std::uint64_t PartitionQuality::cut() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += part.remote_edges;
  return sum;
}

std::uint64_t PartitionQuality::halo_rows() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += part.halo_rows;
  return sum;
}

double PartitionQuality::edge_imbalance() const {
  return imbalance(parts, [](const PartQuality& p) { return p.edges; });
}

double PartitionQuality::vertex_imbalance() const {
  return imbalance(parts, [](const PartQuality& p) { return p.vertices; });
}

PartitionQuality measure_partition(const AnyCsr& any, const Partition& partition) {
  PartitionQuality quality;
  quality.parts.resize(static_cast<std::size_t>(partition.parts()));
  std::vector<PartAsked> asked(quality.parts.size());
  std::visit(
      [&](const auto& graph) {
        parallel_for(quality.parts.size(), [&](std::size_t part) {
          quality.parts[part] = measure_part(graph, partition, static_cast<int>(part), asked);
        });
      },
      any);
  for (std::size_t part = 0; part < asked.size(); ++part) {
    PartQuality& q = quality.parts[part];
    q.packed_rows = asked[part].packed;
    q.whole_rows = asked[part].whole;
    q.summed.packed_rows = asked[part].packed_beside_sums;
    q.summed.sums = asked[part].sums;
    q.summed.summed_edges = asked[part].summed_edges;
  }
  return quality;
}

}  // namespace plait
