// Lists of vertices that a user gives, by the graph's own numbers: a .npy file with one dimension
// of integers, or a text with one number per line, in which empty lines and lines that begin with #
// do not count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plait {

// Returns the vertices in the order of the file; they may repeat. Throws InputError with the place
// of a number that is not below `vertices`, for a list without vertices, and for another content.
std::vector<std::uint64_t> read_vertex_list(const std::string& path, std::uint64_t vertices);

}  // namespace plait
