// Collectives against sums and copies written out, for one to four ranks. Every rank knows the
// values of the others: all are functions of (rank, index).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "plait/world/launch.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSizes[] = {0, 1, 3, 1000, 1 << 20};

// Values are small whole numbers, so that sums are exact in any order.
template <class T>
T value(int rank, std::size_t i) {
  return static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 31) % 1001) - 500;
}

template <class T>
void check_sums(World& world) {
  for (const std::size_t size : kSizes) {
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = value<T>(world.rank(), i);
    world.all_reduce_sum(std::span(values));
    for (std::size_t i = 0; i < size; ++i) {
      T sum = 0;
      for (int rank = 0; rank < world.size(); ++rank) sum += value<T>(rank, i);
      expect(values[i] == sum, fmt::format("sum {} of {} is {}", i, size, sum));
    }
  }
}

// Extrema of numbers of all magnitudes and signs.
template <class T>
void check_extrema(World& world) {
  const auto value = [](int rank, std::size_t i) {
    return static_cast<T>((i * 0x9e3779b97f4a7c15 + static_cast<std::size_t>(rank)) *
                          0xbf58476d1ce4e5b9);
  };
  for (const std::size_t size : kSizes) {
    std::vector<T> least(size);
    for (std::size_t i = 0; i < size; ++i) least[i] = value(world.rank(), i);
    std::vector<T> largest = least, sums = least;
    world.all_reduce_min(least);
    world.all_reduce_max(largest);
    world.all_reduce_sum(sums);
    for (std::size_t i = 0; i < size; ++i) {
      T low = value(0, i), high = low;
      std::uint64_t sum = 0;  // that wraps
      for (int rank = 0; rank < world.size(); ++rank) {
        low = std::min(low, value(rank, i)), high = std::max(high, value(rank, i));
        sum += static_cast<std::uint64_t>(value(rank, i));
      }
      expect(least[i] == low, fmt::format("least {} of {} is {}", i, size, low));
      expect(largest[i] == high, fmt::format("largest {} of {} is {}", i, size, high));
      expect(sums[i] == static_cast<T>(sum), fmt::format("sum {} of {}", i, size));
    }
  }
}

void check_integers(World& world) {
  check_extrema<std::int32_t>(world);
  check_extrema<std::int64_t>(world);
  check_extrema<std::uint32_t>(world);
  check_extrema<std::uint64_t>(world);
}

// Inexact sums must still be the same bits everywhere.
void check_same_bits(World& world) {
  std::vector<float> values(10007);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) + 0.1f * static_cast<float>(world.rank()));
  world.all_reduce_sum(std::span(values));
  const auto all = world.all_gather(std::as_bytes(std::span(values)));
  for (const auto& one : all) expect(one == all[0], "equal bits on all ranks");
}

std::vector<std::byte> pattern(std::size_t size, int from, int to) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 13 + static_cast<std::size_t>(from * 5 + to * 3));
  return bytes;
}

void check_all_gather(World& world) {
  for (const std::size_t scale : kSizes) {
    const auto size = [&](int rank) { return scale * static_cast<std::size_t>(rank); };
    const auto all = world.all_gather(pattern(size(world.rank()), world.rank(), 0));
    expect(all.size() == static_cast<std::size_t>(world.size()), "a part a rank");
    for (int rank = 0; rank < world.size(); ++rank)
      expect(all[static_cast<std::size_t>(rank)] == pattern(size(rank), rank, 0), "its bytes");
  }
}

void check_all_to_all(World& world) {
  for (const std::size_t scale : kSizes) {
    // Parts are uneven, and empty between some pairs.
    const auto size = [&](int from, int to) {
      return scale * static_cast<std::size_t>((from * 3 + to * 5) % 4) / 2;
    };
    std::vector<std::vector<std::byte>> out, in;
    for (int rank = 0; rank < world.size(); ++rank) {
      out.push_back(pattern(size(world.rank(), rank), world.rank(), rank));
      in.emplace_back(size(rank, world.rank()));
    }
    const auto before = world.bytes_sent();
    world.all_to_all(std::vector<std::span<const std::byte>>(out.begin(), out.end()),
                     std::vector<std::span<std::byte>>(in.begin(), in.end()));
    std::uint64_t sent = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto right = pattern(size(rank, world.rank()), rank, world.rank());
      expect(in[static_cast<std::size_t>(rank)] == right, "the bytes of each pair");
      if (rank != world.rank()) sent += size(world.rank(), rank);
    }
    expect(world.bytes_sent() - before == sent, fmt::format("{} bytes sent", sent));
  }
}

void check_broadcast(World& world) {
  for (int root = 0; root < world.size(); ++root)
    for (const std::size_t size : kSizes) {
      auto bytes = pattern(size, world.rank(), 9);
      world.broadcast(bytes, root);
      expect(bytes == pattern(size, root, 9), "the bytes of the root");
    }
}

void check_store(World& world) {
  world.store_set(fmt::format("key {}", world.rank()), fmt::format("value {}", world.rank()));
  world.store_set("empty", "");
  for (int rank = 0; rank < world.size(); ++rank)
    expect(world.store_get(fmt::format("key {}", rank)) == fmt::format("value {}", rank), "value");
  expect(world.store_get("empty").empty(), "an empty value");
}

const RankProgram collectives("collectives", [](World& world) {
  expect(world.one_host(), "one host");
  check_sums<float>(world);
  check_sums<double>(world);
  check_same_bits(world);
  check_integers(world);
  check_all_gather(world);
  check_all_to_all(world);
  check_broadcast(world);
  check_store(world);
  for (int i = 0; i < 100; ++i) world.barrier();
});

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, EqualPlainSumsAndCopies) {
  const auto outcome = run_job({"collectives", GetParam(), kPatient});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(2, 3, 4));

TEST(Alone, NeedsNoLauncher) {
  const auto world = World::alone();
  EXPECT_EQ(world->rank(), 0);
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->bytes_sent(), 0u);
  check_sums<float>(*world);
  check_all_gather(*world);
  check_all_to_all(*world);
  check_broadcast(*world);
  check_store(*world);
  EXPECT_THROW(world->store_get("never set"), std::exception);
}

// One world comes after another in the same processes, on the same store.
const PlainProgram two_worlds("two worlds", [] {
  for (int i = 0; i < 2; ++i) {
    const auto world = World::join(world_from_environment().value());
    std::vector<double> one{1};
    world->all_reduce_sum(std::span(one));
    expect(one[0] == world->size(), "the sum of ones");
  }
  return 0;
});

TEST(World, TwoInSuccession) {
  const auto outcome = run_job({"two worlds", 2, kPatient});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

// A rank is slow before each kind of collective in turn, for longer than joining may take.
const PlainProgram slow_rank("slow rank", [] {
  WorldConfig config = world_from_environment().value();
  config.join_timeout = 4s;
  const auto world = World::join(config);
  const std::function<void()> collectives[] = {
      [&] { check_all_to_all(*world); },
      [&] { world->barrier(); },
      [&] { check_broadcast(*world); },
      [&] { check_sums<float>(*world); },
  };
  const auto index = static_cast<std::size_t>(std::stoi(std::getenv("PLAIT_TEST_COLLECTIVE")));
  if (world->rank() == 1) std::this_thread::sleep_for(config.join_timeout + 1s);
  collectives[index]();
  return 0;
});

TEST(SlowRank, IsWaitedForLongerThanJoiningMayTake) {
  std::vector<std::unique_ptr<Job>> jobs;  // at the same time
  for (int collective = 0; collective < 4; ++collective)
    jobs.push_back(std::make_unique<Job>(JobOptions{
        "slow rank", 2, kPatient, {{"PLAIT_TEST_COLLECTIVE", std::to_string(collective)}}}));
  for (const auto& job : jobs) {
    const auto outcome = job->wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

// Ranks are on two addresses that are not the same host as far as ranks can tell.
void check_two_hosts(World& world) {
  expect(!world.one_host(), "two hosts");
  check_sums<float>(world);
  check_integers(world);
  check_all_gather(world);
  check_all_to_all(world);
  check_broadcast(world);
}
const RankProgram two_hosts("two hosts", check_two_hosts);

TEST(Hosts, TwoOnLoopbackAddresses) {
  const int port = free_port();
  std::vector<Process> processes;
  for (int rank = 0; rank < 3; ++rank) {
    auto environment = rank_environment("two hosts", rank, 3, port);
    environment["PLAIT_INTERFACE"] = rank < 2 ? "127.0.0.1" : "127.0.0.2";
    environment["PLAIT_HOST_ID"] = rank < 2 ? "first" : "second";
    processes.emplace_back(environment);
  }
  for (auto& process : processes) {
    const auto outcome = process.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

// Each rank is in a network namespace of its own, joined by a virtual cable: as near to two hosts
// as one machine comes. The namespaces have no names and end with their processes, cable included.
const PlainProgram in_namespace("in a namespace", [] {
  const auto config = world_from_environment().value();
  expect(::unshare(CLONE_NEWNET) == 0, "a network namespace");
  say(fmt::format("ready {}", ::getpid()));
  const auto name = fmt::format("plait{}", config.rank);
  while (::if_nametoindex(name.c_str()) == 0) std::this_thread::sleep_for(10ms);
  const auto command = fmt::format("ip address add 10.213.7.{}/24 dev {} && ip link set {} up",
                                   config.rank + 1, name, name);
  // The first rank reaches itself over the loopback interface.
  expect(std::system((command + " && ip link set lo up").c_str()) == 0, command);
  const auto world = World::join(config);
  check_two_hosts(*world);
  return 0;
});

TEST(Hosts, TwoNetworkNamespaces) {
  if (::geteuid() != 0 || std::system("ip -V > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "needs root and iproute2";
  std::vector<Process> processes;
  for (int rank = 0; rank < 2; ++rank) {
    auto environment = rank_environment("in a namespace", rank, 2, 29555);
    environment["MASTER_ADDR"] = "10.213.7.1";
    processes.emplace_back(environment);
  }
  std::string ids[2];
  for (int rank = 0; rank < 2; ++rank) ids[rank] = processes[rank].await("ready ");
  const auto command = fmt::format(
      "ip link add plait0 netns {} type veth peer name plait1 netns {}", ids[0], ids[1]);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (auto& process : processes) {
    const auto outcome = process.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

}  // namespace
}  // namespace plait::test
