// Writing .plait containers.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/io/container.h"
#include "plait/io/container_sections.h"

namespace plait {
namespace {

using namespace container;

class Writer {
 public:
  explicit Writer(const Dataset& dataset) : dataset_(dataset), contents_(contents_of(dataset)) {
    for (const Content& content : contents_)
      sections_.push_back({content.kind, content.element, 0, content.bytes.size(), 0});
  }

  void write(AtomicFile& file) {
    parallel_for(sections_.size(),
                 [&](std::size_t i) { sections_[i].checksum = checksum_of(contents_[i].bytes); });
    file.write(header());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      static constexpr std::byte kZeros[kAlignment] = {};
      file.write(Bytes(kZeros).first(sections_[i].begin - file.size()));
      file.write(contents_[i].bytes);
    }
  }

 private:
  std::string header() {
    const std::string name = printable(dataset_.name.substr(0, kLongestName));
    const std::size_t table_bytes = sections_.size() * sizeof(Section);
    Header header;
    std::memcpy(header.mark, kContainerMark.data(), sizeof header.mark);
    header.header_bytes = static_cast<std::uint32_t>(sizeof(Header) + table_bytes + name.size());
    header.version = version();
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
    header.checksum = checksum_of(std::as_bytes(std::span(bytes.data(), bytes.size())));
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  // The earliest that knows all sections.
  std::uint32_t version() const {
    if (!dataset_.numbers.empty()) return 3;
    return dataset_.label_sets.empty() && !dataset_.is_set_of_graphs() ? 1 : 2;
  }

  const Dataset& dataset_;
  const std::vector<Content> contents_;
  std::vector<Section> sections_;  // of the contents
};

}  // namespace

void write_container(const Dataset& dataset, AtomicFile& file) {
  require(dataset.vertices() > 0, "a graph without vertices cannot be written");
  Writer(dataset).write(file);
}

}  // namespace plait
