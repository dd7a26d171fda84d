#include "plait/base/failure.h"

#include <unistd.h>

#include <new>
#include <system_error>

#include "plait/base/memory.h"
#include "plait/base/printable.h"
#include "plait/base/system_limits.h"

namespace plait {

Failure failure_of(const std::exception& error) {
  // The text of an Error is one line, unless a file's name holds more.
  if (const auto* own = dynamic_cast<const Error*>(&error)) return {own->what(), own->exit_code()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    const auto limit = limit_on_addresses();
    return {limit ? fmt::format("there is no memory left; addresses are limited to {} (ulimit -v)",
                                format_bytes(*limit))
                  : "there is no memory left",
            ExitCode::does_not_fit};
  }
  // Libraries start threads, too, and report the system's words alone.
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return {thread_failure(system->code().value()), ExitCode::failed};
  const std::string text = error.what();
  return {text.substr(0, text.find('\n')), ExitCode::failed};
}

void print_failure(const std::string& text) {
  const std::string line = "plait: " + printable(text) + "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

int report_failure(const std::exception& error) {
  const auto [text, code] = failure_of(error);
  print_failure(text);
  return static_cast<int>(code);
}

}  // namespace plait
