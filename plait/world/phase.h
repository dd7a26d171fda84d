// The present work of this rank, in a few words, for error messages on the other ranks and for the
// profile of a run.
#pragma once

#include <string>
#include <string_view>

#include "plait/base/profile.h"

namespace plait {

// Names the work from here to the end of the scope: Phase phase("epoch 17"). Phases nest, and their
// names are joined: within it, Phase inner("aggregate") makes the current one "epoch 17:
// aggregate". The main thread makes and destroys phases; any thread may ask. A phase costs a string
// copy under a lock. In a profile (base/profile.h) it has its name, or `timed` for names that
// differ from call to call.
class Phase {
 public:
  // Enters a phase.
  explicit Phase(const std::string& name, std::string_view timed = {});
  // When an exception ends the scope, keeps the name for at_failure().
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  // Returns the joined names of the phases under way.
  static std::string current();
  // Returns the innermost phase that the exception now under way has left, or current().
  static std::string at_failure();

 private:
  std::string previous_;
  int exceptions_;
  const Timed timed_;
};

// Returns the result of `work`, which runs in a phase of this name.
template <class Work>
decltype(auto) in_phase(const std::string& name, Work work) {
  const Phase phase(name);
  return work();
}

}  // namespace plait
