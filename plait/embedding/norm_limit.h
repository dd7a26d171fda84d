// The greatest norm of a row, as torch.nn.EmbeddingBag's max_norm: the rule that the CPU and the
// GPU share. A row of a greater norm is multiplied by most / (norm + 1e-7).
//
// Norms are found from sums of powers, which parts of a row have for themselves; of the infinite
// norm, from the greatest absolute values. A row with NaN is left as it is.
#pragma once

#include <cmath>
#include <limits>

#include "plait/base/host_device.h"

namespace plait {

struct NormLimit {
  double most = std::numeric_limits<double>::infinity();
  double type = 2;  // p of the p-norm, above 0; may be infinite

  PLAIT_HOST_DEVICE bool limits() const { return most < HUGE_VAL; }

  // Returns what a number adds to a sum of powers.
  PLAIT_HOST_DEVICE double power(double x) const {
    const double size = fabs(x);
    return type == 2 ? x * x : type == HUGE_VAL || type == 1 ? size : pow(size, type);
  }
  // Returns the sum of powers of two parts of a row.
  PLAIT_HOST_DEVICE double join(double a, double b) const {
    if (type != HUGE_VAL) return a + b;
    return b > a || b != b ? b : a;
  }
  // Returns the factor of a row with this sum of powers.
  PLAIT_HOST_DEVICE double factor(double sum) const {
    const double norm = type == 2 ? sqrt(sum) : type == HUGE_VAL ? sum : pow(sum, 1 / type);
    return norm > most ? most / (norm + 1e-7) : 1;
  }
};

}  // namespace plait
