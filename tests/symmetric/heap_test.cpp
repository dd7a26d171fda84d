// The symmetric heap between processes: a rank's writes before a barrier are read by all after it.
#include "plait/symmetric/heap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <new>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/futex_barrier.h"
#include "plait/world/shared_memory.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<std::uint64_t> words(SymmetricHeap& heap, int rank) {
  const auto bytes = heap.part(rank);
  return {reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / sizeof(std::uint64_t)};
}

// In each round every rank writes a word for each peer into the peer's part, and after the barrier
// reads the words that all have written into its own part and into a neighbour's. Two sets of
// places are used in turn, so that one barrier per round suffices.
void hammer(World& world) {
  const auto ranks = static_cast<std::uint64_t>(world.size());
  const auto me = static_cast<std::uint64_t>(world.rank());
  const auto heap = SymmetricHeap::create(world, 2 * ranks * sizeof(std::uint64_t));
  for (std::uint64_t round = 1; round <= 1000; ++round) {
    const std::uint64_t base = round % 2 * ranks;
    for (std::uint64_t peer = 0; peer < ranks; ++peer)
      words(*heap, static_cast<int>(peer))[base + me] = round * 100 + me * 10 + peer;
    heap->barrier();
    for (const std::uint64_t owner : {me, (me + 1) % ranks})
      for (std::uint64_t from = 0; from < ranks; ++from) {
        const auto got = words(*heap, static_cast<int>(owner))[base + from];
        expect(got == round * 100 + from * 10 + owner,
               fmt::format("round {}: word {} of rank {} is {}", round, from, owner, got));
      }
    const std::vector<std::uint64_t> brought = heap->barrier(round * 100 + me);
    for (std::uint64_t from = 0; from < ranks; ++from)
      expect(brought[from] == round * 100 + from, fmt::format("round {}: brought words", round));
  }
}

void check_parts(World& world) {
  const auto heap = SymmetricHeap::create(world, 5'000'001);
  expect(heap->bytes() == 5'000'001, "the size asked for");
  for (int rank = 0; rank < world.size(); ++rank) {
    expect(heap->part(rank).size() == 5'000'001, "the size of each part");
    for (const auto byte : heap->part(rank)) expect(byte == std::byte{0}, "zeroes");
  }
  heap->barrier();
  // A second heap is another memory; one of no bytes has a barrier all the same.
  const auto other = SymmetricHeap::create(world, 8);
  const auto empty = SymmetricHeap::create(world, 0);
  words(*other, world.rank())[0] = 1;
  empty->barrier();
  for (int rank = 0; rank < world.size(); ++rank) {
    expect(empty->part(rank).empty(), "no bytes");
    expect(words(*heap, rank)[0] == 0 && words(*other, rank)[0] == 1, "two heaps");
  }
}

// Ranks that outnumber the cores wake each other for every message, which is most of a heap's cost:
// a heap takes only two short exchanges.
void check_messages(World& world) {
  const std::uint64_t before = world.bytes_sent();
  const auto heap = SymmetricHeap::create(world, 1000);
  const std::uint64_t peers = static_cast<std::uint64_t>(world.size()) - 1;
  const std::uint64_t each = (world.bytes_sent() - before) / peers;
  expect(each < 64, fmt::format("{} bytes to each peer", each));
}

void check_largest(World& world) {
  const auto mine = static_cast<std::size_t>(world.rank() + 1) * 1000;
  const auto heap = SymmetricHeap::create(world, mine, SizeRule::largest);
  expect(heap->bytes() == static_cast<std::size_t>(world.size()) * 1000, "the largest size");
  heap->part(world.rank()).back() = std::byte{7};
  heap->barrier();
  for (int rank = 0; rank < world.size(); ++rank)
    expect(heap->part(rank).back() == std::byte{7}, "the end of each part");
}

const RankProgram uses_heaps("uses heaps", [](World& world) {
  check_parts(world);
  check_messages(world);
  check_largest(world);
  hammer(world);
});

TEST(Heap, IsReadByAllAfterTheBarrier) {
  const auto outcome = run_job({"uses heaps", 4, kPatient});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

TEST(Heap, ServesARankAlone) {
  const auto world = World::alone();
  check_parts(*world);
  hammer(*world);
}

const RankProgram asks_too_much("asks too much", [](World& world) {
  SymmetricHeap::create(world, std::size_t{1} << 50);
});
const RankProgram asks_differently("asks differently", [](World& world) {
  SymmetricHeap::create(world, world.rank() == 1 ? 100 : 50);
});
const RankProgram is_on_hosts("is on hosts", [](World& world) {
  world.barrier();
  // A rank that fails while the other one still joins, or is in the barrier, would be its error.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  SymmetricHeap::create(world, 1);
});

// Rank 1 alone cannot tell how much memory is free: all ranks refuse, and the next heap is right.
const RankProgram cannot_tell("cannot tell what is free", [](World& world) {
  std::unique_ptr<SymmetricHeap> heap = SymmetricHeap::create(world, 1000);
  const auto refused = [&](auto work) {
    if (world.rank() == 1) ::setenv("PLAIT_HOST_MEMORY", "much", 1);
    const std::string error = failure_of(work);
    ::unsetenv("PLAIT_HOST_MEMORY");
    expect(error.starts_with("rank 1: PLAIT_HOST_MEMORY is 'much'"), error);
  };
  for (int round = 0; round < 3; ++round) {
    refused([&] { SymmetricHeap::create(world, 2000); });
    refused([&] { SymmetricHeap::replace(world, heap, 3000, SizeRule::equal); });
    expect(heap->bytes() == 1000, "the heap that was there");
  }
  SymmetricHeap::replace(world, heap, 3000, SizeRule::equal);
  check_parts(world);
});

TEST(Heap, IsRefusedOnAllRanksWhereOneCannotTellWhatIsFree) {
  const auto outcome = run_job({"cannot tell what is free", 3, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(Heap, RefusesWhatDoesNotFit) {
  const auto outcome = run_job({"asks too much", 2, kPatient});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.errors,
              ElementsAre(ContainsRegex("^plait: the symmetric heap needs 1.0 PiB on each of 2 "
                                        "ranks of this host, but only .* are free in all$")));
}

TEST(Heap, RefusesDifferentSizes) {
  const auto outcome = run_job({"asks differently", 2, kPatient});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("rank 0 asks for 50 bytes and rank 1 for 100"));
}

TEST(Heap, RefusesSeveralHosts) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    auto environment = rank_environment("is on hosts", rank, 2, port);
    environment["PLAIT_HOST_ID"] = std::to_string(rank);
    ranks.emplace_back(environment);
  }
  for (auto& rank : ranks) {
    const auto outcome = rank.wait();
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(
        outcome.all_errors(),
        HasSubstr("the symmetric heap needs all ranks on one host, but they are on several"));
  }
}

// --- parts of the heap, in one process or with a plain fork ---

TEST(SharedMemory, HasNoNameAndAFixedSize) {
  const auto [memory, descriptor] = SharedMemory::create(8192);
  struct stat status {};
  ASSERT_EQ(::fstat(descriptor.number(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
  EXPECT_EQ(::fcntl(descriptor.number(), F_GETFD), FD_CLOEXEC);
  EXPECT_NE(::ftruncate(descriptor.number(), 4096), 0);
  EXPECT_NE(::ftruncate(descriptor.number(), 16384), 0);
  const auto other = SharedMemory::map(descriptor, 8192);
  other.bytes()[5] = std::byte{9};
  EXPECT_EQ(memory.bytes()[5], std::byte{9});
  EXPECT_THROW(SharedMemory::map(descriptor, 4096), Error);
  const Descriptor foreign(::memfd_create("foreign", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(foreign.number(), 8192), 0);
  EXPECT_THROW(SharedMemory::map(foreign, 8192), Error);  // not sealed: could shrink
}

TEST(FutexBarrier, LetsNobodyThroughEarly) {
  constexpr int kRanks = 4, kRounds = 2000;
  auto [memory, descriptor] = SharedMemory::create(8192);
  auto& state = *std::launder(reinterpret_cast<BarrierState*>(memory.bytes().data()));
  auto* counts = reinterpret_cast<std::atomic<int>*>(memory.bytes().data() + 4096);
  std::array<pid_t, kRanks> children{};
  for (auto& child : children) {
    child = ::fork();
    if (child != 0) continue;
    FutexBarrier barrier(state, kRanks);
    for (int round = 0; round < kRounds; ++round) {
      counts->fetch_add(1, std::memory_order_relaxed);
      barrier.wait([] {});
      // Reads all of this round, and none of the next before all have looked.
      if (counts->load(std::memory_order_relaxed) != kRanks * (round + 1)) ::_exit(1);
      barrier.wait([] {});
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(FutexBarrier, EndsTheWaitWhenTheCheckThrows) {
  auto [memory, descriptor] = SharedMemory::create(4096);
  auto& state = *std::launder(reinterpret_cast<BarrierState*>(memory.bytes().data()));
  FutexBarrier barrier(state, 2);
  EXPECT_THROW(barrier.wait([] { throw LostRankError(1, "gone"); }), LostRankError);
}

// --- latency, for the record: no test of speed ---

const RankProgram times_barriers("times barriers", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 8);
  const auto time = [&](int rounds, auto&& barrier) {
    barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) barrier();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
               .count() /
           rounds;
  };
  const double of_heap = time(20000, [&] { heap->barrier(); });
  const double of_world = time(20000, [&] { world.barrier(); });
  std::vector<float> values(1000);
  const double sums = time(20000, [&] { world.all_reduce_sum(std::span(values)); });
  if (world.rank() == 0)
    say(
        fmt::format("{} ranks: {:.2f} us for a heap's barrier, {:.2f} us for the world's; "
                    "a sum of 1000 floats: {:.2f} us",
                    world.size(), of_heap, of_world, sums));
});

TEST(Heap, DISABLED_BarrierLatency) {
  for (const int ranks : {2, 4}) {
    Job job({"times barriers", ranks});
    fmt::print("{} ranks{}\n", ranks, job.await(fmt::format("{} ranks", ranks)));
    EXPECT_EQ(job.wait().code, 0);
  }
}

}  // namespace
}  // namespace plait::test
