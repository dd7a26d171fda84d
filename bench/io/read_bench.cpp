// The times of reading a graph file in one step each, warm in the page cache:
//
//   read_bench FILE [--repeat N] [--rows OUT]
//
// prints a JSON object of medians in seconds: "plain", one read() of the file into memory that is
// there already, on one thread; "parse", the format's own reader, which makes an edge list or rows;
// "whole", read_dataset(): parsed, built into rows, checked for symmetry, validated. With --rows,
// writes the sorted (row, column, weight) of all parsed entries, as float64 .npy, for a comparison.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/timer.h"
#include "plait/io/gap.h"
#include "plait/io/io.h"
#include "plait/io/ligra.h"
#include "plait/io/matrix_market.h"
#include "plait/io/metis.h"
#include "plait/io/mgg.h"
#include "plait/io/npy.h"

namespace {

using namespace plait;

template <class Work>
double median_seconds(int repeat, Work work) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const Stopwatch watch;
    work();
    times.push_back(watch.seconds());
  }
  std::nth_element(times.begin(), times.begin() + repeat / 2, times.end());
  return times[static_cast<std::size_t>(repeat / 2)];
}

// The files of a graph: MGG's has three.
std::vector<std::string> files_of(const std::string& path) {
  if (!path.ends_with(kMggEnding)) return {path};
  const std::string stem = path.substr(0, path.size() - kMggEnding.size());
  return {path, stem + "_csr.bin", stem + "_weight.bin"};
}

// Reads whole files with read(), one behind the other.
void read_plainly(const std::vector<std::string>& paths, Buffer<std::byte>& into) {
  std::size_t done = 0;
  for (const std::string& path : paths) {
    const int file = open(path.c_str(), O_RDONLY);
    for (ssize_t got = 1; got > 0; done += static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
      got = read(file, into.data() + done, into.size() - done);
    close(file);
  }
  require(done == into.size(), "{} could not be read", paths[0]);
}

// Parses by the name; returns false for formats that are not listed here.
bool parse(const MappedFile& file) {
  const std::string& path = file.path();
  if (path.ends_with(".mtx")) return parse_matrix_market(file.text(), path), true;
  if (path.ends_with(".graph")) return parse_metis(file.text(), path), true;
  if (path.ends_with(".adj")) return parse_ligra(file.text(), path), true;
  if (path.ends_with(".sg")) return parse_gap(file.bytes(), path, GapWeights::none), true;
  if (path.ends_with(".wsg")) return parse_gap(file.bytes(), path, GapWeights::int32), true;
  if (path.ends_with("_beg_pos.bin")) return read_mgg(file), true;
  return false;
}

void write_rows(const Dataset& dataset, const std::string& path) {
  const std::uint64_t edges = dataset.edges();
  Buffer<double> rows(3 * edges);
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t i = 0; i < graph.vertices(); ++i)
          for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e) {
            rows[e] = static_cast<double>(i);
            rows[edges + e] = static_cast<double>(graph.neighbours[e]);
            rows[2 * edges + e] = static_cast<double>(graph.weight(e));
          }
      },
      dataset.graph);
  AtomicFile file(path);
  write_npy<double>(file, std::array<std::uint64_t, 2>{3, edges}, rows.span());
  file.commit();
}

int run(const std::string& path, int repeat, const std::string& rows) {
  if (!rows.empty()) {
    write_rows(read_dataset(path), rows);
    return 0;
  }
  const auto file = MappedFile::open(path);
  const std::vector<std::string> files = files_of(path);
  std::size_t size = 0;
  for (const std::string& each : files) size += MappedFile::open(each)->bytes().size();
  Buffer<std::byte> bytes(size, std::byte{1});
  const double plain = median_seconds(repeat, [&] { read_plainly(files, bytes); });
  bool known = true;
  const double parsed = median_seconds(repeat, [&] { known = parse(*file); });
  const double whole = median_seconds(repeat, [&] { read_dataset(path); });
  fmt::print(R"({{"bytes": {}, "plain": {}, "parse": {}, "whole": {}}})"
             "\n",
             bytes.size(), plain, known ? parsed : whole, whole);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, rows;
  int repeat = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--repeat" && i + 1 < argc)
      repeat = std::max(1, std::stoi(argv[++i]));
    else if (word == "--rows" && i + 1 < argc)
      rows = argv[++i];
    else
      path = word;
  }
  try {
    require<UsageError>(!path.empty(), "read_bench FILE [--repeat N] [--rows OUT]");
    return run(path, repeat, rows);
  } catch (const Error& error) {
    fmt::print(stderr, "read_bench: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
