#include "plait/embedding/bags.h"

#include <fmt/format.h>

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kBagsGrain = 512;
constexpr std::size_t kIdGrain = std::size_t{1} << 16;

// Returns the bags of a block of work that reads each id once. To wake threads costs more than to
// read as many ids as a block has on average.
std::size_t bag_grain(const GivenBags& given) {
  const std::uint64_t numbers = given.ids.size() + given.count();
  return std::max<std::size_t>(kBagsGrain,
                               kIdGrain * given.count() / std::max<std::uint64_t>(1, numbers));
}

std::uint64_t end_of(const GivenBags& given, std::uint64_t bag) { return given.begin_of(bag + 1); }

void check_offsets(const GivenBags& given, std::size_t tables) {
  const auto& offsets = given.offsets;
  require<UsageError>(!given.with_end || !offsets.empty(),
                      "offsets are empty, but must have one number more than there are bags");
  require<UsageError>(given.count() % tables == 0,
                      "offsets are of {} bags, which cannot be divided among {} tables",
                      given.count(), tables);
  const auto ids = static_cast<std::int64_t>(given.ids.size());
  require<UsageError>(given.count() > 0 || ids == 0,
                      "there are {} ids, but offsets are of no bag that they belong to", ids);
  require<UsageError>(offsets.empty() || offsets[0] == 0, "offsets[0] is {}, but must be 0",
                      offsets.empty() ? 0 : offsets[0]);
  const std::size_t behind_first = offsets.empty() ? 0 : offsets.size() - 1;
  const std::size_t bad = 1 + first_where(behind_first, kIdGrain, [&](std::size_t k) {
                            return offsets[k + 1] > ids || offsets[k + 1] < offsets[k];
                          });
  if (bad <= behind_first) {
    require<UsageError>(offsets[bad] <= ids, "offsets[{}] is {}, beyond the {} ids", bad,
                        offsets[bad], ids);
    throw UsageError(fmt::format("offsets[{}] is {}, below offsets[{}], which is {}", bad,
                                 offsets[bad], bad - 1, offsets[bad - 1]));
  }
  const std::int64_t end = offsets.empty() ? 0 : offsets.back();
  require<UsageError>(!given.with_end || end == ids, "offsets end with {}, but there are {} ids",
                      end, ids);
}

std::uint64_t kept_of(const GivenBags& given, std::uint64_t bag, std::int64_t padding) {
  const auto begin = given.ids.begin() + given.offsets[bag];
  const auto end = given.ids.begin() + static_cast<std::ptrdiff_t>(end_of(given, bag));
  return static_cast<std::uint64_t>(end - begin - std::count(begin, end, padding));
}

// Writes where each bag begins when padding is left out.
void write_offsets(const GivenBags& given, const BagTables& tables, EdgeOffset* offsets) {
  const std::uint64_t count = given.count();
  const std::uint64_t per_table = count / tables.rows.size();
  offsets[0] = 0;
  parallel_blocks(count, bag_grain(given), [&](std::size_t begin, std::size_t end) {
    for (std::size_t bag = begin; bag < end; ++bag)
      offsets[bag + 1] = kept_of(given, bag, tables.padding[bag / per_table]);
  });
  for (std::uint64_t bag = 0; bag < count; ++bag) offsets[bag + 1] += offsets[bag];
}

// Copies bags of tables without padding.
void copy_bags(const GivenBags& given, const BagMemory& to) {
  parallel_blocks(given.count() + 1, kIdGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t bag = begin; bag < end; ++bag) to.offsets[bag] = given.begin_of(bag);
  });
  parallel_blocks(given.ids.size(), kIdGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) to.ids[i] = static_cast<Slot>(given.ids[i]);
    if (given.weights != nullptr)
      std::copy(given.weights + begin, given.weights + end, to.weights + begin);
  });
}

}  // namespace

void check_bags(const GivenBags& given, const BagTables& tables) {
  if (!given.fault.empty()) throw UsageError(given.fault);
  const std::size_t count = tables.rows.size();
  check_offsets(given, count);
  const std::uint64_t per_table = given.count() / count;
  for (std::size_t t = 0; per_table > 0 && t < count; ++t) {
    const auto first = static_cast<std::size_t>(given.offsets[t * per_table]);
    const std::size_t last = end_of(given, (t + 1) * per_table - 1);
    const std::uint64_t rows = tables.rows[t];
    const std::size_t bad = first_where(last - first, kIdGrain, [&](std::size_t i) {
      return static_cast<std::uint64_t>(given.ids[first + i]) >= rows;
    });
    if (bad == last - first) continue;
    const std::string of = count > 1 ? fmt::format(" of table {}", t) : "";
    const std::string allowed = rows > 0 ? fmt::format("outside 0..{}{}", rows - 1, of)
                                         : fmt::format("but there are no rows{}", of);
    throw UsageError(
        fmt::format("ids[{}] is {}, {}", first + bad, given.ids[first + bad], allowed));
  }
}

Bags write_bags(const GivenBags& given, const BagTables& tables, const BagMemory& to) {
  const std::uint64_t per_table = given.count() / tables.rows.size();
  const bool weighted = given.weights != nullptr;
  const Bags bags{to.offsets, to.ids, weighted ? to.weights : nullptr, per_table};
  if (std::ranges::all_of(tables.padding, [](std::int64_t id) { return id < 0; })) {
    copy_bags(given, to);
    return bags;
  }
  write_offsets(given, tables, to.offsets);
  parallel_blocks(given.count(), bag_grain(given), [&](std::size_t begin, std::size_t end) {
    for (std::size_t bag = begin; bag < end; ++bag) {
      const std::int64_t padding = tables.padding[bag / per_table];
      const std::uint64_t last = end_of(given, bag);
      EdgeOffset at = to.offsets[bag];
      for (auto i = static_cast<std::uint64_t>(given.offsets[bag]); i < last; ++i) {
        if (given.ids[i] == padding) continue;
        to.ids[at] = static_cast<Slot>(given.ids[i]);
        if (weighted) to.weights[at] = given.weights[i];
        ++at;
      }
    }
  });
  return bags;
}

}  // namespace plait
