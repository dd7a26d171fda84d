// Arrays over ranks with a GPU each are the content, byte by byte, at consecutive addresses. Ranks
// share GPUs where there are fewer.
#include "plait/table/sharded/cuda/gpu_array.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/symmetric/agreement.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

std::vector<std::byte> made_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 12345;
  for (std::byte& b : bytes)
    b = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

void check_array(World& world, std::size_t size) {
  const std::vector<std::byte> content = made_bytes(size);
  for (const bool sharded : {false, true}) {
    const auto array = sharded ? GpuArray::sharded(world, content) : GpuArray::replicated(content);
    std::vector<std::byte> found(size);
    if (size > 0) copy_to_host(found.data(), array->data(), size);
    expect(found == content, fmt::format("{} bytes, sharded {}", size, sharded));
    world.barrier();  // no rank frees its part while another reads it
  }
}

const RankProgram kArrays("gpu arrays", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  constexpr std::size_t kPage = std::size_t{2} << 20;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPage - 1, kPage, kPage + 1,
                                 3 * kPage + 5, 7 * kPage, 40 * kPage + 12345})
    check_array(world, size);
});

TEST(GpuArray, IsReadByAllRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    const Outcome outcome =
        run_job({.program = "gpu arrays", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

const RankProgram kTooLarge("gpu array too large", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  // Only its size is looked at before it is refused.
  static std::byte first{};
  GpuArray::sharded(world, std::span(&first, std::size_t{1} << 48));
});

TEST(GpuArray, ThatDoesNotFitIsRefusedOnAllRanks) {
  const Outcome outcome =
      run_job({.program = "gpu array too large", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 4) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
