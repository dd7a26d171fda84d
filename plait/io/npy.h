// NumPy's .npy: one array, preceded by a line that describes it.
//
//   bytes                      content
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

// The type of an element.
struct NpyType {
  char kind = 'f';         // b bool, i signed, u unsigned, f floating, S byte string
  std::uint64_t size = 4;  // bytes per element

  // Booleans count as integers; only byte strings are no numbers. text() is as NumPy writes it:
  // "f4".
  bool is_integer() const { return kind == 'i' || kind == 'u' || kind == 'b'; }
  bool is_number() const { return kind != 'S'; }
  std::string text() const { return fmt::format("{}{}", kind, size); }
  bool operator==(const NpyType&) const = default;
};

// Returns the type of arrays of T.
template <class T>
constexpr NpyType npy_type() {
  return {std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u', sizeof(T)};
}

// An array in the bytes of a file.
struct NpyArray {
  NpyType type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  // empty: a single element
  std::span<const std::byte> data;   // into the bytes that were parsed; of any alignment
  std::string name;                  // for messages: the file, or the file and the member

  // Returns the product of the shape, which parse_npy has found to fit the data.
  std::uint64_t size() const { return type.size == 0 ? 0 : data.size() / type.size; }
  // Returns the number of dimensions.
  std::uint64_t rank() const { return shape.size(); }
  // Returns "(2, 5)".
  std::string shape_text() const;
};

// Returns a view of the array in `bytes`. Takes no memory except for the shape. Throws an
// InputError that names `name`.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name);

// Reads stored elements as they lie: operator()(i) returns element i in the stored type T.
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

// Calls use(load) with the NpyLoad of the array's type; `use` is instantiated for every type of
// number. The array must hold numbers.
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

// The values allowed for integers.
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

// Returns the slice as integers, each checked to lie in the range, which T must be able to hold; or
// as float, which rounds numbers of more than 24 bits. Throws an InputError that names the element
// and its value, or says that the array holds no integers.
template <class T>
Buffer<T> npy_integers(const NpyArray& array, NpySlice slice, NpyRange range);
// The same for all elements.
template <class T>
Buffer<T> npy_integers(const NpyArray& array, NpyRange range) {
  return npy_integers<T>(array, {.count = array.size()}, range);
}

// Returns the largest element, 0 if there is none. Throws InputError for a negative one.
std::uint64_t npy_largest_id(const NpyArray& array);

// Returns all numbers as they lie, in single precision. Aligned singles are not copied: the result
// then keeps `owner`, who owns the data. Throws InputError for numbers that are not finite.
Array<float> npy_floats(const NpyArray& array, std::shared_ptr<const void> owner);

// A dense matrix, row major.
struct NpyMatrix {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Array<float> values;
};

// Read a matrix from two dimensions in either order, or one (width 1), of f4 or f8. Throw
// InputError for other shapes and types, and as npy_floats().
NpyMatrix npy_matrix(const NpyArray& array, std::shared_ptr<const void> owner);
NpyMatrix read_npy_matrix(const std::string& path);

// Returns the edges of integers of shape (2, E): row 0 the sources, row 1 the targets. The number
// of vertices is `vertices`, or if that is 0 the largest id + 1. Throws InputError for an id
// outside.
AnyEdgeList npy_edges(const NpyArray& array, std::uint64_t vertices = 0);

// Returns the number of vertices if nothing but the edges tells it: largest id + 1. Since memory is
// taken for every vertex, ids that leave most of them without an edge are an InputError.
std::uint64_t vertices_of_ids(std::uint64_t largest, std::uint64_t edges, const std::string& name);

// Returns the bytes before the data: C order, version 1.
std::string npy_header(NpyType type, std::span<const std::uint64_t> shape);

// Writes an array in C order. Throws Error if the shape does not fit `values`. The caller commits
// the file.
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
