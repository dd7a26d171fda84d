// Limits that several rooms share.
#pragma once

namespace plait {

// Ranks that one launcher starts, and parts of a partition.
inline constexpr int kMostRanks = 4096;
// GPUs of one host: a wait on the GPU reads the signals of all ranks by the lanes of one warp.
inline constexpr int kMostGpus = 32;
inline constexpr int kMostLayers = 64;
// Above it, the bookkeeping of OpenMP does not fit the stack.
inline constexpr int kMostThreads = 4096;

}  // namespace plait
