#include "plait/io/vertex_count.h"

#include "plait/base/error.h"
#include "plait/base/setting.h"

namespace plait {

std::string doubt_of_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told) {
  constexpr std::uint64_t kFree = std::uint64_t{1} << 22, kPerEdge = 16;
  if (told != 0)
    return stated == told
               ? ""
               : fmt::format("{} vertices, where {} says {}", stated, setting("vertices"), told);
  if (stated <= kFree || (stated - kFree - 1) / kPerEdge < edges) return "";
  return fmt::format("{} vertices are far more than the {} that {} edges can name", stated,
                     2 * edges, edges);
}

std::string remedy_of_vertices(std::uint64_t stated, std::uint64_t told) {
  if (told != 0) return "leave out " + setting("vertices") + ": the file states the number";
  return "if the number is right, give " + setting("vertices", fmt::to_string(stated));
}

void require_vertices(std::uint64_t stated, std::uint64_t edges, std::uint64_t told,
                      const std::string& file, const std::string& place) {
  if (const std::string doubt = doubt_of_vertices(stated, edges, told); !doubt.empty())
    throw InputError(file, place, doubt, remedy_of_vertices(stated, told));
}

}  // namespace plait
