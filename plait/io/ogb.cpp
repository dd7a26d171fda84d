#include "plait/io/ogb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"
#include "plait/io/edge_list_file.h"
#include "plait/io/gzip.h"
#include "plait/io/npz_archive.h"
#include "plait/io/text.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr double kMostLabel = std::numeric_limits<std::int32_t>::max() - 1;

// The parts of a split by the names of their files.
constexpr std::array<std::pair<const char*, Split>, 3> kParts{
    {{"train", Split::train}, {"valid", Split::validation}, {"test", Split::test}}};

// A place that may not be looked at is taken for one where nothing is: reading what is there tells
// the reason.
bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

std::string_view as_text(const Buffer<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Buffer<std::byte> unpacked(const std::string& path) {
  const auto file = MappedFile::open(path);
  return gunzip(file->bytes(), path);
}

class Folder {
 public:
  Folder(const std::string& path, std::uint64_t told) : path_(path), told_(told) {}

  ParsedDataset read() {
    if (is_there(raw("data.npz")))
      read_arrays();
    else
      read_texts();
    read_splits();
    warn_of_files();
    return std::move(parsed_);
  }

 private:
  std::string raw(const char* name) const { return path_ + "/raw/" + name; }
  void warn(const std::string& text) { parsed_.warnings.push_back(text); }
  std::uint64_t edges() const {
    return std::visit([](const auto& list) { return list.edges(); }, parsed_.edges);
  }

  // --- gzipped texts ---

  void read_texts() {
    vertices_ = read_count("num-node-list.csv.gz", kMaxVertices32);
    if (vertices_ == 0)
      throw InputError(raw("num-node-list.csv.gz"), "line 1", "the graph has no vertices",
                       "give at least one");
    const std::string edge_file = raw("edge.csv.gz");
    parsed_.edges = parse_edge_list(as_text(unpacked(edge_file)), edge_file,
                                    {.first_line = FirstLine::edge, .vertices = vertices_})
                        .edges;
    require_vertices(vertices_, edges(), told_, raw("num-node-list.csv.gz"), "line 1");
    if (is_there(raw("num-edge-list.csv.gz")) &&
        read_count("num-edge-list.csv.gz", ~std::uint64_t{0}) != edges())
      throw InputError(raw("num-edge-list.csv.gz"), "line 1",
                       fmt::format("it is not the number of edges in edge.csv.gz, {}", edges()),
                       "get both files again");
    const std::string features = raw("node-feat.csv.gz");
    if (is_there(features))
      set_features(parse_number_table(as_text(unpacked(features)), features), features);
    const std::string labels = raw("node-label.csv.gz");
    if (is_there(labels)) read_label_text(labels);
  }

  // Data of the graph in files that are not read.
  void warn_of_files() {
    static constexpr std::array kTexts{"edge.csv.gz", "num-node-list.csv.gz",
                                       "num-edge-list.csv.gz", "node-feat.csv.gz",
                                       "node-label.csv.gz"};
    static constexpr std::array kArchives{"data.npz", "node-label.npz"};
    const bool arrays = is_there(raw("data.npz"));
    std::vector<std::string> others;
    for (const auto& entry : fs::directory_iterator(path_ + "/raw")) {
      const std::string name = entry.path().filename().string();
      const bool data = name.ends_with(".csv.gz") || name.ends_with(".npz");
      const bool read = arrays ? std::ranges::find(kArchives, name) != kArchives.end()
                               : std::ranges::find(kTexts, name) != kTexts.end();
      if (data && !read) others.push_back(name);
    }
    std::ranges::sort(others);
    if (!others.empty()) warn("files of raw/ are left out: " + listed(others));
  }

  std::uint64_t read_count(const char* name, std::uint64_t most) const {
    const std::string file = raw(name);
    const auto numbers = parse_number_lines(as_text(unpacked(file)), file, most);
    if (numbers.size() != 1)
      throw InputError(
          file, "line 1",
          fmt::format("{} numbers belong to {} graphs", numbers.size(), numbers.size()),
          "give a dataset of one graph");
    return numbers[0];
  }

  void set_features(NpyMatrix matrix, const std::string& file) {
    require_rows(matrix.rows, "rows", file);
    parsed_.dataset.features = {matrix.rows, matrix.width, std::move(matrix.values), {}, {}};
  }

  void read_label_text(const std::string& file) {
    const Buffer<std::byte> bytes = unpacked(file);
    const TextInput input(as_text(bytes), file);
    if (input.text().substr(0, input.text().find('\n')).find(',') != std::string_view::npos) {
      const NpyMatrix sets = parse_number_table(input.text(), file);
      return set_label_sets(
          sets.rows, sets.width, [&](std::uint64_t i) { return double{sets.values[i]}; }, file);
    }
    std::vector<double> labels;
    for (Cursor cursor(input.text()); cursor.next_line();) {
      const char* const begin = cursor.at();
      float value = NAN;
      if ((*begin | ' ') == 'n') {
        cursor.skip_word();
      } else {
        read_weight(input, cursor, value);
      }
      if (!cursor.end_line())
        input.fail(begin, input.quote_line(begin) + " is not a label", "correct the line");
      labels.push_back(value);
    }
    set_labels(
        labels.size(), [&](std::uint64_t i) { return labels[i]; }, file);
  }

  // --- arrays ---

  void read_arrays() {
    const std::string name = raw("data.npz");
    const auto file = MappedFile::open(name);
    const NpzArchive archive(file->bytes(), name);
    vertices_ = plait::read_count(archive, "num_nodes_list");
    if (vertices_ == 0)
      archive.fail("num_nodes_list", "the graph has no vertices", "give at least one");
    parsed_.edges = npy_edges(archive.get("edge_index").array, vertices_);
    require_vertices(vertices_, edges(), told_, name, "array num_nodes_list");
    if (archive.has("num_edges_list") && plait::read_count(archive, "num_edges_list") != edges())
      archive.fail("num_edges_list", fmt::format("it is not {}, the number of edges", edges()),
                   "get the file again");
    if (const auto x = archive.find("node_feat"))
      set_features(npy_matrix(x->array, x->owner), name);
    warn_of_unread(archive, "raw/data.npz");
    if (is_there(raw("node-label.npz"))) read_label_array(raw("node-label.npz"));
  }

  void warn_of_unread(const NpzArchive& archive, const std::string& file) {
    if (const std::string names = archive.unread(); !names.empty())
      warn(fmt::format("arrays of {} are left out: {}", file, names));
  }

  void read_label_array(const std::string& name) {
    const auto file = MappedFile::open(name);
    const NpzArchive archive(file->bytes(), name);
    const NpzMember labels = archive.get("node_label");
    if (!labels.array.type.is_number())
      archive.fail("node_label", "it does not hold numbers", "get the file again");
    visit_npy(labels.array, [&](auto load) {
      if (labels.rank() == 2 && labels.columns() > 1) {
        const std::uint64_t rows = labels.rows(), classes = labels.columns();
        return set_label_sets(
            rows, classes,
            [&](std::uint64_t i) {
              const bool turned = labels.array.fortran_order;
              return static_cast<double>(load(turned ? i % classes * rows + i / classes : i));
            },
            name);
      }
      set_labels(
          labels.array.size(), [&](std::uint64_t i) { return static_cast<double>(load(i)); }, name);
    });
    warn_of_unread(archive, "raw/node-label.npz");
  }

  // --- both ---

  template <class Label>
  void set_labels(std::uint64_t count, Label label, const std::string& file) {
    require_rows(count, "labels", file);
    Buffer<std::int32_t> labels(count);
    std::int32_t largest = -1;
    for (std::uint64_t i = 0; i < count; ++i) {
      const double value = label(i);
      if (!std::isnan(value) && !(value == std::floor(value) && value >= -1 && value <= kMostLabel))
        throw InputError(file, fmt::format("label of vertex {}", i),
                         fmt::format("{} is not a whole number in -1..{}", value, kMostLabel),
                         "give the number of a class, or nan");
      labels[i] = std::isnan(value) ? -1 : static_cast<std::int32_t>(value);
      largest = std::max(largest, labels[i]);
    }
    if (largest < 0) return;
    parsed_.dataset.labels = std::move(labels);
    parsed_.dataset.classes = largest + 1;
  }

  // label(i): whether vertex i / classes is of class i % classes, 0 or 1.
  template <class Label>
  void set_label_sets(std::uint64_t rows, std::uint64_t classes, Label label,
                      const std::string& file) {
    require_rows(rows, "labels", file);
    Buffer<std::uint8_t> sets(rows * classes);
    for (std::uint64_t i = 0; i < sets.size(); ++i) {
      const double value = label(i);
      if (value != 0 && value != 1)
        throw InputError(file, fmt::format("labels of vertex {}", i / classes),
                         fmt::format("{} is not 0 or 1", value),
                         "say for each class whether the vertex is of it");
      sets[i] = static_cast<std::uint8_t>(value);
    }
    parsed_.dataset.label_sets = std::move(sets);
    parsed_.dataset.classes = static_cast<std::int32_t>(classes);
  }

  void require_rows(std::uint64_t count, const char* what, const std::string& file) const {
    if (count != vertices_)
      throw InputError(file, "rows", fmt::format("{} {} for {} vertices", count, what, vertices_),
                       "get the files of the folder again");
  }

  // Reads each folder of split/ as one split, in the order of the folders' names.
  void read_splits() {
    std::vector<std::string> folders;
    const std::string split = path_ + "/split";
    std::error_code closed;
    if (is_folder(split))
      for (const auto& entry : fs::directory_iterator(split, closed))
        if (is_there(entry.path() / "train.csv.gz")) folders.push_back(entry.path().string());
    require(!closed, "{}: cannot be read: {}", printable(split), closed.message());
    if (folders.empty()) return;
    std::sort(folders.begin(), folders.end());
    Buffer<Split> splits(folders.size() * vertices_, Split::none);
    for (std::size_t i = 0; i < folders.size(); ++i)
      read_split(folders[i], splits.span().subspan(i * vertices_, vertices_));
    parsed_.dataset.splits = std::move(splits);
    parsed_.dataset.split_count = static_cast<std::uint32_t>(folders.size());
  }

  static void read_split(const std::string& folder, std::span<Split> split) {
    for (const auto& [part, mark] : kParts) {
      const std::string file = fmt::format("{}/{}.csv.gz", folder, part);
      const Buffer<std::byte> bytes = unpacked(file);
      for (const std::uint64_t v : parse_number_lines(as_text(bytes), file, split.size() - 1)) {
        if (split[v] != Split::none && split[v] != mark)
          throw InputError(file, fmt::format("vertex {}", v),
                           "it is in another part of the split too",
                           "put each vertex in one of train, valid and test");
        split[v] = mark;
      }
    }
  }

  std::string path_;
  std::uint64_t told_;  // number of vertices; 0: none is told
  ParsedDataset parsed_;
  std::uint64_t vertices_ = 0;
};

}  // namespace

bool is_ogb_folder(const std::string& path) {
  return is_there(path + "/raw/edge.csv.gz") || is_there(path + "/raw/data.npz");
}

ParsedDataset read_ogb_folder(const std::string& path, std::uint64_t told) {
  return Folder(path, told).read();
}

NpyMatrix parse_number_table(std::string_view bytes, const std::string& file) {
  const TextInput input(bytes, file);
  const std::string_view text = input.text();
  const std::vector<std::string_view> chunks = input.chunks();
  std::vector<std::uint64_t> rows(chunks.size());
  for_each_chunk(chunks, "counting", [&](std::size_t i) { rows[i] = count_lines(chunks[i]); });
  NpyMatrix matrix{.rows = exclusive_sum(rows)};
  if (matrix.rows == 0) input.fail(text.data(), "there are no numbers", "give one line per vertex");
  Cursor first(text);
  first.next_line();
  const char* const begin = first.at();
  const std::string_view line(begin, static_cast<std::size_t>(text.data() + text.size() - begin));
  matrix.width = 1 + static_cast<std::uint64_t>(
                         std::count(begin, begin + std::min(line.find('\n'), line.size()), ','));
  // A number has at least one digit, and one character ends it.
  if (matrix.width > (text.size() + 1) / 2 / matrix.rows)
    input.fail(begin,
               fmt::format("{} numbers on each of {} lines are more than the text holds",
                           matrix.width, matrix.rows),
               "give as many numbers on every line");
  Buffer<float> values(matrix.rows * matrix.width);
  for_each_chunk(chunks, "reading", [&](std::size_t i) {
    float* value = values.data() + rows[i] * matrix.width;
    for (Cursor cursor(chunks[i]); cursor.next_line();) {
      const char* const at = cursor.at();
      for (std::uint64_t k = 0; k < matrix.width; ++k) {
        if (k > 0 && cursor.peek() == ',') cursor.advance();
        read_weight(input, cursor, *value++);
        cursor.skip_blanks();
      }
      if (!cursor.end_line())
        input.fail(at,
                   fmt::format("it has more than the {} numbers of the first line", matrix.width),
                   "give as many numbers on every line");
    }
  });
  matrix.values = std::move(values);
  return matrix;
}

std::vector<std::uint64_t> parse_number_lines(std::string_view bytes, const std::string& file,
                                              std::uint64_t most) {
  const TextInput input(bytes, file);
  const std::string_view text = input.text();
  std::vector<std::uint64_t> numbers;
  for (Cursor cursor(text); cursor.next_line();) {
    std::uint64_t number = 0;
    read_number(input, cursor, "the number", {0, most}, number);
    if (!cursor.end_line())
      input.fail(cursor.at(), input.quote_line(cursor.at()) + " is more than a number",
                 "give one number per line");
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace plait
