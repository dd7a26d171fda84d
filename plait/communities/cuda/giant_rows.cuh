// Local moves of the few rows with the most entries, by many blocks each. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/communities/cuda/gains.cuh"
#include "plait/communities/cuda/on_stream.cuh"

namespace plait {

inline constexpr std::uint32_t kMostGiants = 64;  // more rows would wait for each other

// Owns an array of sums by label for each of the rows that move at once.
class GiantRows {
 public:
  // `rows`: `count` rows of the graph, in memory of the GPU. Waits for the stream. Throws
  // DoesNotFitError.
  GiantRows(const WeightedRows& graph, const std::uint32_t* rows, std::uint32_t count,
            cudaStream_t stream);

  // Moves those rows whose turn it is. Does not wait.
  void move(const Moves& moves);

 private:
  struct Row {
    std::uint32_t row, vertex;
  };

  cudaStream_t stream_;
  std::vector<Row> rows_;
  DeviceArray<Count> sums_;
  DeviceArray<Best> best_of_blocks_;
};

}  // namespace plait
