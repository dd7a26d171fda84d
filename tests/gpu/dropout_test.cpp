// Dropout and products with sparse features on the GPU: the same bits as on the CPU.
#include "plait/kernels/dropout.h"

#include <gtest/gtest.h>

#include <bit>

#include "plait/graph/generate.h"
#include "plait/graph/shapes.h"
#include "plait/kernels/cuda/dropout.h"
#include "plait/kernels/cuda/sparse.h"
#include "plait/kernels/spmm.h"
#include "tests/gpu/device_matrix.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

// Negative zeros, which dropped negative numbers become, are told from zeros.
std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// Ids are far apart, so that the whole of an id is seen to count.
std::vector<std::uint64_t> some_ids(std::size_t count) {
  std::vector<std::uint64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = (i % 3 << 40) + i * 7;
  return ids;
}

TEST(GpuDropout, OfRowsHasTheBitsOfTheCpu) {
  const std::vector<std::uint64_t> ids = some_ids(301);
  const DeviceArray<std::uint64_t> ids_there(ids);
  for (const float p : {0.1f, 0.5f, 0.9f})
    for (const std::uint64_t width : {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 128, 130, 500, 1433})
      for (const std::size_t offset : {0, 1}) {  // of x and y from a multiple of 16 bytes
        const Dropout dropout(11, p);
        const DropoutStep step{&dropout, 70000, 3};
        const auto x = test::exact_values(ids.size() * width + offset, 5);
        std::vector<float> y(x.size(), -7);
        const DeviceArray<float> x_there(x);
        DeviceArray<float> y_there(y), back_there(y);
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(testing::Message() << width << ' ' << offset << ' ' << p << ' ' << relu);
          drop_rows(step,
                    {ids.data(), ids.size(), width, x.data() + offset, y.data() + offset, relu});
          gpu_drop_rows(step,
                        {ids_there.data(), ids.size(), width, x_there.data() + offset,
                         y_there.data() + offset, relu},
                        nullptr);
          ASSERT_EQ(bits_of(y_there.to_host()), bits_of(y));
        }
        std::vector<float> back(x.size(), -7);
        const std::uint64_t count = x.size() - offset;
        drop_relu_gradient(
            {count, y.data() + offset, x.data() + offset, back.data() + offset, dropout.scale()});
        gpu_drop_relu_gradient({count, y_there.data() + offset, x_there.data() + offset,
                                back_there.data() + offset, dropout.scale()},
                               nullptr);
        ASSERT_EQ(bits_of(back_there.to_host()), bits_of(back)) << width << ' ' << offset;
      }
}

TEST(GpuDropout, OfNothing) {
  const Dropout dropout(1, 0.5f);
  gpu_drop_rows({&dropout}, {.rows = 0, .width = 4}, nullptr);
  gpu_drop_rows({&dropout}, {.rows = 4, .width = 0}, nullptr);
}

std::vector<float> dropped_on_cpu(const Csr32& matrix, const DropoutStep& step,
                                  const std::vector<std::uint64_t>& ids) {
  std::vector<float> values(matrix.weights.begin(), matrix.weights.end());
  for (std::uint64_t i = 0; i < matrix.vertices(); ++i)
    step.dropout->apply(ids[i], step.epoch, step.layer, matrix.row(i),
                        {values.data() + matrix.offsets[i], matrix.degree(i)});
  return values;
}

std::vector<float> product_on_cpu(const Csr32& matrix, const std::vector<float>& values,
                                  const std::vector<float>& x, std::uint64_t width) {
  std::vector<float> y(matrix.vertices() * width);
  spmm_reference({.begin = matrix.offsets.span().first(matrix.vertices()),
                  .end = matrix.offsets.span().subspan(1),
                  .columns = matrix.neighbours.data(),
                  .weights = values.data(),
                  .x = {.base = x.data(), .stride = width},
                  .width = width,
                  .y = y.data(),
                  .y_stride = width});
  return y;
}

// Some rows have no entries, and one has so many that it is cut.
TEST(GpuSparse, DropsAndMultipliesLikeTheCpu) {
  const Csr32 hub = std::get<Csr32>(build_csr(generate_star(5000)));
  const Csr32 star{hub.offsets, hub.neighbours, std::vector<float>(hub.edges(), 0.25f)};
  for (const Csr32& matrix : {test::random_csr<std::uint32_t>(400, 900, 3, true), star}) {
    const Dropout dropout(3, 0.5f);  // scales by 2: sums of the small values stay exact
    const DropoutStep step{&dropout, 9, 0};
    const std::vector<std::uint64_t> ids = some_ids(matrix.vertices());
    const DeviceArray<std::uint64_t> ids_there(ids);
    const DeviceArray<float> values(matrix.weights.span());
    DeviceArray<float> dropped(values.size());
    const GpuSparse sparse(matrix, matrix.vertices());
    EXPECT_EQ(sparse.rows(), matrix.vertices());
    sparse.drop(step, ids_there.data(), values.data(), dropped.data(), nullptr);
    const std::vector<float> wanted = dropped_on_cpu(matrix, step, ids);
    EXPECT_EQ(bits_of(dropped.to_host()), bits_of(wanted));

    for (const std::uint64_t width : {1, 7, 16, 40}) {
      const auto x = test::exact_values(matrix.vertices() * width, 8);
      const DeviceArray<float> x_there(x);
      DeviceArray<float> y(matrix.vertices() * width), sums(sparse.scratch(width));
      sparse.multiply({dropped.data(), x_there.data(), width, y.data(), sums.data()}, nullptr);
      EXPECT_EQ(y.to_host(), product_on_cpu(matrix, wanted, x, width)) << width;
    }
  }
}

}  // namespace
}  // namespace plait
