#include "plait/sample/check.h"

#include <cmath>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/sample/draw.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 18;
constexpr std::size_t kMostHops = 256;  // a draw has 8 bits for the hop

void check_length(std::size_t found, std::uint64_t wanted, const char* name, const char* of) {
  require<UsageError>(found == 0 || found == wanted, "there are {} {}, but the graph has {} {}",
                      found, name, wanted, of);
}

void check_degrees(const AnyCsr& graph) {
  std::visit(
      [](const auto& csr) {
        const std::size_t bad = first_where(
            csr.vertices(), kGrain, [&](std::size_t i) { return csr.degree(i) > kMostWeighted; });
        if (bad < csr.vertices())
          throw UsageError(
              fmt::format("vertex {} has {} edges; draws by weight without replacement "
                          "are made from at most {}",
                          bad, csr.degree(bad), kMostWeighted));
      },
      graph);
}

}  // namespace

void check_settings(std::uint64_t vertices, const SampleSettings& settings) {
  require<DoesNotFitError>(vertices < kMaxVertices32,
                           "the graph has {} vertices; samples are taken of graphs with at most {}",
                           vertices, kMaxVertices32 - 1);
  const std::span<const std::int64_t> fanouts = settings.fanouts;
  require<UsageError>(fanouts.size() <= kMostHops, "there are {} fan-outs; at most {} are allowed",
                      fanouts.size(), kMostHops);
  for (std::size_t hop = 0; hop < fanouts.size(); ++hop) {
    const std::int64_t fanout = fanouts[hop];
    require<UsageError>(
        fanout == -1 || (fanout >= 1 && static_cast<std::uint64_t>(fanout) <= kMostFanout),
        "fan-out {} of hop {} is outside 1..{}; use -1 for all edges", fanout, hop, kMostFanout);
  }
}

void check_hop(const SampleSettings& settings, std::size_t hop) {
  require<UsageError>(hop < settings.fanouts.size() && !settings.disjoint,
                      "hop {} of {} cannot be sampled alone", hop, settings.fanouts.size());
}

void check_weights(std::uint64_t edges, std::span<const float> weights) {
  check_length(weights.size(), edges, "weights", "edges");
  const std::size_t bad = first_where(weights.size(), kGrain, [&](std::size_t e) {
    return !(std::isfinite(weights[e]) && weights[e] >= 0);
  });
  if (bad < weights.size())
    throw UsageError(fmt::format("the weight of edge {} is {}; weights must be finite and >= 0",
                                 bad, weights[bad]));
}

// A graph without edges has an empty array of their times.
void check_times(const SampleSettings& settings, bool timed, bool weighted, std::uint64_t edges) {
  require<UsageError>(!timed || settings.disjoint,
                      "times need disjoint samples, because each seed has a time of its own");
  if (settings.time != TimeRule::last) return;
  require<UsageError>(timed || edges == 0,
                      "the latest edges can be taken only if edges or vertices have times");
  require<UsageError>(!settings.replace, "the latest edges cannot be taken with replacement");
  require<UsageError>(!weighted, "the latest edges cannot be taken by weight");
}

void check_sampler(const AnyCsr& graph, const SampleSettings& settings,
                   const SampleValues& values) {
  const std::uint64_t vertices = vertex_count(graph), edges = edge_count(graph);
  check_settings(vertices, settings);
  check_weights(edges, values.weights);
  check_length(values.edge_times.size(), edges, "times of edges", "edges");
  check_length(values.vertex_times.size(), vertices, "times of vertices", "vertices");
  check_times(settings, values.timed(), !values.weights.empty(), edges);
  if (!values.weights.empty() && !settings.replace) check_degrees(graph);
}

void check_ids(const char* what, std::uint64_t vertices, std::span<const std::uint64_t> ids) {
  const std::size_t bad =
      first_where(ids.size(), kGrain, [&](std::size_t i) { return ids[i] >= vertices; });
  if (bad < ids.size()) throw_bad_id(what, bad, ids[bad], vertices);
}

void throw_bad_id(const char* what, std::uint64_t place, std::uint64_t id, std::uint64_t vertices) {
  const std::string allowed = vertices > 0 ? fmt::format("outside 0..{}", vertices - 1)
                                           : "an id where there are no vertices";
  throw UsageError(
      fmt::format("{} {} is {}, {}", what, place, static_cast<std::int64_t>(id), allowed));
}

void check_seeds(std::uint64_t vertices, std::uint64_t edges, bool timed,
                 std::span<const std::uint64_t> seeds, std::span<const std::int64_t> times) {
  check_ids("seed", vertices, seeds);
  check_sample_size(seeds.size(), 0);
  require<UsageError>(timed || times.empty() || edges == 0,
                      "the seeds have times, but neither edges nor vertices have any");
  require<UsageError>(!timed || times.size() == seeds.size(),
                      "there are {} times of seeds, but {} seeds; give one for each", times.size(),
                      seeds.size());
}

void require_large_memory(std::uint64_t bytes, const char* what) {
  if (bytes > std::uint64_t{1} << 26) require_memory(bytes, what, available_memory());
}

void check_sample_size(std::uint64_t seeds, std::uint64_t edges) {
  require<DoesNotFitError>(seeds + edges < kMaxVertices32,
                           "the sample would have {} seeds and {} edges; at most {} together are "
                           "possible, so take fewer seeds or smaller fan-outs",
                           seeds, edges, kMaxVertices32 - 1);
}

}  // namespace plait
