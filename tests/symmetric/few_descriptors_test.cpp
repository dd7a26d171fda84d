// Ranks that run out of descriptors while they share memory or open a channel: every rank says so,
// and none waits.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/descriptor_exchange.h"
#include "plait/symmetric/heap.h"
#include "plait/world/gather.h"
#include "plait/world/shared_memory.h"
#include "tests/world/ranks.h"

#ifdef PLAIT_SANITIZED  // UBSan reads objects through a pipe, for which no descriptor is left
#define SKIP_IF_SANITIZED() GTEST_SKIP() << "needs a build without sanitizers"
#else
#define SKIP_IF_SANITIZED()
#endif

namespace plait::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// While it lives, this process can open `left` descriptors more.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{kLimit, kLimit};  // the hard one, too, or it would be raised
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (int number = 0; number >= 0;) {
      number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (number >= 0) held_.emplace_back(number);
    }
    held_.resize(held_.size() - static_cast<std::size_t>(left));
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  static constexpr rlim_t kLimit = 64;
  rlimit before_{};
  std::vector<Descriptor> held_;
};

// Calls `work` with `left` descriptors on the rank `who` (-1: on all). All ranks must fail alike,
// for want of descriptors, or none. Returns whether they failed.
template <class Work>
bool fails_on_all(World& world, int left, int who, Work work) {
  std::string failure;
  {
    std::optional<FewDescriptors> few;
    if (who < 0 || who == world.rank()) few.emplace(left);
    failure = failure_of(work);
  }
  const std::string place = fmt::format("{} left on rank {}: '{}'", left, who, failure);
  expect(failure.empty() || failure.find("oo many open files") != failure.npos, place);
  expect(failure.empty() || failure.starts_with(fmt::format("rank {}: ", std::max(who, 0))), place);
  for (const bool failed : gather_values(world, !failure.empty()))
    expect(failed == !failure.empty(), place + " on some ranks alone");
  return !failure.empty();
}

void share_memory(World& world) {
  const auto heap = SymmetricHeap::create(world, 100);
  heap->part(0)[static_cast<std::size_t>(world.rank())] = std::byte{7};
  heap->barrier();
  for (int rank = 0; rank < world.size(); ++rank)
    expect(heap->part(0)[static_cast<std::size_t>(rank)] == std::byte{7}, "memory of all ranks");
}

const RankProgram runs_out("runs out of descriptors", [](World& world) {
  for (const int who : {0, 1, -1}) {
    for (int left = 0; left <= 8; ++left) {
      const bool failed = fails_on_all(world, left, who, [&] { share_memory(world); });
      expect(left > 3 || failed, fmt::format("{} left: memory", left));
      expect(left < 8 || !failed, fmt::format("{} left: no memory", left));
    }
    for (const int left : {0, 3, 10})
      expect(fails_on_all(world, left, who, [&] { world.open_channel(); }),
             fmt::format("{} left: a channel", left));
  }
  share_memory(world);
  world.open_channel();
});

TEST(FewDescriptors, AreAnErrorOnAllRanks) {
  SKIP_IF_SANITIZED();
  const auto outcome = run_job({"runs out of descriptors", 3, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Another thread may take the descriptors that were left when this rank asked: rank 1's memory
// takes all but `left` here.
void exchange_with(World& world, int left) {
  std::optional<FewDescriptors> few;
  exchange_descriptors(
      world,
      [&] {
        auto made = SharedMemory::create(4096).second;
        if (world.rank() == 1) few.emplace(left);
        return made;
      },
      [](int, const Descriptor&) {});
}

const RankProgram loses_descriptors("loses descriptors", [](World& world) {
  for (const int left : {0, 2, 3}) {
    const std::string failure = failure_of([&] { exchange_with(world, left); });
    expect(failure.empty() == (left == 3), fmt::format("{} left: '{}'", left, failure));
    expect(left == 3 || failure.starts_with("rank 1: "), failure);
    expect(left == 3 || failure.find("oo many open files") != failure.npos, failure);
    world.barrier();
  }
});
// It can hardly send.
const RankProgram cannot_send("cannot send", [](World& world) { exchange_with(world, 1); });
// Rank 1 may open nothing any more once it listens, not even in place of what it closes. Its caller
// takes the error and goes on living.
const RankProgram opens_nothing("opens nothing", [](World& world) {
  std::thread taker;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const std::string failure = failure_of([&] {
    exchange_descriptors(
        world,
        [&] {
          if (world.rank() == 1)
            taker = std::thread([&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(500));
              const rlimit none{3, before.rlim_max};  // poll() counts by it, too
              ::setrlimit(RLIMIT_NOFILE, &none);
            });
          else
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
          return SharedMemory::create(4096).second;
        },
        [](int, const Descriptor&) {});
  });
  fmt::print(stderr, "rank {} heard: {}\n", world.rank(), failure);
  if (world.rank() == 1) {
    taker.join();
    ::setrlimit(RLIMIT_NOFILE, &before);
    std::this_thread::sleep_for(std::chrono::seconds(100));
  }
  throw Error("no memory was shared");
});

TEST(FewDescriptors, MayBeTakenMeanwhile) {
  SKIP_IF_SANITIZED();
  const auto outcome = run_job({"loses descriptors", 3, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  const auto cut = run_job({"cannot send", 3, kPatient});
  EXPECT_EQ(cut.code, 1);
  EXPECT_THAT(cut.errors, ElementsAre(HasSubstr("too many open files")));
}

TEST(FewDescriptors, AreHeardOfWhereTheCallerGoesOn) {
  SKIP_IF_SANITIZED();
  const auto start = std::chrono::steady_clock::now();
  const auto idle = run_job({"opens nothing", 3, 20000});
  EXPECT_EQ(idle.code, 1);
  EXPECT_LT(seconds_since(start), 60);
  for (const int rank : {0, 2})  // by an exception, or by the watch if the rank is slow to take it
    EXPECT_THAT(
        idle.errors,
        Contains(HasSubstr(fmt::format("rank {}: rank 1 failed while ranks shared memory", rank))));
}

}  // namespace
}  // namespace plait::test
