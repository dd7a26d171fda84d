#include "plait/table/table_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "plait/base/error.h"
#include "plait/base/names.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"

namespace plait {
namespace {

constexpr Names<TablePlace, 4> kPlaces{"place", {"gpu", "host", "replicated", "mapped"}};

void require_settings(const TableSettings& s, int ranks) {
  require<UsageError>(ranks >= 1 && ranks <= kMostStoreRanks,
                      "rows are stored on 1 to {} ranks, but {} were asked for", kMostStoreRanks,
                      ranks);
  require<DoesNotFitError>(s.rows < std::uint64_t{1} << 57 && s.width < std::uint64_t{1} << 40,
                           "a table of {} rows of {} elements fits in no memory", s.rows, s.width);
  if (s.division != TableDivision::owners) return;
  require<UsageError>(s.owners != nullptr,
                      "a table is divided by owners, but no partition is given");
  require<UsageError>(s.owners->parts() == ranks && s.owners->vertices() == s.rows,
                      "a table of {} rows over {} ranks is divided by a partition of {} vertices "
                      "into {} parts",
                      s.rows, ranks, s.owners->vertices(), s.owners->parts());
}

bool is_whole(const TableSettings& s, int ranks) {
  return ranks == 1 || s.place == TablePlace::replicated || s.place == TablePlace::mapped;
}

// Features of one form: dense rows are copied, or made of wider or fewer numbers.
void copy_dense(const Array<float>& values, std::uint64_t width, std::uint64_t id, float* out) {
  std::memcpy(out, values.data() + id * width, width * sizeof(float));
}
void copy_bf16(const Array<BFloat16>& values, std::uint64_t width, std::uint64_t id, float* out) {
  for (std::uint64_t k = 0; k < width; ++k) out[k] = to_float(values[id * width + k]);
}
void copy_sparse(const Csr32& rows, std::uint64_t width, std::uint64_t id, float* out) {
  std::fill_n(out, width, 0.0f);
  for (EdgeOffset e = rows.offsets[id]; e < rows.offsets[id + 1]; ++e)
    out[rows.neighbours[e]] += rows.weight(e);
}

}  // namespace

std::string_view to_string(TablePlace place) { return kPlaces.of(place); }

TableSource rows_of(const Features& features) {
  return [features](std::span<const std::uint64_t> ids, std::byte* rows) {
    auto* out = reinterpret_cast<float*>(rows);
    for (const std::uint64_t id : ids) {
      if (features.is_sparse())
        copy_sparse(features.sparse, features.width, id, out);
      else if (!features.bf16.empty())
        copy_bf16(features.bf16, features.width, id, out);
      else
        copy_dense(features.f32, features.width, id, out);
      out += features.width;
    }
  };
}

GatherRows TableRows::gather(const std::uint64_t* ids, std::uint64_t count, void* out,
                             std::uint64_t out_stride) const {
  return {.from = rows,
          .ids = ids,
          .count = count,
          .width = width,
          .type = type,
          .out = static_cast<std::byte*>(out),
          .out_stride = out_stride * unstored_size(type),
          .counts = counts};
}

TableLayout::TableLayout(const TableSettings& s, int ranks) {
  require_settings(s, ranks);
  source_bytes_ = s.width * unstored_size(s.type);
  view_.stride = stored_stride(s.type, s.width);
  view_.rows = s.rows;
  view_.ranks = is_whole(s, ranks) ? 1 : ranks;
  const auto parts = static_cast<std::uint64_t>(view_.ranks);
  // Ranges are the default, also of a whole table, and bounds for counting rows that are dealt out.
  for (std::uint64_t part = 0; part <= parts; ++part)
    view_.starts[part] =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(s.rows) * part / parts);
  if (parts == 1) return;
  if (s.division == TableDivision::hash) view_.dealt = ~std::uint64_t{0} / parts + 1;
  if (s.division != TableDivision::owners) return;
  owners_ = s.owners;
  if (owners_->is_contiguous()) {
    for (std::uint64_t part = 0; part < parts; ++part)
      view_.starts[part + 1] = view_.starts[part] + owners_->size(static_cast<int>(part));
  } else {
    view_.owner = owners_->owners().data();
    view_.row = owners_->rows().data();
  }
}

std::uint64_t TableLayout::size(int part) const {
  if (view_.owner != nullptr) return owners_->size(part);
  const auto p = static_cast<std::size_t>(part);
  if (view_.dealt == 0) return view_.starts[p + 1] - view_.starts[p];
  const auto parts = static_cast<std::uint64_t>(view_.ranks);
  const std::uint64_t rounds = view_.rows / parts;
  std::uint64_t last = 0;  // the id of the round that is not full
  ids(part, rounds, {&last, 1});
  return rounds + (last < view_.rows ? 1 : 0);
}

std::uint64_t TableLayout::largest() const {
  std::uint64_t most = 0;
  for (int part = 0; part < view_.ranks; ++part) most = std::max(most, size(part));
  return most;
}

std::uint64_t TableLayout::part_bytes() const { return (Bytes(largest()) * stride()).value; }

void TableLayout::read(const TableSource& source, int part, std::uint64_t first,
                       std::uint64_t count, std::byte* to) const {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 18;
  const std::uint64_t grain = kBytes / std::max<std::uint64_t>(source_bytes_, 64);
  parallel_blocks(count, std::max<std::uint64_t>(grain, 1),
                  [&](std::size_t begin, std::size_t end) {
                    std::vector<std::uint64_t> block(end - begin);
                    ids(part, first + begin, block);
                    source(block, to + begin * source_bytes_);
                  });
}

void TableLayout::ids(int part, std::uint64_t first, std::span<std::uint64_t> out) const {
  if (view_.owner != nullptr) {
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = owners_->vertex(part, first + k);
    return;
  }
  if (view_.dealt == 0) {
    std::iota(out.begin(), out.end(), view_.starts[static_cast<std::size_t>(part)] + first);
    return;
  }
  const auto parts = static_cast<std::uint64_t>(view_.ranks), p = static_cast<std::uint64_t>(part);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const std::uint64_t round = first + k;
    out[k] = round * parts + (p + parts - first_of_round(round, parts)) % parts;
  }
}

}  // namespace plait
