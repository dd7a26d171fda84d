#include "plait/io/gnnadvisor.h"

#include <memory>

#include "plait/base/error.h"
#include "plait/io/edges_of_csr.h"

namespace plait {

AnyEdgeList parse_gnnadvisor(const NpzArchive& archive) {
  const std::uint64_t vertices = read_count(archive, "num_nodes");
  if (vertices == 0)
    archive.fail("num_nodes", "the graph has no vertices", "give at least one vertex");
  const auto ids = [&]<VertexId V>(const std::string& key, Buffer<V>& out) {
    const NpzMember member = archive.get(key);
    archive.require_shape(key, member, member.rank() == 1, "(number of edges,)");
    out = npy_integers<V>(member.array, NpyRange{0, vertices - 1});
  };
  const auto read = [&]<VertexId V>(EdgeList<V> list) -> AnyEdgeList {
    list.vertices = vertices;
    ids("src_li", list.source);
    ids("dst_li", list.target);
    if (list.source.size() != list.target.size())
      archive.fail("dst_li",
                   fmt::format("it has {} elements beside {} of src_li", list.target.size(),
                               list.source.size()),
                   "give both ends of every edge");
    return list;
  };
  if (vertices <= kMaxVertices32) return read(EdgeList<std::uint32_t>());
  return read(EdgeList<std::uint64_t>());
}

void write_gnnadvisor(const Dataset& dataset, AtomicFile& file) {
  require(!is_weighted(dataset.graph),
          "{}: GNNAdvisor's archives hold no weights; use --no-weights or another format",
          file.path());
  const std::uint64_t count = dataset.vertices();
  ZipWriter zip(true);
  std::visit(
      [&]<VertexId V>(const Csr<V>& graph) {
        const NpyType type{sizeof(V) == 8 || count <= std::uint64_t{1} << 31 ? 'i' : 'u',
                           sizeof(V)};
        const std::string header = npy_header(type, std::vector{graph.edges()});
        const auto targets = std::make_shared<Buffer<V>>(graph.edges());
        fill_rows(graph, targets->data());
        zip.add("src_li.npy", header, std::as_bytes(graph.neighbours.span()));
        zip.add("dst_li.npy", header, std::as_bytes(targets->span()), targets);
      },
      dataset.graph);
  zip.add("num_nodes.npy", npy_header({'i', 8}, {}), std::as_bytes(std::span(&count, 1)));
  zip.write(file);
}

}  // namespace plait
