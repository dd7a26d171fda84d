#include "plait/io/vertex_count.h"

#include "plait/base/error.h"

namespace plait {

std::string doubt_of_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told) {
  constexpr std::uint64_t kFree = std::uint64_t{1} << 22, kPerEdge = 16;
  if (told != 0)
    return stated == told ? "" : fmt::format("{} vertices, where --vertices says {}", stated, told);
  if (stated <= kFree || (stated - kFree - 1) / kPerEdge < edges) return "";
  return fmt::format("{} vertices are far more than the {} that {} edges can name", stated,
                     2 * edges, edges);
}

std::string remedy_of_vertices(std::uint64_t stated, std::uint64_t told) {
  if (told != 0) return "leave out --vertices: the file states the number";
  return fmt::format("if the number is right, give --vertices {0}, or vertices={0} in Python",
                     stated);
}

void require_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told,
                      const std::string& file, const std::string& place) {
  if (const std::string doubt = doubt_of_vertices(stated, edges, told); !doubt.empty())
    throw InputError(file, place, doubt, remedy_of_vertices(stated, told));
}

}  // namespace plait
