#include "plait/io/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "plait/base/checksum.h"
#include "plait/base/parallel.h"
#include "plait/io/container_sections.h"

namespace plait {
namespace {

std::uint64_t checksum_in(const Dataset& dataset, container::Bytes bytes) {
  const auto known = std::ranges::find_if(dataset.checked, [&](const CheckedArray& array) {
    return array.bytes.data() == bytes.data() && array.bytes.size() == bytes.size();
  });
  return known != dataset.checked.end() ? known->checksum : checksum_of(bytes);
}

}  // namespace

Fingerprint fingerprint(const Dataset& dataset) {
  const std::vector<container::Content> contents = container::contents_of(dataset);
  std::vector<std::uint64_t> checksums(contents.size());
  parallel_for(contents.size(),
               [&](std::size_t i) { checksums[i] = checksum_in(dataset, contents[i].bytes); });
  Fingerprint facts{{"the number of vertices", fmt::to_string(dataset.vertices())},
                    {"the number of edges", fmt::to_string(dataset.edges())},
                    {"the feature width", fmt::to_string(dataset.features.width)},
                    {"the number of classes", fmt::to_string(dataset.classes)},
                    {"the number of splits", fmt::to_string(dataset.split_count)},
                    {"the number of graphs", fmt::to_string(dataset.graphs)},
                    {"being symmetric", dataset.symmetric ? "yes" : "no"}};
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto& [kind, element, bytes] = contents[i];
    facts.emplace_back(fmt::format("the checksum of its {}",
                                   container::kKindNames[static_cast<std::size_t>(kind)]),
                       fmt::format("{} ({} bytes of {})", checksum_text(checksums[i]), bytes.size(),
                                   container::name_of(element)));
  }
  return facts;
}

std::string graph_checksum(const Dataset& dataset) {
  using container::Kind;
  std::string text;
  for (const auto& [kind, element, bytes] : container::contents_of(dataset))
    if (kind == Kind::offsets || kind == Kind::neighbours || kind == Kind::weights)
      text += fmt::format("{} {} {}\n", checksum_text(checksum_in(dataset, bytes)), bytes.size(),
                          container::name_of(element));
  return checksum_text(checksum_of(std::as_bytes(std::span(text))));
}

}  // namespace plait
