// MGG's files of numbers. The oracle writes them number by number; writing is tested through the
// program, against a reader in Python.
#include "plait/io/mgg.h"

#include "tests/io/npy_file.h"
#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

template <class T>
Buffer<std::byte> raw(const std::vector<std::int64_t>& values) {
  return to_bytes(bytes_of(std::vector<T>(values.begin(), values.end())));
}

const std::vector<std::int64_t> kOffsets{0, 2, 2, 5}, kNeighbours{0, 2, 1, 1, 2},
    kWeights{1, 1, -3, 8, 1};
const PlainGraph kPlain{3, false, {{0, 0, 1}, {0, 2, 1}, {2, 1, 1}, {2, 1, 1}, {2, 2, 1}}};
const PlainGraph kWeighted{3, true, {{0, 0, 1}, {0, 2, 1}, {2, 1, -3}, {2, 1, 8}, {2, 2, 1}}};

template <class Offset, class Id, class Weight>
void expect_read() {
  const auto offsets = raw<Offset>(kOffsets), ids = raw<Id>(kNeighbours),
             weights = raw<Weight>(kWeights), ones = raw<Weight>({1, 1, 1, 1, 1});
  const auto read = [&](std::span<const std::byte> w) {
    return plain(parse_mgg({offsets.span(), ids.span(), w}, "x").graph);
  };
  EXPECT_EQ(read({}), kPlain);
  EXPECT_EQ(read(weights.span()), kWeighted);
  EXPECT_EQ(read(ones.span()), kPlain) << "weights that are all 1 are none";
}

TEST(Mgg, NumbersOfAnyWidth) {
  expect_read<std::int64_t, std::int64_t, std::int32_t>();  // MGG's own
  expect_read<std::int64_t, std::int32_t, std::int32_t>();
  expect_read<std::int32_t, std::int64_t, std::int64_t>();
  expect_read<std::int32_t, std::int32_t, std::int64_t>();
}

TEST(Mgg, DamagedFilesGiveErrorsOnly) {
  const auto offsets = raw<std::int64_t>(kOffsets), ids = raw<std::int64_t>(kNeighbours),
             weights = raw<std::int32_t>(kWeights);
  const auto read = [](MggBytes bytes) { parse_mgg(bytes, "x"); };
  const auto with_offsets = [&](const auto& b) { read({b.span(), ids.span(), weights.span()}); };
  const auto with_ids = [&](const auto& b) { read({offsets.span(), b.span(), weights.span()}); };
  const auto with_weights = [&](const auto& b) {
    if (!b.empty()) read({offsets.span(), ids.span(), b.span()});
  };
  expect_every_truncation_refused(offsets.span(), with_offsets);
  EXPECT_GT(count_refused_flips(offsets.span(), with_offsets), 4 * offsets.size());
  for (std::size_t size = 0; size < ids.size(); ++size)
    EXPECT_EQ(reads(first_bytes(ids.span(), size), with_ids), size == 20) << size;  // int32
  EXPECT_GT(count_refused_flips(ids.span(), with_ids), 4 * ids.size());
  for (std::size_t size = 1; size < weights.size(); ++size)
    EXPECT_FALSE(reads(first_bytes(weights.span(), size), with_weights)) << size;
}

}  // namespace
}  // namespace plait
