#include "plait/sample/cooperative.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr std::uint32_t kNoTarget = std::numeric_limits<std::uint32_t>::max();

// The own targets of a batch so far, each once, in the order in which they were found.
class OwnTargets {
 public:
  // `numbers` has a place for each own vertex. All are kNoTarget, and will be again.
  OwnTargets(std::span<std::uint32_t> numbers, const Partition& partition, int rank)
      : numbers_(numbers), partition_(partition), rank_(rank) {}
  ~OwnTargets() {
    for (const std::uint64_t v : vertices_) numbers_[partition_.row(v)] = kNoTarget;
  }
  OwnTargets(const OwnTargets&) = delete;
  OwnTargets& operator=(const OwnTargets&) = delete;

  bool owns(std::uint64_t vertex) const {
    return vertex < partition_.vertices() && partition_.owner(vertex) == rank_;
  }
  // Returns the number of an own vertex, which is the next one if the vertex is new.
  std::uint32_t number_of(std::uint64_t vertex) {
    std::uint32_t& number = numbers_[partition_.row(vertex)];
    if (number == kNoTarget) {
      vertices_.push_back(vertex);
      number = static_cast<std::uint32_t>(vertices_.size() - 1);
    }
    return number;
  }
  std::span<const std::uint64_t> vertices() const { return vertices_; }

 private:
  const std::span<std::uint32_t> numbers_;
  const Partition& partition_;
  const int rank_;
  std::vector<std::uint64_t> vertices_;
};

}  // namespace

std::uint64_t SharedRows::received() const {
  return std::accumulate(received_from.begin(), received_from.end(), std::uint64_t{0});
}

struct CooperativeSampler::State {
  const Partition& partition;
  const int rank;
  Channel& channel;
  const NeighbourSampler sampler;
  const std::unique_ptr<NeighbourSampler::Workspace> workspace;
  Buffer<std::uint32_t> numbers;  // OwnTargets has the meaning

  State(const AnyCsr& graph, const SampleSettings& settings, const SampleValues& values,
        const Partition& p, int own, Channel& c)
      : partition(p),
        rank(own),
        channel(c),
        sampler(graph, settings, values),
        workspace(sampler.workspace()),
        numbers(p.size(own), kNoTarget) {}

  // Collective. Makes the inputs of a hop that other ranks own, and the vertices of this rank that
  // are inputs elsewhere, targets of the next hop.
  SharedRows share(const Sample& sample, OwnTargets& targets) const {
    const auto ranks = static_cast<std::size_t>(partition.parts());
    SharedRows rows{.sent_to = std::vector<std::uint64_t>(ranks),
                    .received_from = std::vector<std::uint64_t>(ranks)};
    std::vector<std::vector<std::uint64_t>> wanted(ranks);
    for (const std::uint64_t v : sample.vertices) {
      if (targets.owns(v))
        targets.number_of(v);
      else
        wanted[static_cast<std::size_t>(partition.owner(v))].push_back(v);
    }
    const std::vector<std::vector<std::uint64_t>> asked = channel.all_to_all(wanted);
    for (std::size_t r = 0; r < ranks; ++r) {
      for (const std::uint64_t v : asked[r]) {
        require(targets.owns(v), "rank {} asks rank {} for vertex {}, which is another rank's", r,
                rank, v);
        rows.sent.push_back(targets.number_of(v));
      }
      rows.sent_to[r] = asked[r].size();
      rows.received_from[r] = wanted[r].size();
    }
    rows.own = targets.vertices().size();
    rows.places = places(sample, targets, rows);
    return rows;
  }

  // Rows are received in the order in which they were asked for.
  RawVector<std::uint64_t> places(const Sample& sample, OwnTargets& targets,
                                  const SharedRows& rows) const {
    std::vector<std::uint64_t> next(rows.received_from.size());
    std::exclusive_scan(rows.received_from.begin(), rows.received_from.end(), next.begin(),
                        rows.own);
    RawVector<std::uint64_t> places;
    places.reserve(sample.vertices.size());
    for (const std::uint64_t v : sample.vertices)
      places.push_back(targets.owns(v) ? targets.number_of(v)
                                       : next[static_cast<std::size_t>(partition.owner(v))]++);
    return places;
  }
};

CooperativeSampler::CooperativeSampler(const AnyCsr& graph, const SampleSettings& settings,
                                       const SampleValues& values, const Partition& partition,
                                       int rank, Channel& channel) {
  require<UsageError>(
      settings.targets == HopTargets::all && !settings.disjoint,
      "batches that ranks sample together have all vertices as targets of each hop, "
      "and are not disjoint");
  require<UsageError>(
      vertex_count(graph) == partition.vertices() && rank >= 0 && rank < partition.parts(),
      "a partition of {} vertices into {} parts does not suit a graph of {} and "
      "rank {}",
      partition.vertices(), partition.parts(), vertex_count(graph), rank);
  state_ = std::make_unique<State>(graph, settings, values, partition, rank, channel);
}

CooperativeSampler::~CooperativeSampler() = default;

std::vector<CooperativeHop> CooperativeSampler::sample(std::span<const std::uint64_t> seeds,
                                                       std::uint64_t key) {
  State& s = *state_;
  OwnTargets targets(s.numbers.span(), s.partition, s.rank);
  for (const std::uint64_t seed : seeds) {
    require<UsageError>(targets.owns(seed), "seed {} is no vertex of rank {}", seed, s.rank);
    targets.number_of(seed);
  }
  require<UsageError>(targets.vertices().size() == seeds.size(), "a seed is given twice");
  std::vector<CooperativeHop> hops;
  const std::size_t all = s.sampler.settings().fanouts.size();
  for (std::size_t h = 0; h < all; ++h) {
    CooperativeHop hop{s.sampler.sample_hop(h, targets.vertices(), key, *s.workspace), {}};
    if (h + 1 < all) hop.rows = s.share(hop.sample, targets);
    hops.push_back(std::move(hop));
  }
  return hops;
}

}  // namespace plait
