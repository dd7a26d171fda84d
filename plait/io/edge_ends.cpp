#include "plait/io/edge_ends.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/io/npy.h"

namespace plait {

std::optional<EndKeys> ends_of(const NpzArchive& archive) {
  for (const EndKeys& keys : {EndKeys{"src", "dst"}, EndKeys{"row", "col", true}})
    if (archive.has(keys.source) && archive.has(keys.target)) return keys;
  return std::nullopt;
}

std::uint64_t count_named(const NpzArchive& archive, const EndKeys& keys) {
  const NpzMember source = archive.get(keys.source), target = archive.get(keys.target);
  const std::uint64_t largest =
      std::max(npy_largest_id(source.array), npy_largest_id(target.array));
  return source.array.size() == 0 ? 0 : largest + 1;
}

AnyEdgeList edges_of_ends(const NpzArchive& archive, const EndKeys& keys, std::uint64_t vertices) {
  if (vertices == 0) {
    const std::uint64_t named = count_named(archive, keys);
    if (named > 0)
      vertices = vertices_of_ids(named - 1, archive.get(keys.source).array.size(), archive.file());
  }
  const auto ids = [&]<VertexId V>(const std::string& key, Buffer<V>& out) {
    const NpzMember member = archive.get(key);
    archive.require_shape(key, member, member.rank() == 1, "(number of edges,)");
    out = npy_integers<V>(member.array, NpyRange{0, vertices == 0 ? 0 : vertices - 1});
  };
  const auto read = [&]<VertexId V>(EdgeList<V> list) -> AnyEdgeList {
    list.vertices = vertices;
    ids(keys.source, list.source);
    ids(keys.target, list.target);
    if (list.source.size() != list.target.size())
      archive.fail(keys.target,
                   fmt::format("it has {} elements beside {} of {}", list.target.size(),
                               list.source.size(), keys.source),
                   "give both ends of every edge");
    return list;
  };
  if (vertices <= kMaxVertices32) return read(EdgeList<std::uint32_t>());
  return read(EdgeList<std::uint64_t>());
}

}  // namespace plait
