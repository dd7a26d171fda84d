#include "plait/io/times.h"

#include <limits>

#include "plait/graph/renumber.h"
#include "plait/io/npy.h"

namespace plait {
namespace {

Array<std::int64_t> read_times(const std::string& path, std::uint64_t count, const char* of) {
  const auto file = MappedFile::open(path);
  const NpyArray array = parse_npy(file->bytes(), path);
  if (array.rank() != 1 || array.size() != count)
    throw InputError(path, "header",
                     fmt::format("shape {} where ({},) belongs, for the graph has so many {}",
                                 array.shape_text(), count, of),
                     "save one time for each");
  constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();
  return npy_integers<std::int64_t>(array, {.low = std::numeric_limits<std::int64_t>::min(),
                                            .high = static_cast<std::uint64_t>(kLatest)});
}

}  // namespace

Array<std::int64_t> read_vertex_times(const std::string& path, const Dataset& dataset) {
  return vertex_values_in_order(dataset, read_times(path, dataset.vertices(), "vertices"));
}

Array<std::int64_t> read_edge_times(const std::string& path, const Dataset& dataset) {
  return edge_values_in_order(dataset, read_times(path, dataset.edges(), "edges"));
}

}  // namespace plait
