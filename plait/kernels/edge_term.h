// The term of one column of an edge, the same on every device. Internal to this room.
#pragma once

#include <type_traits>

#include "plait/base/error.h"
#include "plait/base/host_device.h"
#include "plait/kernels/edge_values.h"

namespace plait {

// As if_greater() of Float8.
template <class T>
PLAIT_HOST_DEVICE constexpr T if_greater(T a, T b, T yes, T no) {
  return a > b ? yes : no;
}

// Returns the term of a column (EdgeTerm). T: float, double or Float8; `zero` is its 0. NaN stays
// NaN.
template <EdgeTerm kTerm, class T>
PLAIT_HOST_DEVICE constexpr T term_of(T a, T b, T m, T factor, T slope, T zero = {}) {
  if constexpr (kTerm == EdgeTerm::plus) {
    return b + m;
  } else if constexpr (kTerm == EdgeTerm::product) {
    return a * (b + m);
  } else if constexpr (kTerm == EdgeTerm::leaky) {
    const T z = (a + b) + m;
    return factor * if_greater(z, zero, z, slope * z);
  } else if constexpr (kTerm == EdgeTerm::slope) {
    return if_greater((a + b) + m, zero, factor, slope * factor);
  } else if constexpr (kTerm == EdgeTerm::relu) {
    const T z = b + m;
    return if_greater(zero, z, zero, z);
  } else if constexpr (kTerm == EdgeTerm::gate) {
    return if_greater(a + m, zero, b, zero);
  } else if constexpr (kTerm == EdgeTerm::own) {
    return a;
  } else {
    return m;
  }
}

// The arrays that a term reads.
PLAIT_HOST_DEVICE constexpr bool reads_a(EdgeTerm term) {
  return term != EdgeTerm::plus && term != EdgeTerm::relu && term != EdgeTerm::edge;
}
PLAIT_HOST_DEVICE constexpr bool reads_b(EdgeTerm term) {
  return term != EdgeTerm::own && term != EdgeTerm::edge;
}
PLAIT_HOST_DEVICE constexpr bool reads_factor(EdgeTerm term) {
  return term == EdgeTerm::leaky || term == EdgeTerm::slope;
}

// Calls use(std::integral_constant<EdgeTerm, term>{}). Throws UsageError unless it is one of
// kTerms.
template <EdgeTerm... kTerms, class Use>
void with_term(EdgeTerm term, Use&& use) {
  const bool known =
      ((term == kTerms && (use(std::integral_constant<EdgeTerm, kTerms>{}), true)) || ...);
  require<UsageError>(known, "term {} is not one of this operation", static_cast<int>(term));
}
// The terms of each operation.
template <class Use>
void with_score(EdgeTerm term, Use&& use) {
  with_term<EdgeTerm::product, EdgeTerm::leaky>(term, use);
}
template <class Use>
void with_sum(EdgeTerm term, Use&& use) {
  with_term<EdgeTerm::plus, EdgeTerm::leaky, EdgeTerm::slope, EdgeTerm::relu, EdgeTerm::gate,
            EdgeTerm::edge>(term, use);
}
template <class Use>
void with_row(EdgeTerm term, Use&& use) {
  with_term<EdgeTerm::leaky, EdgeTerm::slope, EdgeTerm::gate, EdgeTerm::own>(term, use);
}

}  // namespace plait
