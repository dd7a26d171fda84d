#include "plait/io/npz_archive.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

namespace {

constexpr std::string_view kEnding = ".npy";

std::string key_of(const std::string& member) {
  return member.ends_with(kEnding) ? member.substr(0, member.size() - kEnding.size()) : member;
}

}  // namespace

NpzArchive::NpzArchive(std::span<const std::byte> bytes, const std::string& file)
    : zip_(bytes, file), file_(file) {
  for (const auto& [name, number] : zip_.members())
    if (name == "data.pkl" || name.ends_with("/data.pkl")) fail_pytorch(file);
}

std::vector<std::string> NpzArchive::keys() const {
  std::vector<std::string> keys;
  for (const auto& [name, number] : zip_.members())
    if (name.ends_with(kEnding)) keys.push_back(name.substr(0, name.size() - kEnding.size()));
  return keys;
}

void fail_pytorch(const std::string& file) {
  throw InputError(file, "archive",
                   "it is a pickle, as torch.save writes for PyTorch, and Plait never unpickles",
                   "in Python, load it with torch.load and write numpy.savez('graph.npz', "
                   "edge_index=data.edge_index, x=data.x, y=data.y)");
}

NpzMember NpzArchive::get(const std::string& key) const {
  const auto found = zip_.members().find(key + ".npy");
  seen_.insert(key);
  if (found == zip_.members().end())
    fail(key, "it is missing", "write the archive with all of its arrays");
  auto bytes = std::make_shared<const Buffer<std::byte>>(zip_.inflate(found->second));
  return {bytes, parse_npy(bytes->span(), fmt::format("{}: array {}", file_, key))};
}

std::optional<NpzMember> NpzArchive::find_first(std::span<const std::string> names,
                                                std::string& key) const {
  for (const std::string& name : names)
    if (has(name)) return get(key = name);
  return std::nullopt;
}

std::string NpzArchive::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, number] : zip_.members())
    if (const std::string key = key_of(name); !seen_.contains(key)) names.push_back(key);
  return listed(names);
}

void NpzArchive::fail(const std::string& key, const std::string& problem,
                      const std::string& remedy) const {
  throw InputError(file_, "array " + key, problem, remedy);
}

void NpzArchive::require_shape(const std::string& key, const NpzMember& member, bool right,
                               const std::string& wanted) const {
  if (!right)
    fail(key, fmt::format("shape {} where {} belongs", member.array.shape_text(), wanted),
         "write the array with that shape");
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(names.size(), kMost));
  return fmt::format(
      "{}{}", fmt::join(first, ", "),
      names.size() > kMost ? fmt::format(" and {} others", names.size() - kMost) : "");
}

std::string vector_text(std::uint64_t size) { return fmt::format("({},)", size); }

std::uint64_t read_count(const NpzArchive& archive, const std::string& key) {
  const NpzMember member = archive.get(key);
  archive.require_shape(key, member, member.rank() <= 1 && member.array.size() == 1, "() or (1,)");
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  return npy_integers<std::uint64_t>(member.array, NpyRange{0, kLargest})[0];
}

MatrixShape read_shape(const NpzArchive& archive, const std::string& key) {
  const NpzMember member = archive.get(key);
  archive.require_shape(key, member, member.is_vector(2), "(2,)");
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto shape = npy_integers<std::uint64_t>(member.array, NpyRange{0, kLargest});
  return {shape[0], shape[1]};
}

template <VertexId V>
Csr<V> read_pattern(const NpzArchive& archive, const CsrKeys& keys, MatrixShape shape) {
  Csr<V> csr;
  {
    const NpzMember indices = archive.get(keys.indices);
    archive.require_shape(keys.indices, indices, indices.rank() == 1, "(number of entries,)");
    if (shape.columns == 0 && indices.array.size() > 0)
      archive.fail(keys.indices, "it has entries though the matrix has no columns",
                   "correct the shape");
    const std::uint64_t largest = shape.columns == 0 ? 0 : shape.columns - 1;
    csr.neighbours = npy_integers<V>(indices.array, NpyRange{0, largest});
  }
  const NpzMember indptr = archive.get(keys.indptr);
  archive.require_shape(keys.indptr, indptr, indptr.is_vector(shape.rows + 1),
                        vector_text(shape.rows + 1));
  csr.offsets = npy_integers<EdgeOffset>(indptr.array, NpyRange{0, csr.edges()});
  if (csr.offsets[0] != 0 || csr.offsets.back() != csr.edges() ||
      !std::is_sorted(csr.offsets.begin(), csr.offsets.end()))
    archive.fail(keys.indptr,
                 fmt::format("it does not rise from 0 to the number of entries, {}", csr.edges()),
                 "write the archive anew");
  return csr;
}

template <VertexId V>
Csr<V> read_csr(const NpzArchive& archive, const CsrKeys& keys, MatrixShape shape) {
  Csr<V> csr = read_pattern<V>(archive, keys, shape);
  const NpzMember data = archive.get(keys.data);
  archive.require_shape(keys.data, data, data.is_vector(csr.edges()), vector_text(csr.edges()));
  csr.weights = npy_floats(data.array, data.owner);
  return csr;
}

template Csr32 read_pattern(const NpzArchive&, const CsrKeys&, MatrixShape);
template Csr64 read_pattern(const NpzArchive&, const CsrKeys&, MatrixShape);
template Csr32 read_csr(const NpzArchive&, const CsrKeys&, MatrixShape);
template Csr64 read_csr(const NpzArchive&, const CsrKeys&, MatrixShape);

}  // namespace plait
