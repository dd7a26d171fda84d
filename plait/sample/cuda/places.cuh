// The place of a vertex in a sample, while the sample is made: one number of 32 bits per vertex.
//
// A place below `vertices` (found before the hop) is the vertex's number in the sample. A greater
// one is `vertices` + e, where e is the first edge that reached the vertex in this hop: edges write
// it by an atomic minimum, so that it does not depend on their order in time. kNoPlace: not found.
//
// Two forms, with the same members:
//   DirectPlaces  one place per vertex of the graph. Its 4 bytes per vertex are less than the CSR's
//     offsets, it is one access per edge, and up to 12 M vertices it stays in the L2 cache. A hash
//     table of a batch with 14 M possible vertices would take 32 M slots of 8 bytes, and stay in no
//     cache. So this form serves graphs of every size.
//   HashPlaces  for disjoint samples, whose vertices are pairs of tree and vertex: too many for an
//     array. Open addressing with linear probing, and at least two slots per vertex.
#pragma once

#include <cstdint>

#include "plait/base/ids.h"

namespace plait {

inline constexpr std::uint32_t kNoPlace = 0xffffffffu;

template <VertexId V>
struct DirectPlaces {
  using Slot = V;

  std::uint32_t* place;  // by slot, which is the vertex

  __device__ Slot claim(std::uint32_t, std::uint64_t vertex) const {
    return static_cast<Slot>(vertex);
  }
  __device__ std::uint64_t vertex(Slot slot) const { return slot; }
  __device__ std::uint32_t tree(Slot) const { return 0; }
};

struct HashPlaces {
  using Slot = std::uint32_t;
  using Key = unsigned long long;  // tree * vertices of the graph + vertex

  static constexpr Key kEmpty = ~Key{0};

  std::uint32_t* place;        // by slot
  Key* keys;                   // by slot
  unsigned shift;              // 64 - the logarithm of the number of slots
  std::uint64_t all_vertices;  // of the graph

  // Returns the slot of a vertex, which is taken for it if it has none.
  __device__ Slot claim(std::uint32_t tree, std::uint64_t vertex) const {
    const Key key = tree * all_vertices + vertex;
    const Slot mask = static_cast<Slot>(~std::uint64_t{0} >> shift);
    Slot slot = static_cast<Slot>((key ^ key >> 32) * 0x9E3779B97F4A7C15u >> shift);
    for (;; slot = (slot + 1) & mask) {
      Key here = keys[slot];
      if (here == kEmpty) here = atomicCAS(keys + slot, kEmpty, key);
      if (here == kEmpty || here == key) return slot;
    }
  }
  __device__ std::uint64_t vertex(Slot slot) const { return keys[slot] % all_vertices; }
  __device__ std::uint32_t tree(Slot slot) const {
    return static_cast<std::uint32_t>(keys[slot] / all_vertices);
  }
};

// Writes `place` if it is less than the place there. It is looked at first, because most edges
// reach vertices that an earlier edge has reached, and reading is cheaper; a value that is out of
// date is greater, and only costs the atomic.
template <class Places>
__device__ void lower_place(const Places& places, typename Places::Slot slot, std::uint32_t place) {
  std::uint32_t* const at = places.place + slot;
  if (__ldcg(at) > place) atomicMin(at, place);
}

}  // namespace plait
