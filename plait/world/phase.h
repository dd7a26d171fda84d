// What this rank is doing now, in a few words, for the error message on the other ranks.
#pragma once

#include <string>

namespace plait {

// Names the work from here to the end of the scope: Phase phase("epoch 17");
// Phases nest; the current one is the innermost. Cheap: a string copy under a lock.
class Phase {
 public:
  explicit Phase(std::string name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  static std::string current();

 private:
  std::string previous_;
};

}  // namespace plait
