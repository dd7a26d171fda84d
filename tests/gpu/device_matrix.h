// A CSR matrix and rows of features on the GPU, for tests.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/kernels/cuda/edge_pass.cuh"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/kernels/edge_rows.h"

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

// The groups of passes over a matrix, of at most `most` edges each. Each row's edges are spread
// over the passes at random: of every four rows, one has all in the first pass and one all in the
// last.
struct DevicePasses {
  DevicePasses(const Csr32& graph, const DeviceCsr& csr, std::uint32_t most, std::size_t passes) {
    std::mt19937 random(17);
    std::vector<std::vector<EdgeOffset>> ends(passes);
    for (std::uint64_t row = 0; row < graph.vertices(); ++row) {
      std::vector<EdgeOffset> cuts;
      const std::uint64_t kind = random() % 4, first = graph.offsets[row],
                          edges = graph.degree(row);
      for (std::size_t pass = 1; pass < passes; ++pass)
        cuts.push_back(first + (kind == 0 ? edges : kind == 1 ? 0 : random() % (edges + 1)));
      std::ranges::sort(cuts);
      cuts.push_back(first + edges);
      for (std::size_t pass = 0; pass < passes; ++pass) ends[pass].push_back(cuts[pass]);
    }
    const EdgeOffset* begin = csr.begin();
    for (const std::vector<EdgeOffset>& end : ends) {
      ends_.emplace_back(std::span<const EdgeOffset>(end));
      groups.emplace_back(begin, ends_.back().data(), csr.rows,
                          RowGroupOptions{.most = most, .skip_empty = !groups.empty()}, nullptr);
      begin = ends_.back().data();
    }
  }

  std::vector<RowGroups> groups;  // by pass

 private:
  std::vector<DeviceArray<EdgeOffset>> ends_;
};

// A graph, cut into passes and groups.
struct Cut {
  std::uint32_t most = 2048;  // edges of a group
  std::size_t passes = 1;
};
struct CutMatrix {
  CutMatrix(const Csr32& graph, const Cut& cut)
      : csr(graph), passes(graph, csr, cut.most, cut.passes) {}
  EdgeRows edges() const {
    return {{csr.begin(), csr.rows}, {csr.end(), csr.rows}, csr.columns.data(), {}};
  }
  DeviceCsr csr;
  DevicePasses passes;
};

// Runs an operation over edges in passes, with scratch memory that holds NaN before.
template <class Operation>
void apply_in_passes(const Operation& operation, std::span<const RowGroups> passes) {
  const std::uint64_t floats = scratch_floats(operation, passes);
  DeviceArray<float> scratch(std::vector<float>(floats, std::nanf("")));
  for (std::size_t pass = 0; pass < passes.size(); ++pass)
    apply(operation, EdgePass{passes, pass}, scratch.data(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "an operation over edges");  // before the arrays go
}

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
