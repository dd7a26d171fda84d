#include "plait/io/attach.h"

#include <utility>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/graph/renumber.h"
#include "plait/io/npy.h"
#include "plait/io/npz_archive.h"
#include "plait/io/scipy.h"

namespace plait {
namespace {

bool is_zip(const MappedFile& file) { return file.text().starts_with("PK"); }

// Returns the array of one of these names, or the only array.
NpzMember the_array(const NpzArchive& archive, std::span<const std::string> names) {
  std::string key;
  if (const auto found = archive.find_first(names, key)) return *found;
  const std::vector<std::string> keys = archive.keys();
  if (keys.size() == 1) return archive.get(keys[0]);
  throw InputError(archive.file(), "archive",
                   fmt::format("it holds {} arrays, and none is {}", keys.size(), names[0]),
                   "save the array as " + names[0]);
}

// Opens an array and tells the owner of its memory.
NpzMember open_array(const std::shared_ptr<const MappedFile>& file,
                     std::span<const std::string> names, std::shared_ptr<const void>& owner) {
  if (is_zip(*file)) {
    NpzMember member = the_array(NpzArchive(file->bytes(), file->path()), names);
    owner = member.owner;
    return member;
  }
  owner = file;
  return {nullptr, parse_npy(file->bytes(), file->path())};
}

Features read_sparse(const NpzArchive& archive, std::uint64_t vertices) {
  const MatrixShape shape = read_shape(archive, "shape");
  if (shape.rows != vertices) return {shape.rows, shape.columns, {}, {}, {}};
  if (shape.columns > kMaxVertices32)
    archive.fail("shape", fmt::format("{} columns are more than {}", shape.columns, kMaxVertices32),
                 "drop columns that are not used");
  return {shape.rows, shape.columns, {}, {}, read_scipy_features(archive, shape)};
}

Features read_features(const std::string& path, std::uint64_t vertices) {
  const auto file = MappedFile::open(path);
  if (is_zip(*file)) {
    const NpzArchive archive(file->bytes(), path);
    if (archive.has("format")) return read_sparse(archive, vertices);
  }
  std::shared_ptr<const void> owner;
  const NpzMember member = open_array(file, kFeatureKeys, owner);
  NpyMatrix matrix = npy_matrix(member.array, owner);
  return {matrix.rows, matrix.width, std::move(matrix.values), {}, {}};
}

}  // namespace

void attach_features(Dataset& dataset, const std::string& path) {
  Features features = read_features(path, dataset.vertices());
  if (features.rows != dataset.vertices() || features.width == 0)
    throw InputError(path, "shape",
                     fmt::format("{} rows of {} columns where {} vertices are", features.rows,
                                 features.width, dataset.vertices()),
                     "give one row per vertex");
  dataset.features =
      dataset.numbers.empty() ? std::move(features) : in_order(features, dataset.numbers);
}

Array<float> read_weights(const std::string& path, std::uint64_t edges) {
  const auto file = MappedFile::open(path);
  std::shared_ptr<const void> owner;
  const NpzMember member = open_array(file, kWeightKeys, owner);
  if (!member.is_vector(edges))
    throw InputError(path, "shape",
                     fmt::format("{} where ({},) belongs: one number for each edge of the file",
                                 member.array.shape_text(), edges),
                     "give them in the order of the edges");
  return npy_floats(member.array, owner);
}

}  // namespace plait
