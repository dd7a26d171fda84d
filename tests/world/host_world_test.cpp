// The ranks of a host as a world of their own: collectives among them, losses on any host, and
// calls that do not meet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "plait/base/all_to_all.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/heap.h"
#include "plait/world/difference.h"
#include "plait/world/gather.h"
#include "plait/world/host_sums.h"
#include "plait/world/phase.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;

// Starts one rank for each letter, on the host of this name.
std::vector<Process> start_on_hosts(const std::string& program, const std::string& hosts,
                                    int timeout_ms) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < std::ssize(hosts); ++rank) {
    auto environment =
        rank_environment(program, rank, static_cast<int>(hosts.size()), port, timeout_ms);
    environment["PLAIT_HOST_ID"] = hosts.substr(static_cast<std::size_t>(rank), 1);
    ranks.emplace_back(environment);
  }
  return ranks;
}

// Returns the lines of all ranks, each of which has to fail.
std::vector<std::string> errors_of(std::vector<Process>& ranks) {
  std::vector<std::string> lines;
  for (Process& rank : ranks) {
    const Outcome outcome = rank.wait();
    EXPECT_EQ(outcome.code, 1);
    lines.insert(lines.end(), outcome.errors.begin(), outcome.errors.end());
  }
  return lines;
}

// --- collectives ---

void check_sums(const World& world, World& host) {
  const std::vector<int>& here = world.ranks_of_host();
  // Hosts make their own calls as often as they like.
  for (int call = 0; call <= here.front(); ++call) {
    std::vector<double> sum{1.0 + world.rank()};
    host.all_reduce_sum(std::span(sum));
    expect(sum[0] == std::accumulate(here.begin(), here.end(), 1.0 * std::ssize(here)),
           "the sum of a host");
  }
}

void check_copies(const World& world, World& host) {
  expect(gather_values(host, world.rank()) == world.ranks_of_host(), "the ranks of a host");
  const std::vector<char> mine(static_cast<std::size_t>(world.rank()), 'x');
  const auto all = gather_vectors(host, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    expect(std::ssize(all[rank]) == world.ranks_of_host()[rank], "parts of different sizes");
  int root = world.rank();
  host.broadcast(std::as_writable_bytes(std::span(&root, 1)), host.size() - 1);
  expect(root == world.ranks_of_host().back(), "the number of the last rank");
}

void check_memory(const World& world, World& host) {
  const auto heap = SymmetricHeap::create(host, sizeof(int));
  const int mine = world.rank();
  std::memcpy(heap->part(host.rank()).data(), &mine, sizeof mine);
  heap->barrier();
  for (int rank = 0; rank < host.size(); ++rank) {
    int found = -1;
    std::memcpy(&found, heap->part(rank).data(), sizeof found);
    expect(found == host.number_of(rank), "memory that a host's ranks share");
  }
  heap->barrier();
}

void check_channel(World& host) {
  const auto channel = host.open_channel();
  const auto ranks = static_cast<std::size_t>(host.size());
  const std::vector<std::vector<std::uint64_t>> send(ranks, {std::uint64_t(host.rank()), 7});
  const auto found = exchange_vectors(*channel, send);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    expect(found[rank] == std::vector<std::uint64_t>{rank, 7}, "numbers by a channel");
}

const RankProgram host_world("host world", [](World& world) {
  World& host = world.host_world();
  expect(&world.host_world() == &host, "there is one");
  expect(host.one_host() && &host.host_world() == &host, "it is of one host");
  expect(host.size() == std::ssize(world.ranks_of_host()), "its size");
  expect(host.number_of(host.rank()) == world.rank(), "its numbers");
  for (int round = 0; round < 3; ++round) {
    check_sums(world, host);
    check_copies(world, host);
    std::vector<float> one{1};
    world.all_reduce_sum(std::span(one));
    expect(one[0] == static_cast<float>(world.size()), "the sum of all");
  }
  check_memory(world, host);
  check_channel(host);
  const auto name = std::to_string(world.ranks_of_host().front());
  host.store_set("key", name);
  host.barrier();
  expect(host.store_get("key") == name, "a value of a host");
  world.barrier();
});

class HostWorld : public testing::TestWithParam<const char*> {};

TEST_P(HostWorld, HasCollectivesOfItsOwn) {
  for (Process& rank : start_on_hosts("host world", GetParam(), kPatient)) {
    const Outcome outcome = rank.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostWorld, testing::Values("aabb", "aba", "aa"));

const RankProgram host_sums("sums over hosts", [](World& world) {
  HostSums sums(world);
  expect(sums.takes_part() == (world.rank() == world.ranks_of_host()[0]), "the first of a host");
  const auto firsts = gather_values(world, sums.takes_part() ? world.rank() : -1);
  for (const std::size_t size : {0, 1, 5, 1000}) {
    std::vector<float> values(sums.takes_part() ? size : 0);
    const auto value = [](int rank, std::size_t i) {
      return static_cast<float>(static_cast<std::size_t>(rank) * 31 + i % 7);
    };
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(world.rank(), i);
    sums.sum(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float sum = 0;
      for (const int rank : firsts) sum += rank < 0 ? 0 : value(rank, i);
      expect(values[i] == sum, fmt::format("sum {} of {} over hosts is {}", i, size, sum));
    }
  }
  // Inexact sums are the same bits everywhere.
  std::vector<float> values(sums.takes_part() ? 1001 : 0);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) + 0.1f * static_cast<float>(world.rank()));
  sums.sum(values);
  const auto all = gather_vectors(world, values);
  for (const auto& one : all) expect(one.empty() || one == all[0], "equal bits on all hosts");
});

class SumsOverHosts : public testing::TestWithParam<const char*> {};

TEST_P(SumsOverHosts, AreTheSameOnOneRankOfEach) {
  for (Process& rank : start_on_hosts("sums over hosts", GetParam(), kPatient)) {
    const Outcome outcome = rank.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, SumsOverHosts, testing::Values("abba", "abc"));

TEST(HostWorldAlone, IsTheWorld) {
  const auto world = World::alone();
  EXPECT_EQ(&world->host_world(), world.get());
  EXPECT_EQ(world->number_of(0), 0);
}

// --- refusals ---

// Expects that work of each host's ranks throws this error, with this text, on all ranks.
template <class E, class Work>
void expect_refusal(World& world, Work work, const std::string& text) {
  std::string found = "no error";
  try {
    on_all_hosts(world, world.host_world(), work);
  } catch (const E& error) {
    found = error.what();
  }
  expect(found == text, fmt::format("'{}' instead of '{}'", found, text));
}

const RankProgram refusals("refusals of hosts", [](World& world) {
  World& host = world.host_world();
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto by_one = [&] {
      on_all_or_none(host, [&] { require<DoesNotFitError>(world.rank() != rank, "too large"); });
    };
    expect_refusal<DoesNotFitError>(world, by_one, fmt::format("rank {}: too large", rank));
  }
  for (const int first : {0, 1}) {
    const auto by_all = [&] { require<UsageError>(host.number_of(0) != first, "unknown"); };
    expect_refusal<UsageError>(world, by_all,
                               fmt::format("on the host of rank {}: unknown", first));
  }
  // An error of another kind comes before what does not fit.
  const auto by_both = [&] {
    require<DoesNotFitError>(host.size() > 1, "too large");
    throw Error("broken");
  };
  expect_refusal<Error>(world, by_both, "on the host of rank 1: broken");
});

TEST(RefusalsOfHosts, NameTheRankOrItsHostOnAllRanks) {
  for (Process& rank : start_on_hosts("refusals of hosts", "abb", kPatient)) {
    const Outcome outcome = rank.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

// --- operations that are compared within a host, and others ---

// While host a waits in a barrier for a rank, host b waits in sums.
const RankProgram calls_of_hosts("calls of hosts", [](World& world) {
  World& host = world.host_world();
  const bool first = world.ranks_of_host().front() == 0;
  for (int i = 0; i < 2; ++i) {
    if (host.rank() == 1) std::this_thread::sleep_for(world.timeout() / 8);
    std::vector<float> values(3);
    if (first)
      host.barrier();
    else
      host.all_reduce_sum(std::span(values));
  }
  world.barrier();
});

TEST(HostsCalls, AreNotComparedWithOtherHosts) {
  for (Process& rank : start_on_hosts("calls of hosts", "aabb", 5000)) {
    const Outcome outcome = rank.wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.all_errors(), "");
  }
}

const RankProgram another_kind("another kind", [](World& world) {
  World& host = world.host_world();
  std::vector<float> values(3);
  if (world.rank() == 3)
    host.all_reduce_sum(std::span(values));
  else
    host.barrier();
  world.barrier();
});
const RankProgram another_world("another world", [](World& world) {
  World& host = world.host_world();
  if (world.rank() == 3)
    world.barrier();
  else
    host.barrier();
  world.barrier();
});

// Returns a matcher of lines that have the text, but for that of a rank which others have lost.
template <class Matcher>
auto tell(const Matcher& text) {
  return AllOf(Contains(text), Each(AnyOf(text, HasSubstr("this rank was taken for lost"))));
}

// Returns a matcher of lines that name both calls: rank 3's and rank 2's.
auto names_calls(const std::string& of_3, const std::string& of_2) {
  const char* line = "rank {} has called {} where rank {} has called {}";
  return tell(AnyOf(HasSubstr(fmt::format(fmt::runtime(line), 3, of_3, 2, of_2)),
                    HasSubstr(fmt::format(fmt::runtime(line), 2, of_2, 3, of_3))));
}

TEST(HostsCalls, ThatDoNotMeetAreNamedOnAllHosts) {
  auto kinds = start_on_hosts("another kind", "aabb", 2000);  // at the same time
  auto worlds = start_on_hosts("another world", "aabb", 2000);
  EXPECT_THAT(errors_of(kinds),
              names_calls("a reduction over ranks on one host", "a barrier on one host"));
  EXPECT_THAT(errors_of(worlds), names_calls("a barrier", "a barrier on one host"));
}

const RankProgram differs("differs on a host", [](World& world) {
  World& host = world.host_world();
  require_equal(host, "ranks differ", {{"the number", world.rank() == 3 ? "1" : "0"}});
  world.barrier();
});

TEST(HostsRanks, AreNamedByTheirNumbersInTheWholeWorld) {
  auto ranks = start_on_hosts("differs on a host", "aabb", 2000);
  EXPECT_THAT(errors_of(ranks), Contains(HasSubstr("the number is 0 on rank 2, but 1 on rank 3")));
}

// --- lost ranks ---

const RankProgram forever_on_host("forever on its host", [](World& world) {
  World& host = world.host_world();
  const Phase phase("epoch 17");
  for (int i = 0; i < 20; ++i) host.barrier();
  std::this_thread::sleep_for(world.timeout() / 8);  // one heartbeat at least
  say_ready(world);
  for (;;) host.barrier();
});

TEST(HostsRanks, NameALostRankOfAnotherHost) {
  auto ranks = start_on_hosts("forever on its host", "aabb", 2000);
  for (int rank = 0; rank < 4; ++rank)
    ranks[static_cast<std::size_t>(rank)].await(fmt::format("ready {}", rank));
  ::kill(ranks[3].id(), SIGKILL);
  ranks[3].wait();
  ranks.pop_back();
  const auto lines = errors_of(ranks);
  EXPECT_EQ(lines.size(), 3);
  EXPECT_THAT(lines, Each(ContainsRegex("^plait: rank [0-2]: rank 3 has not answered for [0-9.]+ s "
                                        "while in 'epoch 17'$")));
}

const RankProgram leaves_its_host("leaves its host", [](World& world) {
  World& host = world.host_world();
  if (world.rank() != 2) host.barrier();
});

TEST(HostsRanks, MissARankThatHasLeft) {
  auto ranks = start_on_hosts("leaves its host", "aabb", 2000);
  EXPECT_THAT(errors_of(ranks), tell(HasSubstr("rank 2 has ended, but rank 3 still waits")));
}

}  // namespace
}  // namespace plait::test
