// NVSHMEM as far as it can be tested without a GPU: it is found, joined by ranks, and refused in
// one line.
#include "plait/symmetric/nvshmem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/library.h"
#include "plait/base/transport.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

bool there() { return open_library(kNvshmem) != nullptr; }

TEST(Nvshmem, HasAllThatIsUsedOrSaysWhatIsMissing) {
  if (there()) {
    EXPECT_THAT(nvshmem_version(), ContainsRegex("^3\\.[0-9]+\\.[0-9]+$"));
  } else {
    try {
      nvshmem_version();
      FAIL() << "a version of nothing";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("install the package nvidia-nvshmem-cu13"));
    }
  }
}

TEST(Nvshmem, DeviceFunctionsOfAnotherVersionAreRefused) {
  if (!there()) GTEST_SKIP() << kNvshmem.name << " is not there";
  EXPECT_NO_THROW(require_same_nvshmem(nvshmem_version()));
  for (const std::string& other : {std::string("2.11.0"), nvshmem_version() + "0"}) try {
      require_same_nvshmem(other);
      FAIL() << "version " << other << " is taken";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("built with NVSHMEM " + other + ","));
      EXPECT_THAT(error.what(), HasSubstr("version " + nvshmem_version() + " is here"));
    }
}

const RankProgram kJoin("nvshmem join", [](World& world) { Nvshmem::join(world); });

// Ranks meet, and NVSHMEM then finds no GPU. Its own text comes on stderr, not among results.
TEST(Nvshmem, RanksWithoutAGpuAreToldSo) {
#ifdef PLAIT_SANITIZED
  GTEST_SKIP() << "a sanitizer's dlopen does not find the parts that NVSHMEM loads from beside it";
#endif
  if (!there()) GTEST_SKIP() << kNvshmem.name << " is not there";
  for (const int ranks : {2, 3}) {
    const Outcome outcome =
        run_job({.program = "nvshmem join",
                 .ranks = ranks,
                 .environment = {{"CUDA_VISIBLE_DEVICES", ""}, {"NVSHMEM_VERSION", "1"}}});
    EXPECT_EQ(outcome.code, 1) << outcome.all_errors();
    EXPECT_THAT(outcome.all_errors(), HasSubstr("NVSHMEM cannot be initialised on this GPU"));
    EXPECT_THAT(outcome.all_errors(), HasSubstr("NVSHMEM v" + nvshmem_version()));
  }
}

TEST(DeviceTransport, HasItsWords) {
  for (const auto transport : {DeviceTransport::vmm, DeviceTransport::nvshmem})
    EXPECT_EQ(parse_device_transport(to_string(transport)), transport);
  EXPECT_THROW(parse_device_transport("vmm"), UsageError);
}

}  // namespace
}  // namespace plait::test
