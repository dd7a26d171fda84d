// Copies on a GPU, against those on the host, byte by byte.
#include "plait/kernels/cuda/padded_copy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plait/base/cuda/cuda.cuh"

namespace plait {
namespace {

using Numbers = std::vector<std::uint32_t>;

// One copy: so many numbers, from and to places behind so many others.
struct Case {
  std::size_t count, room, from = 0, to = 0;
  std::uint32_t step = 0;
};

void check(const std::vector<Case>& cases) {
  std::mt19937 random(7);
  std::vector<Numbers> wanted;
  std::vector<DeviceArray<std::uint32_t>> there, room_there;
  std::vector<PaddedCopy> copies;
  for (const Case& c : cases) {
    Numbers from(c.from + c.count + 4), to(c.to + c.room + 4, 99);
    for (std::uint32_t& number : from) number = static_cast<std::uint32_t>(random());
    there.emplace_back(std::span<const std::uint32_t>(from));
    room_there.emplace_back(std::span<const std::uint32_t>(to));
    PaddedCopy copy{.from = from.data() + c.from,
                    .to = to.data() + c.to,
                    .bytes = c.count * 4,
                    .room = c.room * 4,
                    .pad = {1, 2, 3, 4},
                    .step = c.step};
    copy_padded(copy);
    copy.from = there.back().data() + c.from;
    copy.to = room_there.back().data() + c.to;
    copies.push_back(copy);
    wanted.push_back(to);
  }
  gpu_copy_padded(copies, nullptr);
  check_cuda(cudaDeviceSynchronize(), "copies");
  for (std::size_t k = 0; k < cases.size(); ++k) {
    Numbers found(wanted[k].size());
    copy_to_host(found.data(), room_there[k].data(), found.size() * 4);
    EXPECT_EQ(found, wanted[k]) << "copy " << k;
  }
}

TEST(GpuPaddedCopy, GivesTheBytesOfTheHost) {
  check({{0, 0},
         {0, 5},
         {5, 11},
         {4, 12, 0, 0, 1},
         {8, 8},
         {3, 9, 1, 0},
         {3, 9, 0, 3},
         {7, 30, 3, 2}});
  check({{4096, 4096}, {4097, 9000}, {5000, 20000, 0, 0, 1}, {12345, 12346, 1, 1}});
}

TEST(GpuPaddedCopy, TakesMoreThanOneLaunchHolds) {
  std::vector<Case> many;
  for (std::size_t k = 0; k < 130; ++k) many.push_back({k * 37 % 101, 101 + k});
  check(many);
  check({});
}

}  // namespace
}  // namespace plait
