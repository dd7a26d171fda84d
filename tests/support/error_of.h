// The text of the error that an action throws.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plait/base/error.h"

namespace plait {

// Returns the text of the Error that `act` throws; fails and returns "" if it throws none.
template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace plait
