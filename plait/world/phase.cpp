#include "plait/world/phase.h"

#include <exception>
#include <mutex>
#include <utility>

namespace plait {
namespace {

struct Names {
  std::mutex mutex;
  std::string current;
  std::string left_by_exception;
};

// The names are never destroyed: the liveness threads may ask until the very end of the process.
Names& names() {
  static auto* names = new Names;
  return *names;
}

}  // namespace

Phase::Phase(const std::string& name, std::string_view timed)
    : exceptions_(std::uncaught_exceptions()),
      timed_(timed.empty() ? std::string_view(name) : timed) {
  auto& all = names();
  const std::lock_guard lock(all.mutex);
  previous_ = all.current;
  all.current = previous_.empty() ? name : previous_ + ": " + name;
  all.left_by_exception.clear();
}

Phase::~Phase() {
  auto& all = names();
  const std::lock_guard lock(all.mutex);
  if (std::uncaught_exceptions() > exceptions_ && all.left_by_exception.empty())
    all.left_by_exception = all.current;
  all.current = std::move(previous_);
}

std::string Phase::current() {
  auto& all = names();
  const std::lock_guard lock(all.mutex);
  return all.current;
}

std::string Phase::at_failure() {
  auto& all = names();
  const std::lock_guard lock(all.mutex);
  return all.left_by_exception.empty() ? all.current : all.left_by_exception;
}

}  // namespace plait
