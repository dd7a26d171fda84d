// Bags of ids. An embedding table gives the sum of the rows that each bag names. Here are the bags
// as callers give them, and as ranks work on them.
//
// Bags of several tables stand table by table: bag b of table t is bag t * per_table + b of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plait/base/ids.h"

namespace plait {

// Bags as torch.nn.functional.embedding_bag takes them: bag k has the ids from offsets[k] up to
// offsets[k + 1], the last bag has the ids up to the end. This owns no memory.
struct GivenBags {
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> offsets;
  bool with_end = false;           // the last offset is not a bag but the end of the last one
  const float* weights = nullptr;  // one per id, or null: all 1
  std::string fault = {};          // the fault that was found in the bags already; or empty

  std::uint64_t count() const {
    return offsets.empty() || !with_end ? offsets.size() : offsets.size() - 1;
  }
  // Returns where a bag begins, or the last one ends, in `ids`.
  std::uint64_t begin_of(std::uint64_t bag) const {
    return bag < offsets.size() ? static_cast<std::uint64_t>(offsets[bag]) : ids.size();
  }
};

// The tables whose rows bags name.
struct BagTables {
  std::vector<std::uint64_t> rows;    // by table
  std::vector<std::int64_t> padding;  // by table: the id that counts for nothing; or -1
};

// Throws UsageError with the fault, or with the first offset or id that is wrong, its place and the
// allowed range.
void check_bags(const GivenBags& given, const BagTables& tables);

// Bags without padding: bag k has the ids ids[offsets[k]] up to ids[offsets[k + 1] - 1].
struct Bags {
  const EdgeOffset* offsets = nullptr;
  const Slot* ids = nullptr;
  const float* weights = nullptr;  // one per id, or null: all 1
  std::uint64_t per_table = 0;

  EdgeOffset begin(std::size_t table) const { return offsets[table * per_table]; }
  EdgeOffset end(std::size_t table) const { return offsets[(table + 1) * per_table]; }
};

// The memory that bags are written to: one offset per bag and one more, and at most
// given.ids.size() ids and, if there are any, weights.
struct BagMemory {
  EdgeOffset* offsets;
  Slot* ids;
  float* weights;
};
// Writes bags that check_bags() has found right, by all threads. Returns the bags.
Bags write_bags(const GivenBags& given, const BagTables& tables, const BagMemory& to);

}  // namespace plait
