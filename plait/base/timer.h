// Wall time.
#pragma once

#include <chrono>

namespace plait {

// Measures wall time from its making.
class Stopwatch {
 public:
  // Returns the seconds since then.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Adds the time from here to the end of the scope to `total`, in seconds.
class AddTime {
 public:
  explicit AddTime(double& total) : total_(total) {}
  ~AddTime() { total_ += watch_.seconds(); }
  AddTime(const AddTime&) = delete;
  AddTime& operator=(const AddTime&) = delete;

 private:
  double& total_;
  Stopwatch watch_;
};

}  // namespace plait
