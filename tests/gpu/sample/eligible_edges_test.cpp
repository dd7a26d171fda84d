// The edges from which hops were drawn, counted on the GPU: the same numbers as on the CPU.
#include "plait/sample/cuda/eligible_edges.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "tests/support/eligible_case.h"

namespace plait {
namespace {

using test::EligibleNumbers;
using test::SampleGraph;
using test::SampleKind;
using test::SampleSeeds;

TEST(GpuEligibleEdges, AreThoseOfTheCpu) {
  test::for_draws_by_values([&](const SampleGraph& g, const SampleKind& kind, auto fanouts) {
    const bool wide = kind.replace;
    SCOPED_TRACE(kind.name());
    const AnyCsr here = g.with_ids_of(wide);
    const SampleSettings settings = kind.settings(fanouts);
    const SampleValues values = kind.values(g);
    const GpuGraph there(here);
    const GpuValues values_there(here, settings, values);
    const GpuNeighbourSampler sampler(there.csr(), settings, values_there.view());
    GpuSampleBuffers buffers;
    const SampleSeeds seeds(g.graph.vertices(), 30, kind.timed());
    const GpuSample& found = sampler.sample(seeds.ids, 4, buffers, nullptr, seeds.times);
    const Sample sample = to_host(found);
    for (std::size_t h = 0; h < sample.hops.size(); ++h) {
      const std::uint64_t targets = sample.hops[h].targets();
      const bool again = kind.replace && fanouts[h] != -1;
      DeviceArray<std::uint64_t> counts(targets + 1);
      DeviceArray<float> means(targets + 1);
      gpu_eligible_edges(there.csr(), values_there.view(), {found, found.hops[h], again},
                         {counts.data(), means.data()}, nullptr);
      EligibleNumbers wanted(targets);
      eligible_edges(here, values, {sample, sample.hops[h], seeds.times, again}, wanted.arrays());
      const auto counts_here = counts.to_host();
      const auto means_here = means.to_host();
      for (std::uint64_t t = 0; t < targets; ++t) {
        ASSERT_EQ(counts_here[t], wanted.counts[t]) << t;
        ASSERT_NEAR(means_here[t], wanted.means[t], 1e-6 * wanted.means[t]) << t;
      }
    }
  });
}

}  // namespace
}  // namespace plait
