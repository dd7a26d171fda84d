// Optimisers that change only the rows of a table that have a gradient, all that a step does to a
// row at once. They compute what torch.optim.SGD, Adagrad and SparseAdam do with sparse gradients,
// in single precision; weights of fewer bits are rounded when they are stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "plait/base/host_device.h"
#include "plait/base/number.h"

namespace plait {

enum class RowRule {
  sgd,      // w -= rate g
  adagrad,  // s += g^2;  w -= rate g / (sqrt(s) + epsilon)
  adam,     // m += a (g - m);  s += b (g^2 - s);  w -= rate m / (sqrt(s) + epsilon)
};

// Throws a UsageError that lists the names.
RowRule parse_row_rule(std::string_view name);
std::string_view to_string(RowRule rule);
// Returns the arrays of floats, as large as the weights, that a rule keeps.
constexpr std::uint64_t states_of(RowRule rule) {
  return rule == RowRule::sgd ? 0 : rule == RowRule::adagrad ? 1 : 2;
}

// Arguments of update_rows(): row rows[i] changes by row i of `gradients`. Rows are distinct and
// have no gaps.
struct RowUpdate {
  RowRule rule = RowRule::sgd;
  const std::int64_t* rows = nullptr;
  std::uint64_t count = 0;
  std::uint64_t width = 0;
  const float* gradients = nullptr;
  void* weights = nullptr;  // numbers of `type`
  DType type = DType::f32;
  float* squares = nullptr;  // s, of all rules but sgd; as many as the weights
  float* moments = nullptr;  // m, of adam
  float rate = 0;            // of this step, with all corrections
  float epsilon = 0;
  float a = 0, b = 0;  // of adam: 1 - beta1, 1 - beta2
};

// Changes one number of a row, of type T; g is its gradient, `at` its place in all arrays.
template <class T>
PLAIT_HOST_DEVICE void update_number(const RowUpdate& u, std::uint64_t at, float g);

// Changes the rows, by all threads. Nothing is checked.
void update_rows(const RowUpdate& update);

template <class T>
PLAIT_HOST_DEVICE void update_number(const RowUpdate& u, std::uint64_t at, float g) {
  T& weight = static_cast<T*>(u.weights)[at];
  if (u.rule == RowRule::sgd) {
    weight = rounded<T>(widened(weight) - u.rate * g);
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
  weight = rounded<T>(widened(weight) - u.rate * step / (__builtin_sqrtf(s) + u.epsilon));
}

}  // namespace plait
