#include "plait/io/vertex_list.h"

#include "plait/base/error.h"
#include "plait/io/npy.h"
#include "plait/io/text.h"

namespace plait {
namespace {

std::vector<std::uint64_t> numbers_of_npy(const MappedFile& file, std::uint64_t vertices) {
  const NpyArray array = parse_npy(file.bytes(), file.path());
  const bool listed = array.rank() == 1 && array.type.kind != 'b' && array.type.is_integer();
  if (!listed)
    throw InputError(file.path(), "header",
                     fmt::format("an array of type {} and shape {} is no list of vertices",
                                 array.type.text(), array.shape_text()),
                     "save their numbers as integers, in one dimension");
  const auto numbers = npy_integers<std::uint64_t>(array, {.low = 0, .high = vertices - 1});
  return {numbers.begin(), numbers.end()};
}

std::vector<std::uint64_t> numbers_of_text(const MappedFile& file, std::uint64_t vertices) {
  const TextInput input(file.text(), file.path());
  std::vector<std::uint64_t> numbers;
  for (Cursor cursor(input.text()); cursor.next_line();) {
    if (cursor.peek() == '#') {
      cursor.skip_line();
      continue;
    }
    read_number(input, cursor, "the vertex", {0, vertices - 1}, numbers.emplace_back());
    if (!cursor.end_line())
      input.fail(cursor.at(), "there is more than one number in the line",
                 "write one vertex per line");
  }
  return numbers;
}

}  // namespace

std::vector<std::uint64_t> read_vertex_list(const std::string& path, std::uint64_t vertices) {
  require<UsageError>(vertices > 0, "{}: the graph has no vertices that can be listed", path);
  const auto file = MappedFile::open(path);
  std::vector<std::uint64_t> numbers =
      path.ends_with(".npy") ? numbers_of_npy(*file, vertices) : numbers_of_text(*file, vertices);
  if (numbers.empty())
    throw InputError(path, "the whole file", "no vertex is listed", "give one vertex or more");
  return numbers;
}

}  // namespace plait
