// NumPy's .npy: one array, preceded by a line that describes it.
//
//   bytes                      what
//   0..5                       \x93NUMPY
//   6, 7                       version: 1, 2 or 3, and 0
//   8..9 (v1), 8..11 (v2, v3)  length of the header, little-endian
//   header                     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//                              then spaces and a line feed, so that the data begin at 64 k bytes
//   data                       the elements, the last index running fastest, or the first in
//                              Fortran order; exactly to the end of the file
//
// Numbers (b1, i1..i8, u1..u8, f4, f8, little-endian) and byte strings are read. Python objects,
// which are pickles, are refused, and so is everything else.
#pragma once

#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/graph/edge_list.h"

namespace plait {

struct NpyType {
  char kind = 'f';         // b bool, i signed, u unsigned, f floating, S byte string
  std::uint64_t size = 4;  // bytes an element

  bool is_integer() const { return kind == 'i' || kind == 'u' || kind == 'b'; }
  bool is_number() const { return kind != 'S'; }
  std::string text() const { return fmt::format("{}{}", kind, size); }
  bool operator==(const NpyType&) const = default;
};

template <class T>
constexpr NpyType npy_type() {
  return {std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u', sizeof(T)};
}

struct NpyArray {
  NpyType type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  // empty: a single element
  std::span<const std::byte> data;   // into the bytes that were parsed; of any alignment
  std::string name;                  // for messages: the file, or the file and the member

  // The product of the shape, which parse_npy has found to fit the data.
  std::uint64_t size() const { return type.size == 0 ? 0 : data.size() / type.size; }
  std::uint64_t rank() const { return shape.size(); }
  // "(2, 5)"
  std::string shape_text() const;
};

// Takes no memory but for the shape. Throws InputError.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name);

// The stored elements as they lie, converted on the way. `load(i)` has the stored type;
// visit_npy(array, [&](auto load) { ... }) is instantiated for every type of number.
template <class T>
struct NpyLoad {
  using Value = T;
  const std::byte* data;
  T operator()(std::uint64_t i) const {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  }
};

template <class Use>
decltype(auto) visit_npy(const NpyArray& array, Use&& use) {
  const std::byte* data = array.data.data();
  const auto [kind, size] = array.type;
  if (kind == 'f') return size == 4 ? use(NpyLoad<float>{data}) : use(NpyLoad<double>{data});
  if (kind == 'i') {
    if (size == 1) return use(NpyLoad<std::int8_t>{data});
    if (size == 2) return use(NpyLoad<std::int16_t>{data});
    if (size == 4) return use(NpyLoad<std::int32_t>{data});
    return use(NpyLoad<std::int64_t>{data});
  }
  if (size == 1) return use(NpyLoad<std::uint8_t>{data});  // b1 too
  if (size == 2) return use(NpyLoad<std::uint16_t>{data});
  if (size == 4) return use(NpyLoad<std::uint32_t>{data});
  return use(NpyLoad<std::uint64_t>{data});
}

// Values allowed for integers.
struct NpyRange {
  std::int64_t low = 0;
  std::uint64_t high = std::numeric_limits<std::uint64_t>::max();
};

// Elements first, first + stride, ... of the data as it lies.
struct NpySlice {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
};

// The slice as integers, each checked to lie in the range, which T must be able to hold; or as
// float, which rounds those of more than 24 bits. Throws InputError naming the element and its
// value; or that the array holds no integers.
template <class T>
Buffer<T> npy_integers(const NpyArray& array, NpySlice slice, NpyRange range);
template <class T>
Buffer<T> npy_integers(const NpyArray& array, NpyRange range) {
  return npy_integers<T>(array, {.count = array.size()}, range);
}

// The largest element, 0 if there is none. Throws InputError for a negative one.
std::uint64_t npy_largest_id(const NpyArray& array);

// All numbers as they lie, in single precision. No copy is made of aligned singles: the result
// then keeps `owner`, who owns the data. Throws InputError for what is not finite.
Array<float> npy_floats(const NpyArray& array, std::shared_ptr<const void> owner);

// A dense matrix, row major.
struct NpyMatrix {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Array<float> values;
};

// From two dimensions in either order, or one (width 1), of f4 or f8.
NpyMatrix npy_matrix(const NpyArray& array, std::shared_ptr<const void> owner);
NpyMatrix read_npy_matrix(const std::string& path);

// Integers of shape (2, E): row 0 the sources, row 1 the targets. The number of vertices is
// `vertices`, or if that is 0 the largest id + 1. Throws InputError for an id outside.
AnyEdgeList npy_edges(const NpyArray& array, std::uint64_t vertices = 0);

// The number of vertices when nothing but the edges tells it: largest id + 1. Since memory is
// taken for every vertex, ids that leave most of them without an edge are an InputError.
std::uint64_t vertices_of_ids(std::uint64_t largest, std::uint64_t edges, const std::string& name);

// What stands before the data: C order, version 1.
std::string npy_header(NpyType type, std::span<const std::uint64_t> shape);

template <class T>
void write_npy(AtomicFile& file, std::span<const std::uint64_t> shape, std::span<const T> values) {
  std::uint64_t size = 1;
  for (const std::uint64_t extent : shape) size *= extent;
  require(size == values.size(), "an array of {} elements cannot be written with a shape of {}",
          values.size(), size);
  file.write(npy_header(npy_type<T>(), shape));
  file.write(std::as_bytes(values));
}

}  // namespace plait
