// Collectives of one host's ranks against plain sums and copies. The ranks are threads of one
// process, each with a mapping of its own.
#include "plait/world/host_collectives.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/descriptor_socket.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;

using Check = std::function<void()>;
using Member = std::function<void(Collectives& group, int rank)>;

// Calls `member` on each rank of a group of threads. Returns by rank the text of what it throws.
std::vector<std::string> on_threads(int ranks, const Member& member, const Check& check = {}) {
  RendezvousAddress address{.host = "127.0.0.1"};
  const auto store = Rendezvous::serve(address);
  address.port = store->port();
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<int> numbers;  // 10, 11, ...
  for (int rank = 0; rank < ranks; ++rank) numbers.push_back(10 + rank);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      errors[static_cast<std::size_t>(rank)] = failure_of([&] {
        const auto own = Rendezvous::connect(address, 60s);
        const auto group = join_host_group(
            {rank, numbers, "group"}, *own, 60s, [] {}, check);
        member(*group, rank);
      });
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> none(int ranks) {
  return std::vector<std::string>(static_cast<std::size_t>(ranks));
}

// Returns numbers of values of so many bytes, the same on all ranks: few, as many as the largest
// window holds, one more, and several windows.
std::size_t draw_size(std::mt19937& random, std::size_t bytes) {
  const std::size_t kSizes[] = {
      0, 1, 1000, 5000, 30000, 262144 / bytes, 262144 / bytes + 1, 600001 / bytes};
  return kSizes[random() % std::size(kSizes)];
}

template <class T>
void check_sum(Collectives& group, int rank, int ranks, std::size_t size) {
  const auto value = [](int from, std::size_t i) {
    return static_cast<T>(i % 1013) / 7 + static_cast<T>(from) / 3;  // inexact
  };
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = value(rank, i);
  group.all_reduce(std::span(values), Reduction::sum);
  for (std::size_t i = 0; i < size; ++i) {
    T sum = value(0, i);
    for (int from = 1; from < ranks; ++from) sum += value(from, i);
    require(values[i] == sum, "sum {} of {} is {} where {} is right", i, size, values[i], sum);
  }
}

std::byte byte_of(int from, int to, std::size_t i) {
  return static_cast<std::byte>(i * 13 + static_cast<std::size_t>(from * 5 + to * 3));
}

// `size`: of the part that goes from one rank to another.
template <class Size>
void check_exchange(Collectives& group, int rank, int ranks, Size size) {
  std::vector<std::vector<std::byte>> out, in;
  for (int other = 0; other < ranks; ++other) {
    out.emplace_back(size(rank, other));
    for (std::size_t i = 0; i < out.back().size(); ++i) out.back()[i] = byte_of(rank, other, i);
    in.emplace_back(size(other, rank));
  }
  group.all_to_all(std::vector<std::span<const std::byte>>(out.begin(), out.end()),
                   std::vector<std::span<std::byte>>(in.begin(), in.end()));
  for (int other = 0; other < ranks; ++other) {
    const auto& part = in[static_cast<std::size_t>(other)];
    for (std::size_t i = 0; i < part.size(); ++i)
      require(part[i] == byte_of(other, rank, i), "byte {} of rank {}'s part is wrong", i, other);
  }
}

void check_broadcast(Collectives& group, int rank, int root, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_of(rank, 0, i);
  group.broadcast(bytes, root);
  for (std::size_t i = 0; i < size; ++i)
    require(bytes[i] == byte_of(root, 0, i), "byte {} of {} is wrong", i, size);
}

// One call of a kind, of values whose sizes are drawn.
void check_call(Collectives& group, int rank, int ranks, int kind, std::mt19937& random) {
  const std::size_t bytes = draw_size(random, 1), few = random() % 17;
  const auto turn = static_cast<int>(random() % static_cast<unsigned>(ranks));
  switch (kind) {
    case 0:
      return check_sum<float>(group, rank, ranks, draw_size(random, sizeof(float)));
    case 1:
      return check_sum<double>(group, rank, ranks, draw_size(random, sizeof(double)));
    case 2:
      return check_broadcast(group, rank, turn, bytes);
    case 3:
      return group.barrier();
    case 4:  // one pair has nearly all
      return check_exchange(group, rank, ranks, [&](int from, int to) {
        return from == turn && to == (turn + 1) % ranks ? bytes : few;
      });
    default:
      return check_exchange(group, rank, ranks, [&](int from, int to) {
        return (from + to) % 3 == 0 ? 0 : bytes * static_cast<std::size_t>(from % 3 + 1) / 2;
      });
  }
}

class HostCollectives : public testing::TestWithParam<int> {};

TEST_P(HostCollectives, EqualPlainSumsAndCopiesInAnyOrder) {
  const int ranks = GetParam(), calls = ranks > 5 ? 12 : 60;
  const auto errors = on_threads(ranks, [&](Collectives& group, int rank) {
    std::mt19937 random(static_cast<unsigned>(ranks));  // the same calls on all ranks
    for (int call = 0; call < calls; ++call)
      check_call(group, rank, ranks, call < 6 ? call : static_cast<int>(random() % 6), random);
  });
  EXPECT_EQ(errors, none(ranks));
}

// The windows of 20 ranks are smaller.
INSTANTIATE_TEST_SUITE_P(Ranks, HostCollectives, testing::Values(1, 2, 3, 5, 20));

TEST(HostGroup, CountsWhatIsGivenToOthers) {
  const auto errors = on_threads(3, [](Collectives& group, int rank) {
    group.barrier();
    require(group.bytes_sent() == 0, "a barrier sends {} bytes", group.bytes_sent());
    check_exchange(group, rank, 3, [](int from, int) { return std::size_t(10 * from + 10); });
    const auto sent = static_cast<std::uint64_t>(20 * rank + 20);
    require(group.bytes_sent() == sent, "an exchange sends {} bytes", group.bytes_sent());
    check_sum<float>(group, rank, 3, 100);
    require(group.bytes_sent() == sent + 400, "a sum makes it {} bytes", group.bytes_sent());
    check_broadcast(group, rank, 1, 100);
    require(group.bytes_sent() == sent + 400 + (rank == 1 ? 100 : 0), "a broadcast makes it {}",
            group.bytes_sent());
  });
  EXPECT_EQ(errors, none(3));
}

// --- calls that do not match: all ranks refuse, none reads bytes of another meaning ---

std::vector<std::string> errors_of_calls(const Member& member) {
  return on_threads(3, [&](Collectives& group, int rank) {
    group.barrier();
    member(group, rank);
  });
}

TEST(HostGroup, RefusesCallsThatDoNotMatch) {
  const auto mismatch = Each(HasSubstr("make calls that do not match"));
  const auto sum_of = [](Collectives& group, std::size_t size) {
    std::vector<float> own(size);
    group.all_reduce(std::span(own), Reduction::sum);
  };
  EXPECT_THAT(errors_of_calls([&](Collectives& group, int rank) {
                if (rank == 1) return group.barrier();
                sum_of(group, 100);
              }),
              mismatch);
  EXPECT_THAT(
      errors_of_calls([&](Collectives& group, int rank) { sum_of(group, rank == 2 ? 101 : 100); }),
      mismatch);
  // Sums of other types, and other reductions, of as many bytes.
  std::array<std::int64_t, 100> whole{};
  std::array<double, 100> real{};
  const auto reduce = [&](Collectives& group, int rank, Reduction how) {
    std::array<std::int64_t, 100> own = whole;
    if (rank == 1 && how == Reduction::sum) return group.all_reduce(std::span(real), how);
    group.all_reduce(std::span(own), rank == 1 ? Reduction::min : how);
  };
  for (const Reduction how : {Reduction::sum, Reduction::max})
    EXPECT_THAT(errors_of_calls([&](Collectives& group, int rank) { reduce(group, rank, how); }),
                mismatch);
  EXPECT_THAT(errors_of_calls([&](Collectives& group, int rank) {
                if (rank != 0) return check_broadcast(group, rank, 1, 50);
                check_exchange(group, rank, 3, [](int, int) { return std::size_t{50}; });
              }),
              mismatch);
}

// One rank finds it out; the others' next call, or next turn, ends.
TEST(HostGroup, RefusesPartsOfOtherSizes) {
  for (const std::size_t size : {std::size_t{10}, std::size_t{1000000}}) {
    const auto errors = on_threads(2, [&](Collectives& group, int rank) {
      check_exchange(group, rank, 2, [&](int from, int to) {
        return size + (from == 0 && to == 1 && rank == 1 ? 1 : 0);
      });
      group.barrier();
    });
    EXPECT_THAT(errors[0], HasSubstr("a rank has left the others, or has failed"));
    EXPECT_EQ(errors[1], fmt::format("rank 10 sends {} bytes to rank 11, which has room for {}",
                                     size, size + 1));
  }
}

TEST(HostGroup, IsOfNoUseAfterAnError) {
  const auto errors = errors_of_calls([&](Collectives& group, int rank) {
    const std::string first =
        failure_of([&] { check_broadcast(group, rank, 0, rank == 0 ? 10 : 20); });
    require(!first.empty(), "sizes differ");
    group.barrier();
  });
  EXPECT_THAT(errors, Each(HasSubstr("a rank has left the others, or has failed")));
}

// A rank whose wait was ended calls again and again; a rank that comes late reads none of it.
TEST(HostGroup, WritesNothingAfterAnError) {
  std::atomic<bool> ended = false;
  const auto errors = on_threads(2, [&](Collectives& group, int rank) {
    std::vector<float> values(1000, 1);
    if (rank == 1) {
      while (!ended) std::this_thread::sleep_for(1ms);
      group.all_reduce(std::span(values), Reduction::sum);
      require(values[0] == 2, "the sum is {}", values[0]);
      return;
    }
    std::thread ends([&] {
      std::this_thread::sleep_for(50ms);
      group.end_waits();
    });
    for (int call = 0; call < 3; ++call) {
      const std::string text =
          failure_of([&] { group.all_reduce(std::span(values), Reduction::sum); });
      require(!text.empty(), "the wait has ended by itself");
      std::ranges::fill(values, 1000);
    }
    ends.join();
    ended = true;
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_THAT(errors[1], HasSubstr("a rank has left the others, or has failed"));
}

// --- waits for a rank that does not come ---

TEST(HostGroup, EndsWaitsFromAnotherThread) {
  const auto errors = on_threads(2, [](Collectives& group, int rank) {
    if (rank == 1) return;
    std::thread ends([&] {
      std::this_thread::sleep_for(50ms);
      group.end_waits();
    });
    const std::string first = failure_of([&] { group.barrier(); });
    ends.join();
    require(!first.empty(), "the wait has ended by itself");
    group.barrier();
  });
  EXPECT_THAT(errors[0], HasSubstr("have been ended"));
}

TEST(HostGroup, EndsWaitsWhenTheCheckThrows) {
  std::atomic<bool> lost = false;
  const auto errors = on_threads(
      2,
      [&](Collectives& group, int rank) {
        group.barrier();
        lost = true;
        if (rank == 0) group.barrier();
      },
      [&] {
        if (lost) throw LostRankError(1, "rank 1 is lost");
      });
  EXPECT_EQ(errors[0], "rank 1 is lost");
}

TEST(HostGroup, EndsWaitsForARankThatHasLeft) {
  const auto errors = on_threads(3, [](Collectives& group, int rank) {
    group.barrier();
    if (rank != 1) group.barrier();
  });
  EXPECT_EQ(errors[1], "");
  for (const std::size_t rank : {0, 2})
    EXPECT_THAT(errors[rank], HasSubstr("a rank has left the others, or has failed"));
}

TEST(HostGroup, TellsThatOthersDoNotJoin) {
  RendezvousAddress address{.host = "127.0.0.1"};
  const auto store = Rendezvous::serve(address);
  for (const int rank : {0, 1})
    EXPECT_THAT(
        failure_of([&] {
          join_host_group({rank, {0, 1}, fmt::format("group{}", rank)}, *store, 300ms, [] {}, {});
        }),
        HasSubstr("have not shared memory within 300 ms"));
}

// A rank takes the memory, and then fails.
TEST(HostGroup, TellsThatARankHasNotFinishedJoining) {
  RendezvousAddress address{.host = "127.0.0.1"};
  const auto store = Rendezvous::serve(address);
  address.port = store->port();
  std::string first;
  std::thread waits([&] {
    const auto own = Rendezvous::connect(address, 60s);
    first = failure_of([&] { join_host_group({0, {0, 1}, "group"}, *own, 1s, [] {}, {}); });
  });
  SocketName name{};
  std::ranges::copy(store->get("group", 60s).value(), name.begin());
  const Descriptor socket = open_socket();
  EXPECT_EQ(connect_to(socket, name), 0);
  while (!receive_descriptor(socket)) is_readable(socket);
  waits.join();
  EXPECT_THAT(first, HasSubstr("have not shared memory within 1000 ms"));
}

}  // namespace
}  // namespace plait::test
