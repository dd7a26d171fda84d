// The number of vertices that a file states, as in `num_nodes` or a size line. Memory is taken for
// every vertex, but no bytes of the file stand behind the count, so that it is believed only within
// a bound, or if the caller gives the same number (ReadOptions::vertices).
//
// The bound is 16 vertices per edge, beside 2^22 for which no edge is asked. Reading and building
// takes about 16 bytes per vertex, and an edge has at least 4 bytes in a file: a count takes at
// most 256 bytes per edge, and 64 MiB. Graphs with more isolated vertices are rare: E edges name at
// most 2 E vertices.
#pragma once

#include <cstdint>
#include <string>

namespace plait {

// Returns why a reader must refuse this count of a file, empty if it need not. `told` is the number
// that the caller gives, 0 if none.
std::string doubt_of_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told);
// Returns what helps in that case.
std::string remedy_of_vertices(std::uint64_t stated, std::uint64_t told);

// Throws the InputError of a file and a place in it if the count must be refused.
void require_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told,
                      const std::string& file, const std::string& place);

}  // namespace plait
