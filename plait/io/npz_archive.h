// The arrays of a .npz archive, and sparse matrices made of them, for the readers of its kinds.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/io/npy.h"
#include "plait/io/zip_archive.h"

namespace plait {

// An array of the archive, unpacked, and the memory in which it lies.
struct NpzMember {
  std::shared_ptr<const Buffer<std::byte>> owner;
  NpyArray array;

  std::uint64_t rank() const { return array.rank(); }
  // The first and the last extent; 0 for an array without elements, because no bytes of the file
  // then back what the shape promises.
  std::uint64_t rows() const { return backed() ? array.shape.front() : 0; }
  std::uint64_t columns() const { return backed() ? array.shape.back() : 0; }
  bool is_vector(std::uint64_t size) const { return rank() == 1 && array.shape[0] == size; }

 private:
  bool backed() const { return rank() > 0 && array.size() > 0; }
};

// The arrays of one archive, by name. Members throw an InputError that names the file and the
// array.
class NpzArchive {
 public:
  // `bytes` must outlive the archive. Throws InputError, also for what torch.save writes, which is
  // another archive.
  NpzArchive(std::span<const std::byte> bytes, const std::string& file);

  const std::string& file() const { return file_; }
  bool has(const std::string& key) const { return zip_.members().contains(key + ".npy"); }
  // Returns the names of all arrays, without ".npy".
  std::vector<std::string> keys() const;
  // Unpacks an array. get() throws if it is missing, find() returns nothing.
  NpzMember get(const std::string& key) const;
  std::optional<NpzMember> find(const std::string& key) const {
    return has(key) ? std::optional(get(key)) : std::nullopt;
  }
  // Returns the array with one of these names, and sets `key` to it: the first that is there. The
  // others stay unread.
  std::optional<NpzMember> find_first(std::span<const std::string> names, std::string& key) const;
  // Returns the names of the members that were never unpacked, nor mentioned, in words; empty if
  // there are none.
  std::string unread() const;
  // Notes that a warning has named an array.
  void mention(const std::string& key) const { seen_.insert(key); }
  // Throws the InputError of an array.
  [[noreturn]] void fail(const std::string& key, const std::string& problem,
                         const std::string& remedy) const;
  // Throws unless `right`. `wanted` is the shape in words: "(vertices, width)".
  void require_shape(const std::string& key, const NpzMember& member, bool right,
                     const std::string& wanted) const;

 private:
  ZipReader zip_;
  std::string file_;
  mutable std::set<std::string> seen_;  // keys
};

// Returns "a, b, c"; of many names the first 20, and how many others there are.
std::string listed(const std::vector<std::string>& names);

// Names of features and of weights in archives; the first is Plait's own.
inline const std::vector<std::string> kFeatureKeys{"x",     "features",  "feature",      "feat",
                                                   "feats", "node_feat", "node_features"};
inline const std::vector<std::string> kWeightKeys{"edge_weight", "edge_weights", "weights",
                                                  "weight"};

// Throws the InputError of a file that torch.save has written.
[[noreturn]] void fail_pytorch(const std::string& file);

// Returns "(5,)".
std::string vector_text(std::uint64_t size);

// Returns the number in an array of one element.
std::uint64_t read_count(const NpzArchive& archive, const std::string& key);

// The shape of a matrix.
struct MatrixShape {
  std::uint64_t rows, columns;
};
// Reads an array of two numbers.
MatrixShape read_shape(const NpzArchive& archive, const std::string& key);

// The names of three arrays that are a sparse matrix.
struct CsrKeys {
  std::string indptr, indices, data;
};
// Reads a sparse matrix, and checks all of it. Throws InputError.
template <VertexId V>
Csr<V> read_csr(const NpzArchive& archive, const CsrKeys& keys, MatrixShape shape);

// Reads the same without its data.
template <VertexId V>
Csr<V> read_pattern(const NpzArchive& archive, const CsrKeys& keys, MatrixShape shape);

}  // namespace plait
