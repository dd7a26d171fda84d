#include <cstring>

#include "plait/table/convert.h"
#include "plait/table/gather_rows.h"

namespace plait {
namespace {

bool is_hot(const StoredRows& rows, std::uint64_t id) {
  return rows.hot != nullptr && (rows.hot[id / 64].bits >> id % 64 & 1) != 0;
}

std::uint64_t hot_ids_below(const StoredRows& rows, std::uint64_t id) {
  std::uint64_t count = 0;
  for (std::uint64_t other = 0; other < id; ++other) count += is_hot(rows, other) ? 1 : 0;
  return count;
}

RowPlace place_of_id(const StoredRows& rows, std::uint64_t id) {
  if (is_hot(rows, id)) return {static_cast<std::uint32_t>(rows.ranks), hot_ids_below(rows, id)};
  if (rows.owner != nullptr) return {rows.owner[id], rows.row[id]};
  if (rows.dealt != 0) {
    const auto ranks = static_cast<std::uint64_t>(rows.ranks);
    const std::uint64_t round = id / ranks;
    return {static_cast<std::uint32_t>((id + first_of_round(round, ranks)) % ranks), round};
  }
  int rank = 0;
  while (id >= rows.starts[static_cast<std::size_t>(rank) + 1]) ++rank;
  return {static_cast<std::uint32_t>(rank), id - rows.starts[rank]};
}

const std::byte* row_at(const StoredRows& rows, std::uint64_t id) {
  const RowPlace place = place_of_id(rows, id);
  return rows.base[place.rank] + place.row * rows.stride;
}

void count_row(const GatherRows& a, std::uint64_t id) {
  const auto rank = static_cast<int>(place_of_id(a.from, id).rank);
  if (rank == a.from.ranks) ++a.counts->hot;
  if (rank != a.from.ranks && rank != a.from.own) ++a.counts->crossed;
}

}  // namespace

void gather_rows_reference(const GatherRows& a) {
  for (std::uint64_t i = 0; i < a.count; ++i) {
    const std::byte* const row = row_at(a.from, a.ids[i]);
    std::byte* const out = a.out + i * a.out_stride;
    if (a.counts != nullptr) count_row(a, a.ids[i]);
    if (a.type == DType::raw) {
      for (std::uint64_t k = 0; k < a.width; ++k) out[k] = row[k];
      continue;
    }
    for (std::uint64_t k = 0; k < a.width; ++k) {
      const float value = stored_float(row, a.type, k, scale_at(row, a.type, a.width));
      std::memcpy(out + k * sizeof(float), &value, sizeof(float));
    }
  }
}

void add_rows_reference(const AddRows& a) {
  for (std::uint64_t i = 0; i < a.count; ++i) {
    auto* const row = reinterpret_cast<float*>(const_cast<std::byte*>(row_at(a.to, a.ids[i])));
    for (std::uint64_t k = 0; k < a.width; ++k) row[k] += a.rows[i * a.rows_stride + k];
  }
}

}  // namespace plait
