// What an action complains of.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plait/base/error.h"

namespace plait {

// The text of the Error that `act` throws; a failure and "" if it throws none.
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
