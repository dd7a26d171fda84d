// The elements of .npy arrays as the numbers, matrices and edges that they stand for.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/io/npy.h"

namespace plait {
namespace {

constexpr std::size_t kConvertedGrain = std::size_t{1} << 18;
constexpr std::uint64_t kWorthConverting = std::uint64_t{64} << 20;  // bytes

// Returns the name of element i of the data, as it lies, in the array: "element (1, 17)".
std::string element_text(const NpyArray& array, std::uint64_t i) {
  std::vector<std::uint64_t> index(array.rank());
  for (std::size_t k = 0; k < index.size(); ++k) {
    const std::size_t dimension = array.fortran_order ? k : index.size() - 1 - k;
    index[dimension] = i % array.shape[dimension];
    i /= array.shape[dimension];
  }
  return fmt::format("element ({})", fmt::join(index, ", "));
}

[[noreturn]] void fail_integer(const NpyArray& array, std::uint64_t i, const std::string& value,
                               NpyRange range) {
  const bool low = range.low == 0 && value.starts_with('-');
  throw InputError(array.name, element_text(array, i),
                   range.high == std::numeric_limits<std::uint64_t>::max() && low
                       ? fmt::format("value {} is negative", value)
                       : fmt::format("value {} is outside {}..{}", value, range.low, range.high),
                   "correct the value, or the sizes of the arrays beside it");
}

void require_integers(const NpyArray& array) {
  if (!array.type.is_integer())
    throw InputError(array.name, "header",
                     fmt::format("elements of type {} where integers belong", array.type.text()),
                     "save it as integers");
}

void take_memory(const NpyArray& array, std::uint64_t bytes) {
  if (bytes >= kWorthConverting) require_memory(bytes, array.name);
}

}  // namespace

template <class T>
Buffer<T> npy_integers(const NpyArray& array, NpySlice slice, NpyRange range) {
  require_integers(array);
  take_memory(array, slice.count * sizeof(T));
  Buffer<T> out(slice.count);
  visit_npy(array, [&](auto load) {
    using Value = typename decltype(load)::Value;
    if constexpr (std::is_integral_v<Value>) {
      const auto outside = [&](Value value) {
        return std::cmp_less(value, range.low) || std::cmp_greater(value, range.high);
      };
      // With no way out of the loop and a known stride, the compiler uses vectors.
      const auto convert = [&](auto stride) {
        parallel_blocks(slice.count, kConvertedGrain, [&](std::size_t begin, std::size_t end) {
          bool wrong = false;
          for (std::size_t k = begin; k < end; ++k) {
            const Value value = load(slice.first + k * stride);
            wrong |= outside(value);
            out[k] = static_cast<T>(value);
          }
          if (!wrong) return;
          for (std::uint64_t k = begin;; ++k)
            if (const std::uint64_t i = slice.first + k * stride; outside(load(i)))
              fail_integer(array, i, fmt::to_string(load(i)), range);
        });
      };
      if (slice.stride == 1)
        convert(std::integral_constant<std::uint64_t, 1>());
      else
        convert(slice.stride);
    }
  });
  return out;
}

template Buffer<std::uint8_t> npy_integers(const NpyArray&, NpySlice, NpyRange);
template Buffer<std::int32_t> npy_integers(const NpyArray&, NpySlice, NpyRange);
template Buffer<std::uint32_t> npy_integers(const NpyArray&, NpySlice, NpyRange);
template Buffer<std::int64_t> npy_integers(const NpyArray&, NpySlice, NpyRange);
template Buffer<std::uint64_t> npy_integers(const NpyArray&, NpySlice, NpyRange);
template Buffer<float> npy_integers(const NpyArray&, NpySlice, NpyRange);

std::uint64_t npy_largest_id(const NpyArray& array) {
  require_integers(array);
  std::atomic<std::uint64_t> largest{0};
  visit_npy(array, [&](auto load) {
    using Value = typename decltype(load)::Value;
    if constexpr (std::is_integral_v<Value>)
      parallel_blocks(array.size(), kConvertedGrain, [&](std::size_t begin, std::size_t end) {
        std::uint64_t mine = 0;
        for (std::size_t i = begin; i < end; ++i) {
          const Value value = load(i);
          if (std::cmp_less(value, 0)) [[unlikely]]
            fail_integer(array, i, fmt::to_string(value), {});
          mine = std::max(mine, static_cast<std::uint64_t>(value));
        }
        std::uint64_t seen = largest.load();
        while (mine > seen && !largest.compare_exchange_weak(seen, mine)) {
        }
      });
  });
  return largest;
}

Array<float> npy_floats(const NpyArray& array, std::shared_ptr<const void> owner) {
  if (!array.type.is_number())
    throw InputError(array.name, "header",
                     fmt::format("elements of type {} where numbers belong", array.type.text()),
                     "save it as float32");
  const bool in_place = array.type == npy_type<float>() &&
                        reinterpret_cast<std::uintptr_t>(array.data.data()) % alignof(float) == 0;
  Buffer<float> copy;
  if (!in_place) {
    take_memory(array, array.size() * sizeof(float));
    copy = Buffer<float>(array.size());
  }
  visit_npy(array, [&](auto load) {
    using Value = typename decltype(load)::Value;
    parallel_blocks(array.size(), kConvertedGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Value value = load(i);
        if constexpr (std::is_floating_point_v<Value>) {
          // The condition is written so that a NaN fails, too.
          if (!(std::abs(value) <= std::numeric_limits<float>::max())) [[unlikely]]
            throw InputError(
                array.name, element_text(array, i),
                fmt::format("value {} is not a finite number of single precision", value),
                "replace or drop such values");
        }
        if (!in_place) copy[i] = static_cast<float>(value);
      }
    });
  });
  if (!in_place) return copy;
  return Array<float>(std::move(owner), {reinterpret_cast<const float*>(array.data.data()),
                                         static_cast<std::size_t>(array.size())});
}

NpyMatrix npy_matrix(const NpyArray& array, std::shared_ptr<const void> owner) {
  if (array.type.kind != 'f' || array.rank() < 1 || array.rank() > 2)
    throw InputError(array.name, "header",
                     fmt::format("shape {} of {} where f4 or f8 of one or two dimensions belong",
                                 array.shape_text(), array.type.text()),
                     "save it as a float32 matrix of one row per vertex");
  NpyMatrix matrix{array.shape[0], array.rank() == 2 ? array.shape[1] : 1, {}};
  matrix.values = npy_floats(array, std::move(owner));
  if (array.fortran_order && array.rank() == 2 && !matrix.values.empty()) {
    Buffer<float> rows(matrix.values.size());
    parallel_blocks(matrix.rows, 1024, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t j = 0; j < matrix.width; ++j)
          rows[i * matrix.width + j] = matrix.values[j * matrix.rows + i];
    });
    matrix.values = std::move(rows);
  }
  return matrix;
}

NpyMatrix read_npy_matrix(const std::string& path) {
  const auto file = MappedFile::open(path);
  return npy_matrix(parse_npy(file->bytes(), path), file);
}

std::uint64_t vertices_of_ids(std::uint64_t largest, std::uint64_t edges, const std::string& name) {
  // E edges touch at most 2 E vertices; some more may be isolated.
  constexpr std::uint64_t kIsolated = std::uint64_t{1} << 17;
  if (largest >= 2 * edges + kIsolated)
    throw InputError(name, "ids",
                     fmt::format("the largest id is {}, but {} edges touch at most {} vertices",
                                 largest, edges, 2 * edges),
                     "number the vertices without gaps, or give their number where the format can");
  return edges == 0 ? 0 : largest + 1;
}

AnyEdgeList npy_edges(const NpyArray& array, std::uint64_t vertices) {
  require_integers(array);
  if (array.rank() != 2 || array.shape[0] != 2)
    throw InputError(array.name, "header",
                     fmt::format("shape {} where (2, number of edges) belongs", array.shape_text()),
                     "save sources and targets as the two rows of one integer array");
  const std::uint64_t edges = array.size() / 2;
  if (vertices == 0) vertices = vertices_of_ids(npy_largest_id(array), edges, array.name);
  const NpyRange range{0, vertices == 0 ? 0 : vertices - 1};
  // In Fortran order the pairs lie together.
  const std::uint64_t stride = array.fortran_order ? 2 : 1;
  const NpySlice sources{0, edges, stride};
  const NpySlice targets{array.fortran_order ? 1 : edges, edges, stride};
  const auto fill = [&]<VertexId V>(EdgeList<V> list) -> AnyEdgeList {
    list.vertices = vertices;
    list.source = npy_integers<V>(array, sources, range);
    list.target = npy_integers<V>(array, targets, range);
    return list;
  };
  if (vertices <= kMaxVertices32) return fill(EdgeList<std::uint32_t>());
  return fill(EdgeList<std::uint64_t>());
}

}  // namespace plait
