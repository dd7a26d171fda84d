// Checks of what samplers are given, for the CPU, the GPU and the oracle.
#pragma once

#include "plait/sample/neighbours.h"

namespace plait {

// Throw what NeighbourSampler's constructor and sample() throw.
void check_sampler(const AnyCsr& graph, const SampleSettings& settings, const SampleValues& values);
void check_seeds(const AnyCsr& graph, std::span<const std::uint64_t> seeds,
                 const SampleValues& values, std::span<const std::int64_t> times);

// Throws DoesNotFitError unless a sample may have so many seeds and edges.
void check_sample_size(std::uint64_t seeds, std::uint64_t edges);

}  // namespace plait
