// Chooses which rows are worked on side by side, so that rows that they read in common are still in
// a cache: the rows of one cluster (clusters.h), or rows with ids close together.
//
// Clusters find what rows have in common whatever their ids are. But ids may tell more: ids of a
// crawl stand in the order in which pages were found, so that neighbours in that order have links
// in common, while one cluster spans pages that were found far apart. So both orders are sampled:
// of 256 rows that follow each other, how many distinct rows are read? The order by ids is taken
// where it reads clearly fewer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/ids.h"

namespace plait {

inline constexpr std::uint64_t kRowsTogether = 64;  // rows of one block of ids
inline constexpr std::uint64_t kReadBlock = 256;    // rows of a sample
inline constexpr std::uint64_t kReadBlocks = 512;   // the most samples, spread evenly
inline constexpr std::uint64_t kReadsOfRow = 32;    // the most edges of a row that count
// Measured on graphs of graph/zoo.h: distinct rows by ids over those by clusters are 0.80 and 0.84
// for crawls, whose sums are then 1.2 to 1.5 times as fast, and 0.96 or more for all others.
inline constexpr double kFewerReads = 0.92;

// Returns one label per row, as find_clusters(): rows of one label are worked on together, in the
// order of labels, and rows with more edges first. The arguments are those of find_clusters(). The
// result is a function of the graph: the same on the CPU and on the GPU.
template <VertexId V>
std::vector<std::uint32_t> order_of_work(std::span<const EdgeOffset> begin,
                                         std::span<const EdgeOffset> end, const V* columns);

}  // namespace plait
