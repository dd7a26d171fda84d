// Arrays as kernels take them: null where there are none.
#pragma once

namespace plait {

// Returns where the values of a span or a vector stand; null if it is empty.
template <class Values>
auto data_or_null(const Values& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace plait
