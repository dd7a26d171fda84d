#include "plait/sample/cooperative.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "plait/base/all_to_all.h"
#include "plait/base/error.h"

namespace plait {
namespace {

constexpr std::uint32_t kNoTarget = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::uint64_t SharedRows::received() const {
  return std::accumulate(received_from.begin(), received_from.end(), std::uint64_t{0});
}

void check_cooperative(const SampleSettings& settings) {
  require<UsageError>(
      settings.targets == HopTargets::all && !settings.disjoint,
      "batches that ranks sample together have all vertices as targets of each hop, "
      "and are not disjoint");
}

CooperativeTargets::CooperativeTargets(std::uint64_t vertices, const Partition& partition, int rank,
                                       Channel& channel)
    : partition_(partition), rank_(rank), channel_(channel) {
  require<UsageError>(
      vertices == partition.vertices() && rank >= 0 && rank < partition.parts(),
      "a partition of {} vertices into {} parts does not suit a graph of {} and rank {}",
      partition.vertices(), partition.parts(), vertices, rank);
  numbers_ = Buffer<std::uint32_t>(partition.size(rank), kNoTarget);
}

bool CooperativeTargets::owns(std::uint64_t vertex) const {
  return vertex < partition_.vertices() && partition_.owner(vertex) == rank_;
}

// Returns the number of an own vertex, which is the next one if the vertex is new.
std::uint32_t CooperativeTargets::number_of(std::uint64_t vertex) {
  std::uint32_t& number = numbers_[partition_.row(vertex)];
  if (number == kNoTarget) {
    vertices_.push_back(vertex);
    number = static_cast<std::uint32_t>(vertices_.size() - 1);
  }
  return number;
}

void CooperativeTargets::begin(std::span<const std::uint64_t> seeds) {
  for (const std::uint64_t v : vertices_) numbers_[partition_.row(v)] = kNoTarget;
  vertices_.clear();
  for (const std::uint64_t seed : seeds) {
    require<UsageError>(owns(seed), "seed {} is no vertex of rank {}", seed, rank_);
    number_of(seed);
  }
  require<UsageError>(vertices_.size() == seeds.size(), "a seed is given twice");
}

SharedRows CooperativeTargets::share(std::span<const std::uint64_t> inputs) {
  const auto ranks = static_cast<std::size_t>(partition_.parts());
  const std::size_t before = vertices_.size();
  SharedRows rows{.sent_to = std::vector<std::uint64_t>(ranks),
                  .received_from = std::vector<std::uint64_t>(ranks)};
  std::vector<std::vector<std::uint64_t>> wanted(ranks);
  // Own rows have their places at once; the others are their owner's, and have them once it is
  // known how many own rows there are.
  rows.places.resize(inputs.size());
  std::vector<std::pair<std::size_t, int>> others;  // inputs and their owners
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int owner = i < before ? rank_ : partition_.owner(inputs[i]);
    if (owner == rank_) {
      rows.places[i] = i < before ? i : number_of(inputs[i]);
    } else {
      wanted[static_cast<std::size_t>(owner)].push_back(inputs[i]);
      others.emplace_back(i, owner);
    }
  }
  const std::vector<std::vector<std::uint64_t>> asked = exchange_vectors(channel_, wanted);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const std::uint64_t v : asked[r]) {
      require(owns(v), "rank {} asks rank {} for vertex {}, which is another rank's", r, rank_, v);
      rows.sent.push_back(number_of(v));
    }
    rows.sent_to[r] = asked[r].size();
    rows.received_from[r] = wanted[r].size();
  }
  rows.own = vertices_.size();
  // Rows are received in the order in which they were asked for.
  std::vector<std::uint64_t> next(ranks);
  std::exclusive_scan(rows.received_from.begin(), rows.received_from.end(), next.begin(), rows.own);
  for (const auto& [i, owner] : others) rows.places[i] = next[static_cast<std::size_t>(owner)]++;
  return rows;
}

struct CooperativeSampler::State {
  CooperativeTargets targets;
  const NeighbourSampler sampler;
  const std::unique_ptr<NeighbourSampler::Workspace> workspace;

  State(CooperativeTargets own, const AnyCsr& graph, const SampleSettings& settings,
        const SampleValues& values)
      : targets(std::move(own)), sampler(graph, settings, values), workspace(sampler.workspace()) {}
};

CooperativeSampler::CooperativeSampler(const AnyCsr& graph, const SampleSettings& settings,
                                       const SampleValues& values, const Partition& partition,
                                       int rank, Channel& channel) {
  check_cooperative(settings);
  state_ = std::make_unique<State>(
      CooperativeTargets(vertex_count(graph), partition, rank, channel), graph, settings, values);
}

CooperativeSampler::~CooperativeSampler() = default;

std::vector<CooperativeHop> CooperativeSampler::sample(std::span<const std::uint64_t> seeds,
                                                       std::uint64_t key) {
  State& s = *state_;
  s.targets.begin(seeds);
  std::vector<CooperativeHop> hops;
  const std::size_t all = s.sampler.settings().fanouts.size();
  for (std::size_t h = 0; h < all; ++h) {
    CooperativeHop hop{s.sampler.sample_hop(h, s.targets.vertices(), key, *s.workspace), {}};
    if (h + 1 < all) hop.rows = s.targets.share(hop.sample.vertices);
    hops.push_back(std::move(hop));
  }
  return hops;
}

}  // namespace plait
