// Optimisers that change only the rows of a table that have a gradient, all that a step does to a
// row at once. They compute what torch.optim.SGD, Adagrad and SparseAdam do with sparse gradients.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

enum class RowRule {
  sgd,      // w -= rate g
  adagrad,  // s += g^2;  w -= rate g / (sqrt(s) + epsilon)
  adam,     // m += a (g - m);  s += b (g^2 - s);  w -= rate m / (sqrt(s) + epsilon)
};

// Arguments of update_rows(): row rows[i] changes by row i of `gradients`. Rows are distinct and
// have no gaps.
struct RowUpdate {
  RowRule rule = RowRule::sgd;
  const std::int64_t* rows = nullptr;
  std::uint64_t count = 0;
  std::uint64_t width = 0;
  const float* gradients = nullptr;
  float* weights = nullptr;
  float* squares = nullptr;  // s, of all rules but sgd; like the weights
  float* moments = nullptr;  // m, of adam
  float rate = 0;            // of this step, with all corrections
  float epsilon = 0;
  float a = 0, b = 0;  // of adam: 1 - beta1, 1 - beta2
};

// Changes one number of a row; g is its gradient, `at` its place in all arrays.
PLAIT_HOST_DEVICE inline void update_number(const RowUpdate& u, std::uint64_t at, float g);

// Changes the rows, by all threads. Nothing is checked.
void update_rows(const RowUpdate& update);

PLAIT_HOST_DEVICE inline void update_number(const RowUpdate& u, std::uint64_t at, float g) {
  if (u.rule == RowRule::sgd) {
    u.weights[at] -= u.rate * g;
    return;
  }
  float& s = u.squares[at];
  float step = g;
  if (u.rule == RowRule::adagrad) {
    s += g * g;
  } else {
    float& m = u.moments[at];
    m += u.a * (g - m);
    s += u.b * (g * g - s);
    step = m;
  }
  u.weights[at] -= u.rate * step / (__builtin_sqrtf(s) + u.epsilon);
}

}  // namespace plait
