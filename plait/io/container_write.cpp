// Writing .plait containers.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/io/container.h"
#include "plait/io/container_layout.h"

namespace plait {
namespace {

using namespace container;

class Writer {
 public:
  explicit Writer(const Dataset& dataset) : dataset_(dataset) {
    const Features& features = dataset.features;
    std::visit(
        [&](const auto& graph) {
          add(Kind::offsets, graph.offsets);
          add(Kind::neighbours, graph.neighbours);
          if (graph.weighted()) add(Kind::weights, graph.weights);
        },
        dataset.graph);
    if (features.is_sparse()) {
      add(Kind::feature_offsets, features.sparse.offsets);
      add(Kind::feature_columns, features.sparse.neighbours);
      add(Kind::feature_values, features.sparse.weights);
    } else if (!features.bf16.empty()) {
      add(Kind::features, features.bf16);
    } else if (!features.empty()) {
      add(Kind::features, features.f32);
    }
    if (!dataset.labels.empty()) add(Kind::labels, dataset.labels);
    if (!dataset.splits.empty()) add(Kind::splits, dataset.splits);
    if (!dataset.original_ids.empty()) add(Kind::original_ids, dataset.original_ids);
    if (!dataset.label_sets.empty()) add(Kind::label_sets, dataset.label_sets);
    if (!dataset.graph_ids.empty()) add(Kind::graph_ids, dataset.graph_ids);
  }

  void write(AtomicFile& file) {
    parallel_for(sections_.size(),
                 [&](std::size_t i) { sections_[i].checksum = checksum_of(content_[i]); });
    file.write(header());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      static constexpr std::byte kZeros[kAlignment] = {};
      file.write(Bytes(kZeros).first(sections_[i].begin - file.size()));
      file.write(content_[i]);
    }
  }

 private:
  template <class T>
  void add(Kind kind, const Array<T>& array) {
    const Bytes bytes = std::as_bytes(array.span());
    sections_.push_back({kind, element_of<T>(), 0, bytes.size(), 0});
    content_.push_back(bytes);
  }

  // Control characters would break the lines in which a name is shown.
  static std::string fit_name(std::string name) {
    name.resize(std::min(name.size(), kLongestName));
    for (char& c : name)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
    return name;
  }

  std::string header() {
    const std::string name = fit_name(dataset_.name);
    const std::size_t table_bytes = sections_.size() * sizeof(Section);
    Header header;
    std::memcpy(header.mark, kContainerMark.data(), sizeof header.mark);
    header.header_bytes = static_cast<std::uint32_t>(sizeof(Header) + table_bytes + name.size());
    header.version = dataset_.label_sets.empty() && !dataset_.is_set_of_graphs() ? 1 : 2;
    header.graphs = dataset_.graphs;
    header.vertices = dataset_.vertices();
    header.edges = dataset_.edges();
    header.width = dataset_.features.width;
    header.classes = static_cast<std::uint32_t>(dataset_.classes);
    header.split_count = dataset_.split_count;
    header.flags = dataset_.symmetric ? kSymmetric : 0;
    header.section_count = static_cast<std::uint32_t>(sections_.size());
    header.name_bytes = static_cast<std::uint32_t>(name.size());
    header.file_bytes = header.header_bytes;
    for (Section& section : sections_) {
      section.begin = aligned(header.file_bytes);
      header.file_bytes = section.begin + section.bytes;
    }
    std::string bytes(sizeof(Header) + table_bytes, '\0');
    std::memcpy(bytes.data() + sizeof(Header), sections_.data(), table_bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += name;
    header.checksum = XXH3_64bits(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  const Dataset& dataset_;
  std::vector<Section> sections_;
  std::vector<Bytes> content_;
};

}  // namespace

void write_container(const Dataset& dataset, AtomicFile& file) {
  require(dataset.vertices() > 0, "a graph without vertices cannot be written");
  Writer(dataset).write(file);
}

}  // namespace plait
