// A thread takes blocks of rows. While it copies one row it asks for the one that it copies some
// rows later: a row that is elsewhere in memory takes about 100 ns to come, as long as several
// copies.
#include "plait/table/gather_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/parallel.h"
#include "plait/table/convert.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = 1024;      // rows of a block
constexpr std::uint64_t kAhead = 8;       // rows
constexpr std::uint64_t kMostAhead = 16;  // cache lines that are asked for, of a row

const std::byte* row_at(const StoredRows& rows, std::uint64_t id) {
  const RowPlace place = place_of(rows, rows.starts, id);
  return rows.base[place.rank] + place.row * rows.stride;
}

void ask_for(const std::byte* row, std::uint64_t bytes) {
  const std::uint64_t lines = std::min((bytes + kCacheLine - 1) / kCacheLine, kMostAhead);
  for (std::uint64_t k = 0; k < lines; ++k) __builtin_prefetch(row + k * kCacheLine);
}

void convert_row(const std::byte* row, DType type, std::uint64_t width, std::byte* out) {
  const float scale = scale_at(row, type, width);
  with_storage(type, [&]<class S>(S) {
    for (std::uint64_t k = 0; k < width; ++k) {
      const float value = stored_float<S>(row, k, scale);
      std::memcpy(out + k * sizeof(float), &value, sizeof(float));
    }
  });
}

// Adds the numbers of rows of a block to args.counts, which threads share.
void count_rows(const GatherRows& a, std::size_t begin, std::size_t end) {
  GatherCounts counts;
  for (std::size_t i = begin; i < end; ++i) {
    const RowPlace place = place_of(a.from, a.from.starts, a.ids[i]);
    if (crosses(a.from, place)) ++counts.crossed;
    if (static_cast<int>(place.rank) == a.from.ranks) ++counts.hot;
  }
  std::atomic_ref(a.counts->hot) += counts.hot;
  std::atomic_ref(a.counts->crossed) += counts.crossed;
}

}  // namespace

void gather_rows(const GatherRows& a) {
  const std::uint64_t bytes = stored_bytes(a.type, a.width);
  parallel_blocks(a.count, kGrain, [&](std::size_t begin, std::size_t end) {
    if (a.counts != nullptr) count_rows(a, begin, end);
    for (std::size_t i = begin; i < std::min<std::size_t>(begin + kAhead, end); ++i)
      ask_for(row_at(a.from, a.ids[i]), bytes);
    for (std::size_t i = begin; i < end; ++i) {
      if (i + kAhead < end) ask_for(row_at(a.from, a.ids[i + kAhead]), bytes);
      const std::byte* const row = row_at(a.from, a.ids[i]);
      std::byte* const out = a.out + i * a.out_stride;
      if (is_copied(a.type)) {
        if (bytes > 0) std::memcpy(out, row, bytes);
      } else {
        convert_row(row, a.type, a.width, out);
      }
    }
  });
}

// The ids are sorted with their places, so that each row is added to by one thread.
void add_rows(const AddRows& a) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> order(a.count);
  for (std::uint64_t i = 0; i < a.count; ++i) order[i] = {a.ids[i], i};
  std::ranges::sort(order);
  const auto begins = [&](std::size_t at) {  // a row's places, not in the middle of them
    while (at > 0 && at < order.size() && order[at].first == order[at - 1].first) ++at;
    return at;
  };
  parallel_blocks(a.count, kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begins(begin), last = begins(end); at < last; ++at) {
      auto* const row =
          reinterpret_cast<float*>(const_cast<std::byte*>(row_at(a.to, order[at].first)));
      const float* const from = a.rows + order[at].second * a.rows_stride;
      for (std::uint64_t k = 0; k < a.width; ++k) row[k] += from[k];
    }
  });
}

}  // namespace plait
