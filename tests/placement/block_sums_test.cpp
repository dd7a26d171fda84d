// The code that turns a block of the halo into sums, run here by a thread or several in turn,
// against sums over the shard as it was. All numbers are small integers, so that sums are exact.
#include "plait/placement/block_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace plait {
namespace {

struct Block {
  std::uint64_t begin, rows;
  std::vector<std::uint32_t> row;  // of the owner; empty: all
  std::vector<float> owner_x;      // of all of the owner's rows
};

struct HostShard {
  std::uint64_t own = 0;
  std::vector<EdgeOffset> offsets{0};
  std::vector<Slot> slots;
  std::vector<float> weights;  // or empty
  std::vector<float> x;        // by slot

  float weight(EdgeOffset e) const { return weights.empty() ? 1 : weights[e]; }
  std::vector<float> sums() const {
    std::vector<float> y(own);
    for (std::uint64_t i = 0; i < own; ++i)
      for (EdgeOffset e = offsets[i]; e < offsets[i + 1]; ++e) y[i] += weight(e) * x[slots[e]];
    return y;
  }
};

struct Owner {  // of a block
  std::vector<EdgeOffset> offsets;
  std::vector<std::uint32_t> rows;
  std::vector<float> weights;

  std::vector<float> sums(const std::vector<float>& x) const {
    std::vector<float> y(offsets.size() - 1);
    for (std::size_t t = 0; t < y.size(); ++t)
      for (EdgeOffset e = offsets[t]; e < offsets[t + 1]; ++e)
        y[t] += (weights.empty() ? 1 : weights[e]) * x[rows[e]];
    return y;
  }
};

struct Random {
  std::mt19937 engine;
  std::uint64_t below(std::uint64_t end) { return engine() % end; }
  std::vector<float> values(std::uint64_t count) {
    std::vector<float> list(count);
    for (float& value : list) value = static_cast<float>(below(17)) - 8;
    return list;
  }
};

std::vector<Block> random_blocks(Random& random, HostShard& shard) {
  std::vector<Block> blocks(random.below(4));
  for (Block& block : blocks) {
    const std::uint64_t size = random.below(30);
    block.begin = shard.x.size();
    block.owner_x = random.values(size);
    const bool whole = random.below(2) == 0;
    for (std::uint32_t r = 0; r < size; ++r) {
      if (!whole && random.below(3) > 0) continue;
      if (!whole) block.row.push_back(r);
      shard.x.push_back(block.owner_x[r]);
    }
    block.rows = shard.x.size() - block.begin;
  }
  return blocks;
}

// Parallel edges, empty rows and hubs come up.
HostShard random_shard(Random& random, std::vector<Block>& blocks) {
  HostShard shard;
  shard.own = random.below(25);
  shard.x = random.values(shard.own);
  blocks = random_blocks(random, shard);
  for (std::uint64_t i = 0; i < shard.own; ++i) {
    const std::uint64_t degree =
        random.below(4) == 0 ? random.below(200) : random.below(3) * random.below(8);
    for (std::uint64_t k = 0; k < degree; ++k)
      shard.slots.push_back(static_cast<Slot>(random.below(shard.x.size())));
    std::ranges::sort(shard.slots.begin() + static_cast<std::ptrdiff_t>(shard.offsets.back()),
                      shard.slots.end());
    shard.offsets.push_back(shard.slots.size());
  }
  if (random.below(2) == 0) shard.weights = random.values(shard.slots.size());
  return shard;
}

// Works as contract_block() does, rows in any order, each by `lanes` threads in turn.
HostShard contract(const HostShard& shard, const Block& block, int lanes, Owner& owner) {
  const BlockToSum view{shard.offsets.data(),
                        shard.slots.data(),
                        shard.weights.empty() ? nullptr : shard.weights.data(),
                        shard.own,
                        block.begin,
                        block.begin + block.rows,
                        block.row.empty() ? nullptr : block.row.data()};
  std::vector<BlockSumCounts> before(1);
  for (std::uint64_t i = 0; i < shard.own; ++i) before.push_back(before.back() + view.counts(i));
  const BlockSumCounts total = before.back();
  HostShard left{shard.own, std::vector<EdgeOffset>(shard.own + 1), std::vector<Slot>(total.kept),
                 std::vector<float>(shard.weights.empty() ? 0 : total.kept), shard.x};
  owner.offsets.resize(total.sums + 1);
  owner.rows.resize(total.summed);
  owner.weights.resize(shard.weights.empty() ? 0 : total.summed);
  const BlockSumResult result{left.offsets.data(),  left.slots.data(), left.weights.data(),
                              owner.offsets.data(), owner.rows.data(), owner.weights.data()};
  for (std::uint64_t i = shard.own + 1; i-- > 0;)
    for (int lane = 0; lane < lanes; ++lane)
      view.write(i, before[i], total.sums, result, lane, lanes);
  const auto at = [&](std::uint64_t slot) {
    return left.x.begin() + static_cast<std::ptrdiff_t>(slot);
  };
  left.x.erase(at(block.begin), at(block.begin + block.rows));
  const std::vector<float> sums = owner.sums(block.owner_x);
  left.x.insert(at(block.begin), sums.begin(), sums.end());
  return left;
}

std::uint64_t rows_that_read(const HostShard& shard, const Block& block) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < shard.own; ++i)
    count += std::any_of(
        shard.slots.begin() + static_cast<std::ptrdiff_t>(shard.offsets[i]),
        shard.slots.begin() + static_cast<std::ptrdiff_t>(shard.offsets[i + 1]),
        [&](Slot slot) { return slot >= block.begin && slot < block.begin + block.rows; });
  return count;
}

// Slots ascend in each row and exist; each sum is read once, by an edge of weight 1.
void check_shape(const HostShard& shard, const Block& sums) {
  std::vector<int> read(sums.rows);
  for (std::uint64_t i = 0; i < shard.own; ++i)
    for (EdgeOffset e = shard.offsets[i]; e < shard.offsets[i + 1]; ++e) {
      const Slot slot = shard.slots[e];
      ASSERT_LT(slot, shard.x.size());
      if (e > shard.offsets[i]) {
        ASSERT_LE(shard.slots[e - 1], slot);
      }
      if (slot < sums.begin || slot >= sums.begin + sums.rows) continue;
      ++read[slot - sums.begin];
      ASSERT_EQ(shard.weight(e), 1);
    }
  EXPECT_EQ(read, std::vector<int>(sums.rows, 1));
}

TEST(BlockSums, LeaveTheSumsOfAllRowsAsTheyWere) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random{std::mt19937(seed)};
    std::vector<Block> blocks;
    HostShard shard = random_shard(random, blocks);
    const std::vector<float> expected = shard.sums();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (random.below(4) == 0) continue;  // stays as it is
      Block& block = blocks[b];
      const std::uint64_t readers = rows_that_read(shard, block);
      Owner owner;
      shard = contract(shard, block, seed % 3 == 0 ? 1 : static_cast<int>(1 + seed % 40), owner);
      ASSERT_EQ(owner.offsets.size(), readers + 1);
      ASSERT_EQ(owner.offsets.back(), owner.rows.size());
      for (std::size_t later = b + 1; later < blocks.size(); ++later)
        blocks[later].begin = blocks[later].begin - block.rows + readers;
      block.rows = readers;
      check_shape(shard, block);
      ASSERT_EQ(shard.sums(), expected);
    }
  }
}

// Row 0 reads all of the owner's rows, one of them twice; row 1 none; row 2 one, and the next
// block.
TEST(BlockSums, ByHand) {
  HostShard shard{3, {0, 5, 6, 8}, {3, 4, 4, 5, 6, 0, 5, 6}, {1, 2, 3, 4, 5, 6, 7, 8}, {}};
  shard.x = {1, 1, 1, 10, 20, 30, 5};
  const Block block{3, 3, {}, {10, 20, 30}};
  Owner owner;
  const HostShard left = contract(shard, block, 1, owner);
  EXPECT_EQ(left.offsets, (std::vector<EdgeOffset>{0, 2, 3, 5}));
  EXPECT_EQ(left.slots, (std::vector<Slot>{3, 5, 0, 4, 5}));
  EXPECT_EQ(left.weights, (std::vector<float>{1, 5, 6, 1, 8}));
  EXPECT_EQ(owner.offsets, (std::vector<EdgeOffset>{0, 4, 5}));
  EXPECT_EQ(owner.rows, (std::vector<std::uint32_t>{0, 1, 1, 2, 2}));
  EXPECT_EQ(owner.weights, (std::vector<float>{1, 2, 3, 4, 7}));
  EXPECT_EQ(left.x, (std::vector<float>{1, 1, 1, 230, 210, 5}));
}

}  // namespace
}  // namespace plait
