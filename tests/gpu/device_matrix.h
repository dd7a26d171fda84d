// A CSR matrix and rows of features on the GPU, for tests.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <random>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/kernels/cuda/row_groups.cuh"
#include "plait/kernels/cuda/spmm.cuh"

namespace plait::test {

struct DeviceCsr {
  explicit DeviceCsr(const Csr32& graph)
      : offsets(graph.offsets.span()),
        columns(graph.neighbours.span()),
        weights(graph.weights.span()),
        rows(graph.vertices()) {}
  const EdgeOffset* begin() const { return offsets.data(); }
  const EdgeOffset* end() const { return offsets.data() + 1; }

  DeviceArray<EdgeOffset> offsets;
  DeviceArray<Slot> columns;
  DeviceArray<float> weights;
  std::uint64_t rows;
};

// Values are small multiples of 1/8: exact in every type, and so are their sums in fp32.
inline std::vector<float> exact_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8;
  return values;
}

inline std::vector<std::byte> stored_as(DType type, std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const to = bytes.data() + i * size_of(type);
    const auto put = [&](auto value) { std::memcpy(to, &value, sizeof(value)); };
    if (type == DType::f32) put(values[i]);
    if (type == DType::bf16) put(__float2bfloat16(values[i]));
    if (type == DType::f16) put(__float2half(values[i]));
  }
  return bytes;
}

inline std::vector<float> read_as(DType type, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto get = [&]<class T>(T value) {
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      return static_cast<float>(value);
    };
    values[i] = type == DType::f32    ? get(0.0f)
                : type == DType::bf16 ? get(__nv_bfloat16{})
                                      : get(__half{});
  }
  return values;
}

}  // namespace plait::test
