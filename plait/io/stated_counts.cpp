#include "plait/io/stated_counts.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "plait/io/container.h"
#include "plait/io/container_layout.h"

namespace plait {

std::optional<GraphCounts> stated_counts(const std::string& path) {
  using namespace container;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return {};
  std::ifstream file(path, std::ios::binary);
  Header header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  const std::uint64_t bytes = std::filesystem::file_size(path, none);
  if (std::string_view(header.mark, sizeof header.mark) != kContainerMark ||
      header.version > kVersion || header.file_bytes != bytes || header.section_count > kKinds ||
      header.vertices > bytes || header.edges > bytes)
    return {};
  std::vector<Section> sections(header.section_count);
  const auto table = static_cast<std::streamsize>(sections.size() * sizeof(Section));
  if (!file.read(reinterpret_cast<char*>(sections.data()), table)) return {};
  GraphCounts counts{.vertices = header.vertices,
                     .edges = header.edges,
                     .symmetric = (header.flags & kSymmetric) != 0,
                     .width = header.width,
                     .classes = static_cast<std::int32_t>(header.classes),
                     .set_of_graphs = header.graphs > 0};
  for (const Section& section : sections) {
    counts.weighted |= section.kind == Kind::weights;
    counts.wide_ids |= section.kind == Kind::neighbours && section.element == Element::u64;
    counts.sparse |= section.kind == Kind::feature_offsets;
  }
  const bool dense = counts.width > 0 && !counts.sparse;
  if (counts.classes < 0 || (dense && header.vertices > bytes / counts.width)) return {};
  return counts;
}

}  // namespace plait
