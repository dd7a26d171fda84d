// Where a table's rows stand: which rank has which row, at which place of its memory. A table has
// rows of one width and type by global id, over ranks (WholeGraph, section 3.2).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/partition/partition.h"
#include "plait/table/gather_rows.h"

namespace plait {

// The memory in which rows stand.
enum class TablePlace {
  gpu,         // each rank's GPU has its own rows, which others read over NVLink
  host,        // the host's memory has all rows once; GPUs read them over PCIe
  replicated,  // every rank has all rows in its own memory, that of its GPU if it has one
  mapped,      // rows stay in the dataset's memory, a mapped file: for ranks on the CPU
};
std::string_view to_string(TablePlace place);

// How rows are divided among ranks.
enum class TableDivision {
  ranges,  // equal ranges of ids
  hash,    // ids are dealt out by hash (place_of()): equal shares of every part of the ids
  owners,  // by a partition
};

// A table as it is wanted.
struct TableSettings {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;  // elements; bytes of raw rows
  DType type = DType::f32;
  TablePlace place = TablePlace::host;
  TableDivision division = TableDivision::ranges;
  const Partition* owners = nullptr;  // of division `owners`; the table does not outlive it
};

// Writes the rows of these ids one after the other: `width` floats each, or bytes of raw rows. May
// be called by several threads of a rank at once.
using TableSource = std::function<void(std::span<const std::uint64_t> ids, std::byte* rows)>;
// Returns the features' rows, dense or sparse, as a source. Arrays are shared.
TableSource rows_of(const Features& features);

// A table's rows, and how they are read: what kernels take. It is trivially copyable, and nothing
// is owned.
struct TableRows {
  StoredRows rows;
  std::uint64_t width = 0;
  DType type = DType::f32;
  GatherCounts* counts = nullptr;  // see GatherRows; in the reader's memory

  // Returns the arguments of a gather: out row i = row ids[i] in fp32. `stride`: floats from one
  // result to the next; bytes of raw rows.
  GatherRows gather(const std::uint64_t* ids, std::uint64_t count, void* out,
                    std::uint64_t stride) const;
};

// The place of every row. Rows of each rank are in the order of ids.
class TableLayout {
 public:
  // Throws UsageError if the settings contradict each other, or there are too many ranks.
  TableLayout(const TableSettings& settings, int ranks);

  std::uint64_t stride() const { return view_.stride; }  // bytes
  // Returns the number of ranks among which rows are divided: 1 if each has all.
  int parts() const { return view_.ranks; }
  // Returns the number of rows of a part, and the most rows of any.
  std::uint64_t size(int part) const;
  std::uint64_t largest() const;
  // Returns the bytes of the largest part; the largest number if they are more.
  std::uint64_t part_bytes() const;
  // Writes the ids of the rows first, first + 1, ... of a part.
  void ids(int part, std::uint64_t first, std::span<std::uint64_t> out) const;
  // Reads `count` rows of a part from `first` on, by all threads, each of source_bytes().
  void read(const TableSource& source, int part, std::uint64_t first, std::uint64_t count,
            std::byte* to) const;
  std::uint64_t source_bytes() const { return source_bytes_; }
  // Returns the view without bases and own rank. Division `owners` refers to the partition's
  // arrays.
  const StoredRows& view() const { return view_; }

 private:
  const Partition* owners_ = nullptr;
  std::uint64_t source_bytes_ = 0;  // of a row
  StoredRows view_;
};

}  // namespace plait
