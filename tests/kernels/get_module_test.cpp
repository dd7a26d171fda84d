#include "plait/kernels/cuda/get_module.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plait/base/error.h"

namespace plait {
namespace {

TEST(GetModule, IsAFatBinaryOfAVersionOrAbsent) {
  const std::span<const std::byte> image = get_module_image();
  if (nvshmem_of_build().empty()) {
    EXPECT_TRUE(image.empty());
    EXPECT_THROW(require_get_module(), UsageError);
    return;
  }
  EXPECT_NO_THROW(require_get_module());
  EXPECT_EQ(nvshmem_of_build().substr(0, 2), "3.");
  // The head of a fat binary: a number that marks it, the version of its layout and the size of the
  // head, and the bytes after the head.
  struct {
    std::uint32_t mark;
    std::uint16_t version, head;
    std::uint64_t bytes;
  } head{};
  ASSERT_GT(image.size(), sizeof(head));
  std::memcpy(&head, image.data(), sizeof(head));
  EXPECT_EQ(head.mark, 0xba55ed50u);
  EXPECT_LE(head.head + head.bytes, image.size());
  EXPECT_GT(head.bytes, 10000u);
}

}  // namespace
}  // namespace plait
