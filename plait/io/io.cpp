// The table of formats, and the way from a file to a dataset and back.
#include "plait/io/io.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"
#include "plait/base/progress.h"
#include "plait/base/setting.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "plait/io/attach.h"
#include "plait/io/container.h"
#include "plait/io/dimacs.h"
#include "plait/io/edge_list_file.h"
#include "plait/io/edges_of_csr.h"
#include "plait/io/gap.h"
#include "plait/io/gnnadvisor.h"
#include "plait/io/left_out.h"
#include "plait/io/ligra.h"
#include "plait/io/matrix_market.h"
#include "plait/io/metis.h"
#include "plait/io/mgg.h"
#include "plait/io/npy.h"
#include "plait/io/npz.h"
#include "plait/io/npz_archive.h"
#include "plait/io/ogb.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

using namespace std::string_view_literals;
using File = std::shared_ptr<const MappedFile>;

std::string line_of_warning(const std::string& path, const std::string& warning) {
  return fmt::format("{}: {}", printable(path), printable(warning));
}

void warn(const std::string& path, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    fmt::print(stderr, "plait: warning: {}\n", line_of_warning(path, warning));
}

void warn(const std::string& path, const std::vector<std::string>& warnings,
          const ReadOptions& options) {
  if (options.warnings_to == nullptr) return warn(path, warnings);
  for (const std::string& warning : warnings)
    options.warnings_to->push_back(line_of_warning(path, warning));
}

// --- one reader per format ---

// The content of a file before its graph is built: edges or rows, and a dataset without the graph.
struct Content {
  std::variant<AnyEdgeList, AnyCsr> graph;
  Dataset dataset;
  std::optional<bool> symmetric;           // set if the rows are known to be so or not
  bool valid = false;                      // its reader has validated everything
  std::vector<std::string> warnings = {};  // parts left out and why, one line each
  std::string undirected = {};             // the comment that says so; empty: none does
};

Content read_matrix_market(const File& file, const ReadOptions& options) {
  return {parse_matrix_market(file->text(), file->path(), options.vertices), {}, {}};
}

Content read_lines(const File& file, const ReadOptions& options, EdgeListOptions lines) {
  lines.first_line = options.first_line;
  lines.vertices = options.vertices;
  ParsedEdgeList parsed = parse_edge_list(file->text(), file->path(), lines);
  Dataset dataset;
  dataset.original_ids = std::move(parsed.original_ids);
  return {.graph = std::move(parsed.edges),
          .dataset = std::move(dataset),
          .symmetric = {},
          .warnings = std::move(parsed.notes),
          .undirected = std::move(parsed.undirected)};
}

Content read_edge_list(const File& file, const ReadOptions& options) {
  return read_lines(file, options, {});
}

template <bool weighted>
Content read_gap_text(const File& file, const ReadOptions& options) {
  return read_lines(file, options, {.ids_are_vertices = true, .weighted = weighted});
}

Content read_dimacs(const File& file, const ReadOptions& options) {
  return {parse_dimacs(file->text(), file->path(), options.vertices), {}, {}};
}

Content read_npy(const File& file, const ReadOptions& options) {
  return {npy_edges(parse_npy(file->bytes(), file->path()), options.vertices), {}, {}};
}

Content content_of(ParsedDataset parsed) {
  return {.graph = std::move(parsed.edges),
          .dataset = std::move(parsed.dataset),
          .symmetric = {},
          .warnings = std::move(parsed.warnings)};
}

Content read_npz(const File& file, const ReadOptions& options) {
  return content_of(parse_npz(file->bytes(), file->path(), options.vertices));
}

Content content_of(ParsedRows rows) { return {std::move(rows.graph), {}, rows.symmetric}; }

Content read_metis(const File& file, const ReadOptions&) {
  ParsedMetis parsed = parse_metis(file->text(), file->path());
  Content content = content_of(std::move(parsed.rows));
  content.warnings = std::move(parsed.warnings);
  return content;
}

Content read_ligra(const File& file, const ReadOptions&) {
  return {std::visit([](const auto& rows) -> AnyCsr { return transpose(rows); },
                     parse_ligra(file->text(), file->path())),
          {},
          {}};
}

template <GapWeights weights>
Content read_gap(const File& file, const ReadOptions&) {
  return content_of(parse_gap(file->bytes(), file->path(), weights));
}

Content read_mgg_files(const File& file, const ReadOptions&) { return content_of(read_mgg(*file)); }

// Arrays of a container stay where they are, unless the options ask for another graph.
Content content_of(Dataset dataset) {
  const bool symmetric = dataset.symmetric;
  AnyCsr graph = std::move(dataset.graph);
  return {std::move(graph), std::move(dataset), symmetric, true};
}

// --- from content to a dataset ---

void set_weights(Content& content, const ReadOptions& options) {
  const auto edges = std::visit(
      [](const auto& any) {
        return std::visit([](const auto& graph) { return std::uint64_t{graph.edges()}; }, any);
      },
      content.graph);
  const Array<float> weights =
      options.weights.empty() ? Array<float>() : read_weights(options.weights, edges);
  content.symmetric.reset();
  if (auto* const rows = std::get_if<AnyCsr>(&content.graph)) {
    std::visit([&](auto& graph) { graph.weights = weights; }, *rows);
    return;
  }
  std::visit(
      [&](auto& list) {
        list.weight = Buffer<float>(weights.size());
        std::copy(weights.begin(), weights.end(), list.weight.begin());
      },
      std::get<AnyEdgeList>(content.graph));
}

Dataset build(Content content, const ReadOptions& options) {
  if (options.drop_weights || !options.weights.empty()) set_weights(content, options);
  Dataset dataset = std::move(content.dataset);
  const BuildOptions& wanted = options.build;
  auto* const rows = std::get_if<AnyCsr>(&content.graph);
  if (rows && !wanted.undirected && !wanted.drop_loops && !wanted.drop_duplicates) {
    dataset.graph = std::move(*rows);
  } else {
    if (rows)
      content.graph = std::visit([](const auto& graph) -> AnyEdgeList { return edges_of(graph); },
                                 AnyCsr(std::move(*rows)));
    dataset.graph = build_csr(std::move(std::get<AnyEdgeList>(content.graph)), wanted);
    content.symmetric.reset();
  }
  dataset.symmetric = content.symmetric ? *content.symmetric : is_symmetric(dataset.graph);
  return dataset;
}

// Returns the options, with reverses of all edges if a comment of the file asks for them.
ReadOptions with_direction(Content& content, const std::string& path, const ReadOptions& options) {
  const bool marked = !content.undirected.empty();
  require<UsageError>(marked || !options.directed,
                      "{}: {} has no effect: no comment says that the graph is undirected", path,
                      setting("directed"));
  ReadOptions wanted = options;
  if (!marked || options.directed || options.build.undirected) return wanted;
  wanted.build.undirected = true;
  content.warnings.push_back(
      content.undirected +
      " says that the graph is undirected: the reverse of every edge is added, and duplicates are "
      "dropped; " +
      setting("directed") + " reads each line as one edge");
  return wanted;
}

Dataset build_valid(Content content, const std::string& path, const ReadOptions& options) {
  const ReadOptions wanted = with_direction(content, path, options);
  if (options.warnings) warn(path, content.warnings, options);
  const bool valid = content.valid;
  Dataset dataset = build(std::move(content), wanted);
  if (options.vertices != 0 && dataset.vertices() != options.vertices)
    throw InputError(path, "vertices",
                     doubt_of_vertices(dataset.vertices(), dataset.edges(), options.vertices),
                     remedy_of_vertices(dataset.vertices(), options.vertices));
  if (!valid) validate(dataset, path);
  return dataset;
}

template <Content (*read)(const File&, const ReadOptions&)>
Dataset read_and_build(const File& file, const ReadOptions& options) {
  return build_valid(read(file, options), file->path(), options);
}

// Weights come in the order of the edges before any renumbering, which also decides which of
// several edges stays; so the graph is numbered as before while it is changed.
Dataset read_container_file(const File& file, const ReadOptions& options) {
  Dataset dataset = read_container(file, file->bytes(), file->path());
  const BuildOptions& wanted = options.build;
  const bool changed = !options.weights.empty() || wanted.undirected || wanted.drop_duplicates;
  if (dataset.numbers.empty() || !changed)
    return build_valid(content_of(std::move(dataset)), file->path(), options);
  const Array<std::uint64_t> numbers = dataset.numbers;
  return renumbered(build_valid(content_of(with_first_numbers(dataset)), file->path(), options),
                    numbers);
}

// --- the table ---

struct Format {
  std::string_view mark;  // how its content begins, or empty
  std::vector<std::string_view> endings;
  std::function<Dataset(const File&, const ReadOptions&)> read;
  std::function<void(const Dataset&, const std::string&)> write;  // for the first ending; or none
  Holds holds = Holds::graph;                                     // what is written
  bool lines = false;                                             // of edges, as text
};

// Writes one file, whole or not at all.
template <class Write>
auto to_file(Write write) {
  return [write](const Dataset& dataset, const std::string& path) {
    AtomicFile file(path);
    write(dataset, file);
    file.commit();
  };
}

template <GapWeights weights>
void write_gap_binary(const Dataset& dataset, AtomicFile& file) {
  write_gap(dataset, file, weights);
}

// An ending comes before a shorter one that it ends in.
const std::vector<Format>& formats() {
  using enum GapWeights;
  static const std::vector<Format> table{
      {kContainerMark,
       {".plait"},
       read_container_file,
       to_file(write_container),
       Holds::everything},
      {"%%MatrixMarket",
       {".mtx"},
       read_and_build<read_matrix_market>,
       to_file(write_matrix_market)},
      {"PK\3\4", {".gnna.npz"}, read_and_build<read_npz>, to_file(write_gnnadvisor)},
      {"PK\3\4",
       {".npz"},
       read_and_build<read_npz>,
       to_file([](const Dataset& dataset, AtomicFile& file) { write_npz(dataset, file); }),
       Holds::everything},
      {"\x93NUMPY", {".npy"}, read_and_build<read_npy>, nullptr},
      {"",
       {".txt", ".csv", ".tsv", ".edges", ".edgelist"},
       read_and_build<read_edge_list>,
       to_file(write_edge_list),
       Holds::edges_and_ids,
       true},
      {"",
       {".el"},
       read_and_build<read_gap_text<false>>,
       to_file(write_gap_text),
       Holds::edges,
       true},
      {"",
       {".wel"},
       read_and_build<read_gap_text<true>>,
       to_file(write_gap_weighted_text),
       Holds::edges,
       true},
      {"", {".sg"}, read_and_build<read_gap<none>>, to_file(write_gap_binary<none>)},
      {"", {".wsg"}, read_and_build<read_gap<int32>>, to_file(write_gap_binary<int32>)},
      {"", {".graph"}, read_and_build<read_metis>, to_file(write_metis)},
      {"", {".gr"}, read_and_build<read_dimacs>, to_file(write_dimacs)},
      {"", {".adj"}, read_and_build<read_ligra>, to_file(write_ligra)},
      {"", {kMggEnding}, read_and_build<read_mgg_files>, write_mgg},
  };
  return table;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns ".npz" for "data/cora.NPZ"; empty if the name has no ending.
std::string ending_of(const std::string& path) {
  const std::string name = lower_case(file_name(path));
  for (const Format& format : formats())
    for (const auto ending : format.endings)
      if (name.ends_with(ending)) return std::string(ending);
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(dot);
}

std::string stem_of(const std::string& path) {
  const std::string name = file_name(path), ending = ending_of(path);
  return name.size() <= ending.size() ? name : name.substr(0, name.size() - ending.size());
}

std::string join_endings(bool written, const char* separator) {
  std::vector<std::string_view> known;
  for (const Format& format : formats())
    if (!written)
      known.insert(known.end(), format.endings.begin(), format.endings.end());
    else if (format.write)
      known.push_back(format.endings[0]);
  return fmt::format("{}", fmt::join(known, separator));
}

// Returns the format with this ending, or none.
const Format* find_ending(std::string_view ending) {
  for (const Format& format : formats())
    for (const auto each : format.endings)
      if (each == ending) return &format;
  return nullptr;
}

// Returns the ending that `--format NAME` means, or none.
std::string ending_of_format(const std::string& name) {
  const std::string word = lower_case(name);
  for (const std::string& ending : {"." + word, "_" + word, word})
    if (find_ending(ending)) return ending;
  return "." + word;
}

// Python's pickles of protocols 2 to 5, which torch.save wrote before it wrote archives.
bool is_pickle(std::string_view text) {
  return text.size() > 1 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

const Format& format_of(const File& file, const std::string& wanted) {
  if (!wanted.empty()) {
    const Format* const format = find_ending(ending_of_format(wanted));
    require<UsageError>(format != nullptr, "format '{}' is unknown; use one of {}", wanted,
                        join_endings(false, ", "));
    return *format;
  }
  for (const Format& format : formats())
    if (!format.mark.empty() && file->text().starts_with(format.mark)) return format;
  if (file->text().starts_with("\x1f\x8b"))
    throw InputError(file->path(), "byte 0", "it is compressed with gzip", "unpack it with gunzip");
  if (is_pickle(file->text())) fail_pytorch(file->path());
  const std::string ending = ending_of(file->path());
  if (const Format* const format = find_ending(ending)) return *format;
  throw InputError(file->path(), "name",
                   ending.empty() ? std::string("no ending tells its format")
                                  : fmt::format("no format has the ending {}", ending),
                   "use one of " + join_endings(false, ", "));
}

// Refuses options that only edge lists heed.
void require_no_line_options(const std::string& path, const ReadOptions& options) {
  require<UsageError>(options.first_line == FirstLine::guess, "{}: {} is for edge lists as text",
                      path, setting("first-line"));
  require<UsageError>(!options.directed, "{}: {} is for edge lists as text", path,
                      setting("directed"));
}

// While it lives, bars are drawn only if they are wanted and were drawn before.
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

std::string readable_endings() { return join_endings(false, " "); }
std::string writable_endings() { return join_endings(true, " "); }

Dataset read_dataset(const std::string& path, const ReadOptions& options) {
  const BarsOnlyIf bars(options.progress);
  try {
    Dataset dataset;
    if (is_ogb_folder(path)) {
      require_no_line_options(path, options);
      dataset = build_valid(content_of(read_ogb_folder(path, options.vertices)), path, options);
    } else {
      const File file = MappedFile::open(path);
      const Format& format = format_of(file, options.format);
      if (!format.lines) require_no_line_options(path, options);
      dataset = format.read(file, options);
    }
    if (dataset.name.empty()) dataset.name = printable(stem_of(path));
    return dataset;
  } catch (const std::bad_alloc&) {
    throw DoesNotFitError(path + ": there is not enough memory to read it");
  }
}

void write_dataset(const Dataset& dataset, const std::string& path, const WriteOptions& options) {
  const std::string ending =
      options.format.empty() ? ending_of(path) : ending_of_format(options.format);
  const Format* const format = find_ending(ending);
  require<UsageError>(format != nullptr && format->write && format->endings[0] == ending,
                      "{}: no format with the ending '{}' can be written; use one of {}", path,
                      ending, join_endings(true, ", "));
  // Other formats name vertices by their numbers, which are those from before any renumbering.
  const Dataset written = format->endings[0] == ".plait" ? dataset : with_first_numbers(dataset);
  std::vector<std::string> lost;
  if (options.warnings) lost = left_out(written, format->holds);
  format->write(written, path);
  warn(path, lost);
}

}  // namespace plait
