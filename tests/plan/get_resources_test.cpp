#include "plait/plan/get_resources.h"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/kernels/cuda/get_occupancy.h"

namespace plait {
namespace {

constexpr GetTuning kAsync{.asynchronous = true};

TEST(GetResources, SharedMemoryHoldsTwoBatchesPerWarp) {
  // 4 warps x 2 batches x 4 pieces x 32 lanes, of 16 and of 4 bytes
  EXPECT_EQ(get_block(kAsync, 16).shared, 16384u);
  EXPECT_EQ(get_block(kAsync, 4).shared, 4096u);
  EXPECT_EQ(get_block({.wpb = 16, .asynchronous = true}, 16).shared, 65536u);
  EXPECT_EQ(get_block({.wpb = 1}, 16).shared, 0u);
  for (const bool asynchronous : {false, true}) {
    EXPECT_EQ(get_block({.asynchronous = asynchronous, .read_by = ReadBy::thread}, 16).shared,
              16384u);
    EXPECT_EQ(get_block({.asynchronous = asynchronous, .read_by = ReadBy::block}, 16).shared,
              16384u + 4 * 32 * 16);
    // NVSHMEM's functions write to shared memory whoever calls them.
    constexpr auto kNvshmem = ReadWith::nvshmem;
    EXPECT_EQ(get_block({.asynchronous = asynchronous, .read_with = kNvshmem}, 16).shared, 16384u);
    EXPECT_EQ(get_block({.wpb = 16, .asynchronous = asynchronous, .read_with = kNvshmem}, 4).shared,
              16384u);
    for (const ReadBy read_by : {ReadBy::thread, ReadBy::block})
      EXPECT_EQ(
          get_block({.asynchronous = asynchronous, .read_by = read_by, .read_with = kNvshmem}, 16)
              .shared,
          get_block({.asynchronous = asynchronous, .read_by = read_by}, 16).shared);
  }
  // Unlike in MGG's formula, neither ps nor the width counts.
  EXPECT_EQ(get_block({.ps = 512, .dist = 16, .asynchronous = true}, 16).shared, 16384u);
}

TEST(GetResources, BlocksAtOnceAreThoseOfTheScarcestResource) {
  const GpuLimits h100;
  // 64 registers x 128 threads: 8 blocks. 17 KiB each: 13. 4 of 64 warps: 16.
  EXPECT_EQ(blocks_at_once(get_block(kAsync, 16), h100), 8u);
  EXPECT_EQ(blocks_at_once(get_block({.wpb = 16, .asynchronous = true}, 16), h100), 2u);
  EXPECT_EQ(blocks_at_once(get_block({.wpb = 1, .asynchronous = true}, 16), h100), 32u);
  EXPECT_EQ(blocks_at_once(get_block(kAsync, 16), {.shared = 34 << 10}), 2u);
  EXPECT_EQ(blocks_at_once(get_block({}, 16), {.warps = 12}), 3u);
  EXPECT_EQ(blocks_at_once(get_block({}, 16), {.blocks = 1}), 1u);
}

TEST(GetResources, OccupancyIsAShareOfWarps) {
  EXPECT_EQ((GetOccupancy{.blocks = 5, .warps = 4, .most_warps = 64}).share(), 0.3125);
}

std::string refusal(const GetBlock& block, const GpuLimits& limits) {
  try {
    require_runs(block, limits);
  } catch (const DoesNotFitError& error) {
    return error.what();
  }
  return "";
}

// compute capability 7.5: 64 KiB per multiprocessor
TEST(GetResources, RefusesABlockThatCannotRunAndNamesTheLimit) {
  const GpuLimits small{.shared_of_block = 64 << 10, .shared = 64 << 10, .shared_kept = 0};
  const GetTuning by_block{.wpb = 16, .read_by = ReadBy::block};
  EXPECT_EQ(refusal(get_block(by_block, 16), small),
            "16 warps per block take 73728 bytes of shared memory, of which this GPU has 65536; "
            "take a smaller wpb");
  EXPECT_EQ(blocks_at_once(get_block(by_block, 16), small), 0u);
  EXPECT_EQ(refusal(get_block({.wpb = 16, .asynchronous = true}, 16), small), "");
  const GpuLimits smaller{.shared_of_block = 48 << 10, .shared = 48 << 10, .shared_kept = 0};
  EXPECT_EQ(refusal(get_block({.wpb = 13, .read_with = ReadWith::nvshmem}, 16), smaller),
            "13 warps per block take 53248 bytes of shared memory, of which this GPU has 49152; "
            "take a smaller wpb");
  EXPECT_EQ(refusal(get_block({.wpb = 12, .read_with = ReadWith::nvshmem}, 16), smaller), "");
  EXPECT_EQ(blocks_at_once(get_block({.wpb = 16, .asynchronous = true}, 16), small), 1u);
  EXPECT_NE(refusal(get_block({}, 16), {.registers = 8191}).find("8191"), std::string::npos);
  EXPECT_NE(refusal(get_block({}, 16), {.warps = 3}).find("4 warps, of which"), std::string::npos);
  for (const ReadBy read_by : {ReadBy::thread, ReadBy::warp, ReadBy::block})
    for (std::uint32_t wpb = 1; wpb <= 16; ++wpb)
      EXPECT_EQ(refusal(get_block({.wpb = wpb, .read_by = read_by}, 16), GpuLimits{}), "");
}

TEST(GetResources, WarpsHaveBothKindsOfGroupsOrOne) {
  const GetGrid mixed = get_grid({.dist = 3, .wpb = 2}, 10, 31);
  EXPECT_EQ(mixed.warps, 11u);
  EXPECT_EQ(mixed.blocks, 6u);
  EXPECT_EQ(mixed.local_warps, 11u);
  EXPECT_EQ(mixed.remote_warps, 11u);
  EXPECT_EQ(mixed.first_remote, 0u);
  const GetGrid apart = get_grid({.dist = 3, .wpb = 2, .interleave = false}, 10, 31);
  EXPECT_EQ(apart.warps, 4u + 11u);
  EXPECT_EQ(apart.blocks, 8u);
  EXPECT_EQ(apart.local_warps, 4u);
  EXPECT_EQ(apart.first_remote, 4u);
  EXPECT_EQ(apart.remote_warps, 11u);
}

TEST(GetResources, RefusesGridsThatAreTooLarge) {
  const std::uint64_t most = kMostGridBlocks;
  EXPECT_EQ(get_grid({.dist = 1, .wpb = 1}, most, 1).blocks, most);
  EXPECT_THROW(get_grid({.dist = 1, .wpb = 1}, most + 1, 1), DoesNotFitError);
  EXPECT_THROW(get_grid({.dist = 1, .wpb = 1, .interleave = false}, most, 1), DoesNotFitError);
  EXPECT_NO_THROW(get_grid({.dist = 1, .wpb = 2, .interleave = false}, most, 1));
}

}  // namespace
}  // namespace plait
