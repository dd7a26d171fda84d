// Checks of what samplers are given, for the CPU, the GPU and the oracle.
#pragma once

#include "plait/sample/neighbours.h"

namespace plait {

// Throw what NeighbourSampler's constructor and sample() throw.
void check_sampler(const AnyCsr& graph, const SampleSettings& settings, const SampleValues& values);
// `vertices` and `edges` are the graph's; `timed`: it has times.
void check_seeds(std::uint64_t vertices, std::uint64_t edges, bool timed,
                 std::span<const std::uint64_t> seeds, std::span<const std::int64_t> times);
// Throws UsageError "WHAT 3 is 9, outside 0..5" unless all ids are vertices.
void check_ids(const char* what, std::uint64_t vertices, std::span<const std::uint64_t> ids);
// Throws this error for the id at a place.
[[noreturn]] void throw_bad_id(const char* what, std::uint64_t place, std::uint64_t id,
                               std::uint64_t vertices);
// The parts of check_sampler() that need neither the graph nor its values.
void check_settings(std::uint64_t vertices, const SampleSettings& settings);
// Throws UsageError unless hop `hop` of the settings can be sampled alone.
void check_hop(const SampleSettings& settings, std::size_t hop);
void check_weights(std::uint64_t edges, std::span<const float> weights);
void check_times(const SampleSettings& settings, bool timed, bool weighted, std::uint64_t edges);

// Throws DoesNotFitError unless so much memory is free. Less than 64 MiB is not worth the question.
void require_large_memory(std::uint64_t bytes, const char* what);
// Throws DoesNotFitError unless a sample may have so many seeds and edges.
void check_sample_size(std::uint64_t seeds, std::uint64_t edges);

}  // namespace plait
