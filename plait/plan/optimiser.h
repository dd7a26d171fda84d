// Chooses the way in which rows move while training runs: the first epochs are trials of one way
// each, then the fastest way stays (MGG's cross-iteration optimisation: Wang et al., OSDI 2023,
// section 6). Results do not depend on the way, so that no trial is lost work.
//
// The choice is a function of the times that it is told. Ranks that tell it the same times, such as
// the slowest rank's, choose the same.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plait/plan/get_tuning.h"
#include "plait/plan/strategy.h"

namespace plait {

constexpr int kMostPasses = 1000;

// One way of moving rows on a partition that is given.
struct TrialWay {
  Strategy strategy = Strategy::bulk;
  // For pipelined and partial on GPUs: the equal parts of the halo at which passes end; 0: as
  // halo_schedule.h decides.
  int passes = 0;
  GetTuning get = {};  // for strategy get on GPUs

  friend auto operator<=>(const TrialWay&, const TrialWay&) = default;
};

// Returns the way's name: "strategy pipelined, 3 passes", or "strategy get, ps 32".
std::string name_of(const TrialWay& way);
// Returns the shares of the halo at which so many equal passes end (GpuTuning::pass_shares); none
// for 0.
std::vector<double> equal_shares(int passes);

// The trial of one way so far.
struct Trial {
  TrialWay way;
  int epochs = 0;                // that were taken by the way
  std::vector<double> seconds;   // of these, epochs that count
  std::optional<double> set_up;  // seconds that placing the graph took
  std::string left_out;          // why it was not tried; empty: it was, or its turn has not come

  // Returns the least of `seconds`, or infinity.
  double least() const;
};

class Optimiser {
 public:
  // Epochs that count, per way, after those that warm it up.
  static constexpr int kSamples = 2;
  // A way is left after its first epoch that counts if that takes this many times as long as the
  // best way's.
  static constexpr double kClearlyWorse = 1.25;
  // A way must be faster than the first one by this factor to stay in its place: two epochs each
  // tell little on a machine that does other work, and later runs go by what stayed.
  static constexpr double kBetter = 1.15;
  // The share of an epoch that another way is assumed to save at most: a way is tried only if this,
  // over the epochs that are left, repays the trial.
  static constexpr double kMostGain = 0.2;

  // The first way is the one that the run would go without trials. One way alone needs no trial.
  explicit Optimiser(const std::vector<TrialWay>& ways);

  // Returns the number of the way that the next epoch must take.
  std::size_t wanted() const { return wanted_; }
  // Tells whether the way that is wanted stays to the end.
  bool finished() const { return finished_; }
  const std::vector<Trial>& trials() const { return trials_; }
  // Returns the number of the best way so far.
  std::size_t best() const;

  // The wanted way was set up in so many seconds; its first `warm_up` epochs do not count.
  void placed(double seconds, int warm_up);
  // The wanted way cannot be gone. Throws Error if it was to stay.
  void refuse(const std::string& reason);
  // An epoch by the wanted way took so long; so many epochs are left after it.
  void took(double seconds, int epochs_left);

 private:
  void go_on();
  std::string not_worthwhile() const;

  std::vector<Trial> trials_;
  std::size_t wanted_ = 0;
  int warm_up_ = 0, epochs_left_ = 0;
  double longest_set_up_ = 0;
  bool finished_;
};

}  // namespace plait
