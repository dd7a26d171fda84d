#include "plait/io/gnnadvisor.h"

#include <memory>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/io/edge_ends.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/vertex_count.h"

namespace plait {

AnyEdgeList parse_gnnadvisor(const NpzArchive& archive, std::uint64_t told) {
  const std::uint64_t vertices = read_count(archive, "num_nodes");
  if (vertices == 0)
    archive.fail("num_nodes", "the graph has no vertices", "give at least one vertex");
  AnyEdgeList edges = edges_of_ends(archive, {"src_li", "dst_li"}, vertices);
  const auto count = std::visit([](const auto& list) { return list.edges(); }, edges);
  require_vertices(vertices, count, told, archive.file(), "array num_nodes");
  return edges;
}

void write_gnnadvisor(const Dataset& dataset, AtomicFile& file) {
  require(!is_weighted(dataset.graph),
          "{}: GNNAdvisor's archives hold no weights; use {} or another format", file.path(),
          setting("no-weights"));
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
