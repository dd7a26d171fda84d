// Gathers of distinct rows: results of plain loops, and each row crosses once.
#include "plait/table/cuda/distinct_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "plait/base/error.h"
#include "tests/gpu/table/device_rows.h"

namespace plait {
namespace {

using test::DeviceRows;
using test::RankedRows;
using test::RowsCase;

constexpr std::byte kUntouched{0x5a};

void check(const RowsCase& c, std::size_t count, DType type, GpuDistinctGather& gather) {
  SCOPED_TRACE(testing::Message() << c.ranks << " ranks, " << c.rows << " rows, " << count
                                  << " ids, type " << static_cast<int>(type));
  RankedRows rows(c);
  rows.view.own = c.ranks - 1;
  const DeviceRows there(rows, c);
  const std::uint64_t width = 9, row = width * (type == DType::raw ? 1 : 4), stride = row + 4;
  const auto ids = test::random_ids(c.rows, count, 3);
  const DeviceArray<std::uint64_t> ids_there{std::span(ids)};
  std::vector<std::byte> out(ids.size() * stride, kUntouched);
  DeviceArray<std::byte> out_there{std::span<const std::byte>(out)};
  const std::vector<GatherCounts> none(1);
  DeviceArray<GatherCounts> counts{std::span(none)};
  GatherRows args{.from = there.view,
                  .ids = ids_there.data(),
                  .count = ids.size(),
                  .width = width,
                  .type = type,
                  .out = out_there.data(),
                  .out_stride = stride,
                  .counts = counts.data()};
  gather.gather(args, nullptr);
  args.from = rows.view, args.ids = ids.data(), args.out = out.data(), args.counts = nullptr;
  gather_rows_reference(args);
  const auto found = out_there.to_host();
  if (type == DType::raw)
    ASSERT_EQ(found, out);
  else
    test::expect_same_floats(found, out);
  std::set<std::uint64_t> crossing;
  std::uint64_t hot = 0;
  for (const std::uint64_t id : ids) {
    const RowPlace place = place_of(rows.view, rows.view.starts, id);
    if (crosses(rows.view, place)) crossing.insert(id);
    hot += static_cast<int>(place.rank) == c.ranks;
  }
  EXPECT_EQ(counts.to_host()[0].crossed, crossing.size());
  EXPECT_EQ(counts.to_host()[0].hot, hot);
}

TEST(DistinctRowsCuda, CrossOnce) {
  GpuDistinctGather gather(100000);
  for (const int ranks : {1, 2, 5})
    for (const std::uint64_t rows : {1, 3, 200, 90000})
      for (const std::size_t count : {0, 1, 255, 256, 257, 100000})
        for (const DType type : {DType::raw, DType::int8})
          check({.ranks = ranks,
                 .rows = rows,
                 .stride = 16,
                 .scattered = rows == 3,
                 .dealt = rows == 200,
                 .hot = count > 256},
                count, type, gather);
}

TEST(DistinctRowsCuda, RefusesMoreIdsThanForeseen) {
  GpuDistinctGather gather(10);
  const DeviceArray<std::uint64_t> ids(11);
  const GatherRows args{.ids = ids.data(), .count = 11, .width = 1};
  EXPECT_THROW(gather.gather(args, nullptr), UsageError);
  EXPECT_THROW(GpuDistinctGather(std::uint64_t{1} << 30), DoesNotFitError);
}

}  // namespace
}  // namespace plait
