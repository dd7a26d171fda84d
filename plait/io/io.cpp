// The table of formats, and the way from a file to a dataset and back.
#include "plait/io/io.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/progress.h"
#include "plait/graph/validate.h"
#include "plait/io/container.h"
#include "plait/io/edge_list_file.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/matrix_market.h"
#include "plait/io/npy.h"
#include "plait/io/npz.h"

namespace plait {
namespace {

using namespace std::string_view_literals;
using File = std::shared_ptr<const MappedFile>;

// --- one reader a format ---

// What a file holds before its graph is built: edges, and a dataset that lacks only the graph.
struct Content {
  AnyEdgeList edges;
  Dataset dataset;
};

Dataset build(Content content, const BuildOptions& options) {
  auto& [edges, dataset] = content;
  dataset.graph = build_csr(std::move(edges), options);
  dataset.symmetric = is_symmetric(dataset.graph);
  return std::move(dataset);
}

Content read_matrix_market(const File& file) {
  return {parse_matrix_market(file->text(), file->path()), {}};
}

Content read_edge_list(const File& file) {
  ParsedEdgeList parsed = parse_edge_list(file->text(), file->path());
  Dataset dataset;
  dataset.original_ids = std::move(parsed.original_ids);
  return {std::move(parsed.edges), std::move(dataset)};
}

Content read_npy(const File& file) {
  return {npy_edges(parse_npy(file->bytes(), file->path())), {}};
}

Content read_npz(const File& file) {
  ParsedNpz parsed = parse_npz(file->bytes(), file->path());
  for (const std::string& warning : parsed.warnings)
    fmt::print(stderr, "plait: warning: {}: {}\n", file->path(), warning);
  return {std::move(parsed.edges), std::move(parsed.dataset)};
}

// Arrays of a container stay where they are, unless the options ask for another graph.
Dataset read_container_file(const File& file, const BuildOptions& options) {
  Dataset dataset = read_container(file, file->bytes(), file->path());
  if (!options.undirected && !options.drop_loops && !options.drop_duplicates) return dataset;
  AnyEdgeList edges =
      std::visit([](const auto& graph) -> AnyEdgeList { return edges_of(graph); }, dataset.graph);
  return build({std::move(edges), std::move(dataset)}, options);
}

template <Content (*read)(const File&)>
Dataset read_and_build(const File& file, const BuildOptions& options) {
  Dataset dataset = build(read(file), options);
  validate(dataset, file->path());
  return dataset;
}

// --- the table ---

struct Format {
  std::string_view mark;  // how its content begins, or empty
  std::vector<std::string_view> endings;
  std::function<Dataset(const File&, const BuildOptions&)> read;
  std::function<void(const Dataset&, AtomicFile&)> write;  // for the first ending; or none
};

const std::vector<Format>& formats() {
  static const std::vector<Format> table{
      {kContainerMark, {".plait"}, read_container_file, write_container},
      {"%%MatrixMarket", {".mtx"}, read_and_build<read_matrix_market>, write_matrix_market},
      {"PK\3\4",
       {".npz"},
       read_and_build<read_npz>,
       [](const Dataset& dataset, AtomicFile& file) { write_npz(dataset, file); }},
      {"\x93NUMPY", {".npy"}, read_and_build<read_npy>, nullptr},
      {"",
       {".txt", ".el", ".csv", ".tsv", ".edges"},
       read_and_build<read_edge_list>,
       write_edge_list},
  };
  return table;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// ".npz" of "data/cora.NPZ"; empty where the name has no ending.
std::string ending_of(const std::string& path) {
  const std::string name = file_name(path);
  const auto dot = name.rfind('.');
  std::string ending = dot == std::string::npos ? "" : name.substr(dot);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

std::string stem_of(const std::string& path) {
  const std::string name = file_name(path);
  const auto dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

bool has_ending(const Format& format, std::string_view ending) {
  return std::find(format.endings.begin(), format.endings.end(), ending) != format.endings.end();
}

const Format& format_of(const File& file) {
  for (const Format& format : formats())
    if (!format.mark.empty() && file->text().starts_with(format.mark)) return format;
  if (file->text().starts_with("\x1f\x8b"))
    throw InputError(file->path(), "byte 0", "it is compressed with gzip", "unpack it with gunzip");
  const std::string ending = ending_of(file->path());
  std::string known;
  for (const Format& format : formats()) {
    if (has_ending(format, ending)) return format;
    for (const auto each : format.endings)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  throw InputError(file->path(), "name",
                   ending.empty() ? std::string("no ending tells its format")
                                  : fmt::format("no format has the ending {}", ending),
                   "use one of " + known);
}

// Bars are drawn only while this stands, if at all.
class BarsOnlyIf {
 public:
  explicit BarsOnlyIf(bool wanted) : before_(set_progress(false)) {
    set_progress(before_ && wanted);
  }
  ~BarsOnlyIf() { set_progress(before_); }
  BarsOnlyIf(const BarsOnlyIf&) = delete;
  BarsOnlyIf& operator=(const BarsOnlyIf&) = delete;

 private:
  bool before_;
};

}  // namespace

Dataset read_dataset(const std::string& path, const ReadOptions& options) {
  const BarsOnlyIf bars(options.progress);
  const File file = MappedFile::open(path);
  const Format& format = format_of(file);
  try {
    Dataset dataset = format.read(file, options.build);
    if (dataset.name.empty()) dataset.name = stem_of(path);
    return dataset;
  } catch (const std::bad_alloc&) {
    throw DoesNotFitError(path + ": there is not enough memory to read it");
  }
}

void write_dataset(const Dataset& dataset, const std::string& path) {
  const std::string ending = ending_of(path);
  std::string known;
  for (const Format& format : formats()) {
    if (!format.write) continue;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.endings[0]);
    if (format.endings[0] != ending) continue;
    AtomicFile file(path);
    format.write(dataset, file);
    return file.commit();
  }
  throw UsageError(fmt::format("{}: no format with the ending '{}' can be written; use one of {}",
                               path, ending, known));
}

}  // namespace plait
