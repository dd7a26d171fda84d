// Gathers and sums of rows on the GPU, with the bits of the CPU's plain loops. Ranks are several
// arrays of one GPU.
#include "plait/table/cuda/gather_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "plait/base/cuda/cuda.cuh"
#include "tests/gpu/table/device_rows.h"

namespace plait {
namespace {

using test::DeviceRows;
using test::RankedRows;
using test::RowsCase;

constexpr std::byte kUntouched{0x5a};

struct Case {
  RowsCase rows;
  std::uint64_t width = 4;
  DType type = DType::raw;
  std::size_t ids = 700;
  std::uint64_t out_before = 0, out_gap = 0;  // bytes
};

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << "width " << c.width << " type " << static_cast<int>(c.type)
                                  << " ranks " << c.rows.ranks << " stride " << c.rows.stride
                                  << " before " << c.rows.before << " scattered "
                                  << c.rows.scattered << " out " << c.out_before << ' '
                                  << c.out_gap);
  const RankedRows rows(c.rows);
  const DeviceRows there(rows, c.rows);
  const auto ids = test::random_ids(c.rows.rows, c.ids, 3);
  const DeviceArray<std::uint64_t> ids_there{std::span(ids)};
  const std::uint64_t stride = c.width * (c.type == DType::raw ? 1 : 4) + c.out_gap;
  std::vector<std::byte> out(c.out_before + ids.size() * stride, kUntouched);
  DeviceArray<std::byte> out_there{std::span<const std::byte>(out)};
  GatherRows args{.from = rows.view,
                  .ids = ids.data(),
                  .count = ids.size(),
                  .width = c.width,
                  .type = c.type,
                  .out = out.data() + c.out_before,
                  .out_stride = stride};
  gather_rows_reference(args);
  args.from = there.view, args.ids = ids_there.data();
  args.out = out_there.data() + c.out_before;
  gpu_gather_rows(args, nullptr);
  const auto found = out_there.to_host();
  if (c.type == DType::raw || c.type == DType::f32 || c.type == DType::bf16)
    ASSERT_EQ(found, out);
  else
    test::expect_same_floats(found, out, c.out_before);
}

// The results are those of dropout behind the gather.
TEST(GatherRowsCuda, DropsWhileItGathers) {
  const Dropout dropout(11, 0.3f);
  const DropoutStep step{&dropout, 5, 2};
  for (const DType type : test::number_types())
    for (const std::uint64_t width : {1, 2, 3, 4, 7, 19, 100, 102, 264})
      for (const std::uint64_t gap : {0, 1}) {
        SCOPED_TRACE(testing::Message() << "width " << width << " type " << static_cast<int>(type));
        const RowsCase of{.ranks = 3, .stride = (stored_bytes(type, width) + 15) / 16 * 16};
        const RankedRows rows(of);
        const DeviceRows there(rows, of);
        const auto ids = test::random_ids(of.rows, 500, 3), numbers = test::random_ids(900, 500, 4);
        const DeviceArray<std::uint64_t> ids_there{std::span(ids)},
            numbers_there{std::span(numbers)};
        const std::uint64_t stride = width + gap;
        DeviceArray<float> plain(ids.size() * width), found(ids.size() * stride);
        GatherRows args{.from = there.view,
                        .ids = ids_there.data(),
                        .count = ids.size(),
                        .width = width,
                        .type = type,
                        .out = reinterpret_cast<std::byte*>(plain.data()),
                        .out_stride = width * 4};
        gpu_gather_rows(args, nullptr);
        const auto gathered = plain.to_host();
        std::vector<float> expected(gathered.size());
        drop_rows(step, {numbers.data(), ids.size(), width, gathered.data(), expected.data()});
        args.out = reinterpret_cast<std::byte*>(found.data()), args.out_stride = stride * 4;
        gpu_gather_rows(args, {dropout, 5, 2, numbers_there.data()}, nullptr);
        const auto dropped = found.to_host();
        for (std::size_t i = 0; i < ids.size(); ++i)
          for (std::size_t c = 0; c < width; ++c) {
            const float a = dropped[i * stride + c], b = expected[i * width + c];
            ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << i << ' ' << c;
          }
      }
}

TEST(GatherRowsCuda, AllWidths) {
  for (std::uint64_t width = 1; width <= 200; ++width)
    check({.rows = {.ranks = 1 + static_cast<int>(width % 4),
                    .stride = width,
                    .scattered = width % 8 > 3},
           .width = width,
           .ids = 300});
}

TEST(GatherRowsCuda, WideRowsOfAllAlignments) {
  for (const std::uint64_t width : {255, 256, 500, 512, 1000, 1023, 1024, 4096})
    for (const std::uint64_t before : {0, 1, 2, 4, 8})
      for (const std::uint64_t gap : {0, 1, 4, 12})
        check({.rows = {.ranks = 3, .stride = width + gap, .before = before},
               .width = width,
               .ids = 150,
               .out_before = gap,
               .out_gap = before});
}

TEST(GatherRowsCuda, Converts) {
  for (const DType type : test::number_types())
    for (const std::uint64_t width : {1, 2, 3, 7, 8, 16, 100, 128, 264})
      for (const std::uint64_t before : {0, 4, 16})
        check({.rows = {.ranks = 2,
                        .stride = (stored_bytes(type, width) + 3) / 4 * 4 + before,
                        .before = before},
               .width = width,
               .type = type,
               .out_gap = before});
}

TEST(GatherRowsCuda, DealtOutAndHotRows) {
  for (const int ranks : {1, 2, 3, 8, kMostStoreRanks})
    for (const bool dealt : {false, true})
      for (const std::uint64_t width : {4, 12, 64})
        check({.rows = {.ranks = ranks,
                        .rows = 1000,
                        .stride = width,
                        .scattered = !dealt && ranks == 3,
                        .dealt = dealt,
                        .hot = true},
               .width = width,
               .ids = 5000});
}

TEST(GatherRowsCuda, CountsAsTheReference) {
  for (const std::uint64_t width : {4, 256})
    for (const std::size_t count : {1, 31, 5000, 200000}) {
      const RowsCase c{.ranks = 3, .rows = 900, .stride = width, .scattered = true, .hot = true};
      RankedRows rows(c);
      rows.view.own = 2;
      const DeviceRows there(rows, c);
      const auto ids = test::random_ids(900, count, 3);
      const DeviceArray<std::uint64_t> ids_there{std::span(ids)};
      DeviceArray<std::byte> out(count * width);
      std::vector<std::byte> out_here(count * width);
      const std::vector<GatherCounts> before{{10, 20}};
      DeviceArray<GatherCounts> counts{std::span(before)};
      GatherCounts expected = before[0];
      GatherRows args{.from = there.view,
                      .ids = ids_there.data(),
                      .count = count,
                      .width = width,
                      .out = out.data(),
                      .out_stride = width,
                      .counts = counts.data()};
      gpu_gather_rows(args, nullptr);
      args.from = rows.view, args.ids = ids.data(), args.out = out_here.data();
      args.counts = &expected;
      gather_rows_reference(args);
      EXPECT_EQ(counts.to_host()[0].hot, expected.hot) << width << ' ' << count;
      EXPECT_EQ(counts.to_host()[0].crossed, expected.crossed) << width << ' ' << count;
    }
}

TEST(GatherRowsCuda, ManyIdsAndNone) {
  check({.rows = {.ranks = 4, .rows = 5000, .stride = 64}, .width = 64, .ids = 300000});
  check({.rows = {.ranks = 4, .rows = 9, .stride = 4}, .width = 4, .ids = 3000001});
  check({.rows = {.ranks = 2, .rows = 9, .stride = 4}, .width = 4, .ids = 0});
  check({.rows = {.ranks = 2, .rows = 9, .stride = 4}, .width = 0, .ids = 5, .out_gap = 3});
  check({.rows = {.ranks = kMostStoreRanks, .rows = 900, .stride = 32}, .width = 32});
}

using Add = std::function<void(const AddRows&)>;

// Adds rows to the same memory on the GPU and by plain loops. `exact`: sums do not depend on their
// order.
void check_sums(const RowsCase& c, std::uint64_t width, std::size_t count, bool exact,
                const Add& add) {
  SCOPED_TRACE(testing::Message() << "ranks " << c.ranks << " rows " << c.rows << " width " << width
                                  << " ids " << count);
  RankedRows rows(c);
  rows.fill_floats(c.before);
  DeviceRows there(rows, c);
  const auto ids = test::random_ids(c.rows, count, 5);
  std::vector<float> values(ids.size() * (width + 1));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] =
        exact ? static_cast<float>(k % 29) / 8 - 1 : 1 / (static_cast<float>(k % 1009) - 500.5f);
  const DeviceArray<std::uint64_t> ids_there{std::span<const std::uint64_t>(ids)};
  const DeviceArray<float> values_there{std::span<const float>(values)};
  AddRows args{.to = rows.view,
               .ids = ids.data(),
               .count = ids.size(),
               .width = width,
               .rows = values.data(),
               .rows_stride = width + 1};
  add_rows_reference(args);
  args.to = there.view, args.ids = ids_there.data(), args.rows = values_there.data();
  add(args);
  for (std::size_t r = 0; r < rows.memory.size(); ++r)
    ASSERT_EQ(there.memory[r].to_host(), rows.memory[r]) << "rank " << r;
}

RowsCase rows_of(int ranks, std::uint64_t rows, std::uint64_t width) {
  return {.ranks = ranks, .rows = rows, .stride = width * 4 + 8, .before = 4};
}

TEST(AddRowsCuda, AtomicSumsEqualTheReference) {
  for (const int ranks : {1, 3})
    for (const std::uint64_t width : {1, 2, 5, 16, 31, 32, 33, 100, 300})
      check_sums(rows_of(ranks, 50, width), width, 900, true,
                 [](const AddRows& args) { gpu_add_rows(args, nullptr); });
}

TEST(AddRowsCuda, OrderedSumsHaveTheBitsOfTheReference) {
  GpuOrderedSums sums;
  for (const int ranks : {1, 3})
    for (const std::uint64_t width : {1, 2, 5, 16, 33, 100})
      for (const std::uint64_t rows : {1, 2, 50, 4096})
        for (const std::size_t count : {0, 1, 6, 900, 300})
          check_sums(rows_of(ranks, rows, width), width, count, false,
                     [&](const AddRows& args) { sums.add(args, nullptr); });
}

}  // namespace
}  // namespace plait
