#include "plait/reorder/dendrogram.h"

#include <algorithm>
#include <numeric>

namespace plait {
namespace {

// Returns what each parent's place becomes if its children follow those of the parents before it.
std::vector<std::uint64_t> first_children(const std::vector<std::uint32_t>& parents,
                                          const std::vector<std::uint64_t>& place) {
  std::vector<std::uint64_t> begin(place.size() + 1);
  for (const std::uint32_t parent : parents) ++begin[place[parent] + 1];
  for (std::size_t p = 0; p < place.size(); ++p) begin[p + 1] += begin[p];
  return begin;
}

}  // namespace

std::vector<std::uint64_t> depth_first_places(const Dendrogram& dendrogram) {
  const std::vector<std::uint32_t>& top = dendrogram.back();
  const std::size_t tops = top.empty() ? 0 : std::size_t{std::ranges::max(top)} + 1;
  std::vector<std::uint64_t> place(tops);  // of each community of a level among its level
  std::iota(place.begin(), place.end(), std::uint64_t{0});
  for (std::size_t level = dendrogram.size(); level-- > 0;) {
    const std::vector<std::uint32_t>& parents = dendrogram[level];
    std::vector<std::uint64_t> next = first_children(parents, place);
    std::vector<std::uint64_t> places(parents.size());
    for (std::size_t c = 0; c < parents.size(); ++c) places[c] = next[place[parents[c]]]++;
    place = std::move(places);
  }
  return place;
}

std::vector<std::uint32_t> communities_of_level(const Dendrogram& dendrogram, std::size_t level) {
  std::vector<std::uint32_t> labels = dendrogram[0];
  for (std::size_t k = 1; k <= level; ++k)
    for (std::uint32_t& label : labels) label = dendrogram[k][label];
  return labels;
}

}  // namespace plait
