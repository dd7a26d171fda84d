#include "plait/nn/training/epochs.h"

#include <algorithm>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/setting.h"

namespace plait {

bool is_as_good(const EpochResult& epoch, const EpochResult& best) {
  return std::pair(epoch.validation_metric, -epoch.validation_loss) >=
         std::pair(best.validation_metric, -best.validation_loss);
}

bool out_of_patience(const std::vector<EpochResult>& history, int patience) {
  if (patience <= 0) return false;
  const auto lowest = std::ranges::min_element(history, {}, &EpochResult::validation_loss);
  return history.end() - lowest > patience;
}

void require_finite(const EpochResult& epoch, bool several) {
  require(std::isfinite(epoch.loss) || epoch.epoch > 0 || several,
          "the loss is {} in epoch 0, before any step; features or weights of edges are too large",
          epoch.loss);
  require(std::isfinite(epoch.loss), "the loss is {} in epoch {}; lower the learning rate",
          epoch.loss, epoch.epoch);
  require(std::isfinite(epoch.validation_loss),
          "the validation loss is {} after epoch {}; lower the learning rate",
          epoch.validation_loss, epoch.epoch);
}

void require_finite_weights(const std::vector<torch::Tensor>& weights, std::size_t epoch) {
  for (const torch::Tensor& tensor : weights)
    require(tensor.isfinite().all().item<bool>(),
            "weights are not finite after epoch {}; lower the learning rate", epoch);
}

std::string interruption(std::size_t epochs, std::int64_t steps, std::int64_t all,
                         const std::string& checkpoint) {
  const bool nothing = epochs == 0 && steps == 0;
  std::string text =
      epochs == 0 ? "interrupted in the first epoch"
                  : fmt::format("interrupted after {} epoch{}", epochs, epochs == 1 ? "" : "s");
  if (steps > 0)
    text += fmt::format("{} {} of {} steps", epochs == 0 ? ", after" : " and", steps, all);
  return nothing || checkpoint.empty() ? text
                                       : text + "; continue with " + setting("resume", checkpoint);
}

double median_milliseconds(const std::vector<EpochResult>& history) {
  if (history.empty()) return 0;
  std::vector<double> times;
  for (const EpochResult& epoch : history) times.push_back(epoch.milliseconds);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace plait
