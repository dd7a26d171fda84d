// Rows copied on the GPU: equal to the same loops on the CPU, padding included.
#include "plait/kernels/cuda/copy_rows.cuh"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "tests/gpu/device_matrix.h"

namespace plait {
namespace {

constexpr std::uint64_t kRows = 37;

struct Case {
  std::uint64_t width;
  DType type;
  std::uint64_t gap, before;  // floats after each row of `from`, and before the first
  bool chosen, scaled;
  unsigned blocks;
};

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << "width " << c.width << " " << to_string(c.type) << " gap "
                                  << c.gap << " before " << c.before << " chosen " << c.chosen
                                  << " scaled " << c.scaled << " blocks " << c.blocks);
  const std::uint64_t stride = c.width + c.gap, out_stride = row_stride(c.width, c.type);
  const auto from = test::exact_values(c.before + kRows * stride, 1);
  const auto scale = test::exact_values(kRows, 2);
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t k = 0; k < kRows; ++k) chosen.push_back(c.chosen ? k * 5 % kRows : k);

  const DeviceArray<float> from_there(from), scale_there(scale);
  const DeviceArray<std::uint32_t> chosen_there{std::span<const std::uint32_t>(chosen)};
  DeviceArray<std::byte> to(std::vector<std::byte>(kRows * out_stride * size_of(c.type)));
  copy_rows({.from = from_there.data() + c.before,
             .from_stride = stride,
             .rows = c.chosen ? chosen_there.data() : nullptr,
             .scale = c.scaled ? scale_there.data() : nullptr,
             .count = kRows,
             .width = c.width,
             .to = to.data(),
             .type = c.type,
             .blocks = c.blocks},
            nullptr);
  const std::vector<float> found = test::read_as(c.type, to.to_host());
  for (std::uint64_t k = 0; k < kRows; ++k)
    for (std::uint64_t j = 0; j < c.width; ++j) {
      const float value =
          from[c.before + chosen[k] * stride + j] * (c.scaled ? scale[chosen[k]] : 1.0f);
      const auto stored = test::read_as(c.type, test::stored_as(c.type, std::span(&value, 1)));
      ASSERT_EQ(found[k * out_stride + j], stored[0]) << "row " << k << " column " << j;
    }
}

TEST(CopyRowsCuda, AllWidthsFromAnywhere) {
  for (std::uint64_t width = 1; width <= 130; ++width)
    for (const DType type : {DType::f32, DType::bf16})
      for (const std::uint64_t gap : {std::uint64_t{0}, row_stride(width) - width, width + 8})
        check({.width = width,
               .type = type,
               .gap = gap,
               .before = width / 4 % 3,
               .chosen = width % 2 == 0,
               .scaled = width % 3 == 0,
               .blocks = width % 5 == 0 ? 1u : 0u});
}

TEST(CopyRowsCuda, RefusesOtherTypes) {
  EXPECT_THROW(copy_rows({.type = DType::f16}, nullptr), UsageError);
}

}  // namespace
}  // namespace plait
