// Components: for every vertex the least number of a vertex in its weakly or strongly connected
// component.
#pragma once

#include <optional>
#include <vector>

#include "plait/apps/app.h"
#include "plait/apps/strong_components.h"
#include "plait/apps/weak_components.h"

namespace plait {

// Return the answer for every vertex, by its number: the oracles, in plain loops.
std::vector<std::uint64_t> components_reference(const Dataset& dataset);
std::vector<std::uint64_t> strong_components_reference(const Dataset& dataset);

template <class Operators>
class Components {
 public:
  explicit Components(const Operators& on) : on_(on) {}

  // Both kinds are the same in a graph that is its own transpose.
  void run(const AppSettings& settings) {
    if (settings.get<bool>("strong") && !on_.graph().symmetric()) {
      weak_.reset();
      if (!strong_) strong_.emplace(on_);
      strong_->run();
    } else {
      strong_.reset();
      if (!weak_) weak_.emplace(on_);
      weak_->run();
    }
  }

  std::vector<AppFact> facts() { return strong_ ? strong_->facts() : weak_->facts(); }

  template <class Put>
  void columns(const Put& put) const {
    strong_ ? strong_->columns(put) : weak_->columns(put);
  }

 private:
  const Operators& on_;
  std::optional<WeakComponents<Operators>> weak_;  // that of the last run; the other has no memory
  std::optional<StrongComponents<Operators>> strong_;
};

}  // namespace plait
