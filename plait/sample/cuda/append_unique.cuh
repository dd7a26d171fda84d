// Gives numbers to the vertices that a hop's edges have reached (append-unique, WholeGraph, section
// 4.2): each new one the next number, in the order of the first edges that reach them.
//
// First edges are marked by one bit each, and a word of 32 of them is counted by one number, so
// that edges look up a quarter of a byte per edge at random, which stays in cache.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/sample/cuda/hop.cuh"
#include "plait/sample/cuda/places.cuh"

namespace plait {

// Arguments of append_unique(). Pointers are to memory of the GPU.
template <class Places>
struct AppendUnique {
  Places places;
  const HopCounts* counts;       // of this hop
  const std::uint32_t* offsets;  // of its targets
  typename Places::Slot* slots;  // by edge
  std::uint32_t* neighbours;     // by edge: receives the number of its source
  std::uint32_t* bits;           // one per 32 edges
  std::uint32_t* before;    // first edges before each word of `bits`, one per word and one more
  std::uint64_t* vertices;  // receives the ids of new vertices, at their numbers
  std::uint32_t* trees;     // of the same, or null
  HopCounts* edges_of;      // `counts`, to which the number of edges is written
  bool last;                // hop: the places are not needed any more
  bool all_targets;         // the next hop's targets are all vertices, not the new ones
};

// Enqueues the marking of first edges: writes `bits`, and places to `neighbours`.
template <class Places>
void mark_first_edges(const AppendUnique<Places>& a, std::uint64_t edge_bound, cudaStream_t stream);
// Enqueues the writing of numbers and new vertices. Needs `before`, for which the host scans
// FirstCounts. Writes edges_of[0].edges, and edges_of[1] but its edges.
template <class Places>
void write_numbers(const AppendUnique<Places>& a, std::uint64_t edge_bound, cudaStream_t stream);

// Returns the first edges in a word of bits; 0 behind the last word.
struct FirstCounts {
  const HopCounts* counts;
  const std::uint32_t* offsets;
  const std::uint32_t* bits;

  __device__ std::uint32_t operator()(std::uint32_t word) const {
    const std::uint64_t edges = offsets[counts->targets];
    return word * std::uint64_t{32} < edges ? __popc(bits[word]) : 0;
  }
};

// Returns the words of bits that so many edges need.
constexpr std::uint64_t words_of(std::uint64_t edges) { return (edges + 31) / 32; }

// Enqueues the entry of all vertices that were found before the hop, at most `most`, in places.
template <class Places>
void enter_vertices(const Places& places, const std::uint64_t* vertices, const std::uint32_t* trees,
                    const HopCounts* counts, std::uint64_t most, cudaStream_t stream);
// Enqueues the first counts and, in disjoint samples, the trees of the seeds.
void begin_counts(HopCounts* counts, std::uint32_t seeds, std::uint32_t* trees,
                  cudaStream_t stream);
// Enqueues the copy of seeds on the GPU to `to`, with 0 in place of those that are no vertices;
// `bad` becomes the least place of one.
void checked_seeds(const std::uint64_t* seeds, std::uint64_t count, std::uint64_t vertices,
                   std::uint64_t* to, unsigned long long* bad, cudaStream_t stream);
// Enqueues the removal of the vertices of a sample from places of this form.
template <VertexId V>
void forget_vertices(const DirectPlaces<V>& places, const std::uint64_t* vertices,
                     const HopCounts* counts, std::uint64_t most, cudaStream_t stream);

}  // namespace plait
