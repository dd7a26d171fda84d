// The rows of the table of apps, one per file NAME.cpp, and what their verifiers share.
#pragma once

#include <algorithm>

#include "plait/apps/app.h"
#include "plait/base/error.h"

namespace plait {

extern const App kBfs, kComponents;

// Throws MismatchError unless the result states this fact with this value.
template <class T>
void require_fact(const AppResult& result, const std::string& name, T value) {
  const auto fact = std::ranges::find(result.facts, name, &AppFact::name);
  const T stated = fact == result.facts.end() ? T{} : std::get<T>(fact->value);
  require<MismatchError>(fact != result.facts.end() && stated == value, "{} is {}, not {}", name,
                         stated, value);
}

}  // namespace plait
