// A table over ranks on the CPU: rows by global id, in memory that all ranks of a host share.
//
// Rows stand in the symmetric heap (place host: the rows of each rank in its part), in each rank's
// own memory (replicated) or in the dataset (mapped). Any rank reads any row by plain loads.
#pragma once

#include <memory>

#include "plait/table/table_layout.h"
#include "plait/world/world.h"

namespace plait {

// Rows that do not change. Several threads may gather from it at once.
class Table {
 public:
  // Collective. Makes the table, each rank its own rows of the source by all threads, and returns
  // when all rows are there. Settings and source are the same on all ranks. Throws UsageError for
  // places gpu and mapped, and for ranks on several hosts; DoesNotFitError before anything is
  // allocated.
  static std::unique_ptr<Table> create(World& world, const TableSettings& settings,
                                       const TableSource& source);
  // Returns a table of rows that are in this process's memory already, `stride` bytes apart, and
  // stay with `owner`. Nothing is copied.
  static std::unique_ptr<Table> map(std::shared_ptr<const void> owner, const std::byte* first,
                                    const TableSettings& settings, std::uint64_t stride);
  // Returns dense features as they are in the dataset; throws UsageError for sparse ones.
  static std::unique_ptr<Table> map(const Features& features);
  virtual ~Table() = default;

  // Returns the rows, for gather_rows(rows().gather(...)).
  const TableRows& rows() const { return rows_; }

 protected:
  TableRows rows_;
};

}  // namespace plait
