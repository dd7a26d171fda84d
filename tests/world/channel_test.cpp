// Channels between ranks for threads beside the main thread.
#include "plait/base/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "plait/base/all_to_all.h"
#include "plait/base/error.h"
#include "plait/world/gloo.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using Parts = std::vector<std::vector<std::uint64_t>>;

// What a rank sends to another one in a round: between 0 and 40,000 numbers, of no pattern.
std::vector<std::uint64_t> part(int from, int to, int round) {
  const auto number = static_cast<std::uint64_t>(from * 1000 + to * 100 + round);
  std::vector<std::uint64_t> numbers(number * 2654435761 % 7 == 0 ? 0 : number * number % 40'000);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = number * (i + ~std::uint64_t{0} / 3);
  return numbers;
}

void exchange(Channel& channel, int rank, int ranks, int round) {
  Parts send, expected;
  for (int other = 0; other < ranks; ++other) {
    send.push_back(part(rank, other, round));
    expected.push_back(part(other, rank, round));
  }
  expect(exchange_vectors(channel, send) == expected, "other numbers have come");
}

// Two threads use channels of their own while the main thread uses the world.
const RankProgram beside("channels beside the world", [](World& world) {
  const auto first = world.open_channel(), second = world.open_channel();
  const auto exchanges = [&](Channel& channel, int base) {
    return std::thread([&world, &channel, base] {
      for (int round = 0; round < 30; ++round)
        exchange(channel, world.rank(), world.size(), base + round);
    });
  };
  std::thread one = exchanges(*first, 0), other = exchanges(*second, 50);
  for (int round = 0; round < 100; ++round) {
    std::vector<double> sum{1.0 * world.rank() + round};
    world.all_reduce_sum(sum);
    const int ranks = world.size();
    expect(sum[0] == ranks * (ranks - 1) / 2.0 + 1.0 * ranks * round, "another sum has come");
  }
  one.join(), other.join();
  exchange(*first, world.rank(), world.size(), 99);
});

TEST(Channel, IsBesideTheWorldAndOtherChannels) {
  for (const int ranks : {1, 2, 5}) {
    const Outcome outcome = run_job({"channels beside the world", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks";
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

// A thread waits for a rank that does not come: its wait ends with the watch's verdict, whatever
// the main thread does meanwhile, and later exchanges wait no more.
const RankProgram waits("channel waits", [](World& world) {
  const auto channel = world.open_channel();
  say_ready(world);
  if (world.rank() == 1)
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::string broken;
  std::thread thread([&] {
    for (int call = 0; call < 2; ++call) {
      try {
        exchange(*channel, world.rank(), world.size(), 7);
        broken += "it has ended;";
      } catch (const BrokenChannelError&) {
        broken += "broken;";
      }
    }
  });
  thread.join();
  expect(broken == "broken;broken;", broken);
  world.explain("the channel is broken");
});

class LostChannel : public testing::TestWithParam<int> {};

TEST_P(LostChannel, EndsItsWaits) {
  Job job({"channel waits", 3, GetParam() == SIGSTOP ? 1500 : kPatient});
  job.await_ready(3);
  const pid_t lost = job.rank(1);
  ASSERT_EQ(kill(lost, GetParam()), 0);
  const Outcome outcome = job.wait();
  kill(lost, SIGKILL);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, testing::SizeIs(testing::AllOf(testing::Ge(1u), testing::Le(2u))));
  EXPECT_THAT(outcome.errors, testing::Each(testing::ContainsRegex(
                                  "^plait: rank [02]: rank 1 (was killed|has not answered)")));
}

INSTANTIATE_TEST_SUITE_P(All, LostChannel, testing::Values(SIGKILL, SIGSTOP));

const RankProgram wrong("channel with parts for other ranks", [](World& world) {
  const auto channel = world.open_channel();
  exchange_vectors(*channel, Parts(static_cast<std::size_t>(world.size()) + 1));
});

TEST(Channel, RefusesPartsForOtherRanks) {
  const Outcome outcome = run_job({"channel with parts for other ranks", 2});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.all_errors(), testing::HasSubstr("3 parts were given for 2 ranks"));
}

// An exchange whose wait was ended has left the caller's memory alone: a peer that comes later
// finds nobody there.
TEST(Gloo, WritesNothingAfterAnError) {
  constexpr std::size_t kNumbers = 1000;
  RendezvousAddress address{.host = "127.0.0.1"};
  const auto store = Rendezvous::serve(address);
  address.port = store->port();
  std::unique_ptr<Collectives> groups[2];
  std::thread joins([&] { groups[1] = join_gloo({1, 2, address, "127.0.0.1"}); });
  groups[0] = join_gloo({0, 2, address, "127.0.0.1"});
  joins.join();

  std::vector<std::uint64_t> received(kNumbers), sent(kNumbers, 1), none;
  const auto exchange = [](Collectives& group, auto& to, auto& from, std::size_t peer) {
    std::vector<std::span<const std::byte>> send(2);
    std::vector<std::span<std::byte>> receive(2);
    send[peer] = std::as_bytes(std::span(to));
    receive[peer] = std::as_writable_bytes(std::span(from));
    group.all_to_all(send, receive);
  };
  std::atomic<bool> failed{false};
  std::thread waiting([&] {
    try {
      exchange(*groups[0], none, received, 1);
    } catch (const Error&) {
      failed = true;
    }
  });
  while (!failed) {  // the first may come before the wait
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    groups[0]->end_waits();
  }
  waiting.join();
  std::ranges::fill(received, 77);
  std::thread sending([&] {
    try {
      exchange(*groups[1], sent, none, 0);
    } catch (const Error&) {  // it may have to be ended
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  groups[1]->end_waits();
  sending.join();
  EXPECT_EQ(std::ranges::count(received, 77u), static_cast<long>(kNumbers));
}

}  // namespace
}  // namespace plait::test
