// Faults in steps on embedding tables, for tests on the CPU and on GPUs: no rank waits for one that
// has failed, also while that one lives on.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/symmetric/agreement.h"
#include "tests/world/ranks.h"

namespace plait::test {

// For rank programs. Runs steps of which one part fails, as the environment says. A rank that has
// failed catches its error and goes on living; all ranks print what they hear.
inline void run_with_fault(World& world, const std::function<void()>& step) {
  const auto setting = [](const char* name) { return std::atoi(std::getenv(name)); };
  step();
  world.barrier();
  const bool fails = setting("TEST_EVERYWHERE") != 0 || world.rank() == 1;
  if (fails) switch_fault(static_cast<Fault>(setting("TEST_FAULT")), setting("TEST_PART"));
  bool came = false;
  const std::string error = failure_of([&] {
    try {
      step();
    } catch (...) {
      came = fails && !take_back_fault();
      throw;
    }
    take_back_fault();
    step();
  });
  if (error.empty()) return;
  while (came && failure_of([&] { world.check_alive(); }).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fmt::print(stderr, "rank {} heard: {}\n", world.rank(), error);
  throw Error("a step has failed");
}

// A part of a step, and the way in which it fails, on rank 1 or on all.
struct FaultOfStep {
  int part;
  Fault fault;
  bool everywhere;
};

// Returns whether a step of the program, on two ranks, has so many parts.
inline bool try_fault(const std::string& program, const FaultOfStep& trial) {
  using testing::HasSubstr;
  const int fault = static_cast<int>(trial.fault);
  const Outcome outcome =
      run_job({.program = program,
               .ranks = 2,
               .timeout_ms = 20000,
               .environment = {{"TEST_PART", std::to_string(trial.part)},
                               {"TEST_FAULT", std::to_string(fault)},
                               {"TEST_EVERYWHERE", trial.everywhere ? "1" : "0"}}});
  if (outcome.code == 0) return false;
  const std::string text = fmt::format("part {}, fault {}, everywhere {}: {}", trial.part, fault,
                                       trial.everywhere, outcome.all_errors());
  EXPECT_EQ(outcome.code, 1) << text;
  if (!trial.everywhere) {  // the job ends only if this is heard: rank 1 lives on
    EXPECT_THAT(outcome.errors,
                testing::Contains(testing::AllOf(HasSubstr("rank 0: rank 1 failed "),
                                                 HasSubstr("in a step on embedding tables"))))
        << text;
  }
  return true;
}

// Lets each part fail, by each fault in turn, on one rank and on all. Under sanitizers, where a job
// takes long to start, each third of these parts.
inline void expect_faults_are_heard(const std::string& program) {
#ifdef PLAIT_SANITIZED
  constexpr int kNext = 9;
#else
  constexpr int kNext = 3;
#endif
  for (const bool everywhere : {false, true})
    for (const Fault fault : {Fault::refusal, Fault::memory, Fault::device}) {
      int part = static_cast<int>(fault);
      while (try_fault(program, {part, fault, everywhere})) part += kNext;
      EXPECT_GT(part, 9) << "a step has few parts";
    }
}

}  // namespace plait::test
