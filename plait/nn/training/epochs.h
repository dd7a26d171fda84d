// These functions judge the epochs of a run: whether to go on, and which of them was the best.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "plait/nn/training/train.h"

namespace plait {

// Tells whether the weights of an epoch are kept in place of those of the best one before: its
// validation metric is higher, or as high with a loss that is not higher.
bool is_as_good(const EpochResult& epoch, const EpochResult& best);

// Tells whether the lowest validation loss is `patience` epochs ago; never if that is 0.
bool out_of_patience(const std::vector<EpochResult>& history, int patience);

// Refuses a loss that no later epoch could mend, the same on every rank. The loss is from before
// the epoch's step, or with `several` steps from before each of them, the validation loss from
// after the epoch. Throws Error.
void require_finite(const EpochResult& epoch, bool several);

// Throws Error unless weights are finite: without validation examples no loss tells of the last
// step.
void require_finite_weights(const std::vector<torch::Tensor>& weights, std::size_t epoch);

// Returns how far an interrupted run has come, and how it goes on: "interrupted after 3 epochs and
// 5 of 20 steps; continue with --resume FILE". `steps`: of the epoch under way, of `all`;
// `checkpoint`: the file that was written, or empty.
std::string interruption(std::size_t epochs, std::int64_t steps, std::int64_t all,
                         const std::string& checkpoint);

// Returns the median time of an epoch; 0 without epochs.
double median_milliseconds(const std::vector<EpochResult>& history);

}  // namespace plait
