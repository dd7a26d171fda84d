#include "plait/base/mapped_range.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/printable.h"

namespace plait {
namespace {

// A range as the handler of signals sees it, which may run in any thread at any time and takes no
// lock. Places are linked to a list that only grows; a free one is used again. `begin` is stored
// last and is 0 while the place is free: who reads another value sees the members that go with it.
// The thread that reads a mapped file keeps its range, so that the range of a signal's address does
// not change meanwhile.
struct Place {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::unique_ptr<const std::string> line;
  Place* next = nullptr;
};

std::mutex mutex;  // of whoever takes a place or gives it back
std::atomic<Place*> places{nullptr};
// Whether the line was printed, by this process or by another that shares the flag.
std::atomic<bool> own_told{false};
std::atomic<bool>* told = &own_told;
struct sigaction before {};  // the handling of SIGBUS that was there

// Leaves a signal that is on no mapped file to whoever took it before.
void pass_on(int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  const bool sent = info->si_code <= 0;  // by a process, and not by a read
  if (before.sa_handler == SIG_IGN && sent) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(number);
  ::signal(number, SIG_DFL);
  ::raise(number);  // delivered when this handler returns
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Place* place = places.load(std::memory_order_acquire);
       place != nullptr && info->si_code > 0; place = place->next) {
    const std::uintptr_t begin = place->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= place->end) continue;
    static std::atomic_flag begun;
    while (begun.test_and_set()) ::pause();  // another thread tells, and ends this one, too
    if (!told->exchange(true))
      static_cast<void>(!::write(STDERR_FILENO, place->line->data(), place->line->size()));
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  pass_on(number, info, context);
}

void take_signal() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, nullptr, &before);
  ::sigaction(SIGBUS, &action, nullptr);
}

// Under the mutex. Returns the place of the range that begins there, or (0) a free one.
Place* place_with(std::uintptr_t begin) {
  for (Place* place = places.load(std::memory_order_relaxed); place != nullptr; place = place->next)
    if (place->begin.load(std::memory_order_relaxed) == begin) return place;
  auto* const place = new Place;
  place->next = places.load(std::memory_order_relaxed);
  places.store(place, std::memory_order_release);
  return place;
}

}  // namespace

void name_mapped_range(std::span<const std::byte> bytes, const std::string& file) {
  auto line = std::make_unique<const std::string>(fmt::format(
      "plait: {}: cannot be read to its end: the file has become shorter, or its disk has "
      "failed\n",
      printable(file)));
  const std::lock_guard lock(mutex);
  static const bool taken = (take_signal(), true);
  static_cast<void>(taken);
  Place* const place = place_with(0);
  place->line = std::move(line);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  place->end = begin + bytes.size();
  place->begin.store(begin, std::memory_order_release);
}

void forget_mapped_range(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex);
  place_with(reinterpret_cast<std::uintptr_t>(bytes.data()))
      ->begin.store(0, std::memory_order_release);
}

// The page is never given back: it is for as long as the processes live. Without it each of them
// prints a line.
void tell_bus_errors_once() {
  if (told != &own_told) return;
  void* const page = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) told = new (page) std::atomic<bool>(false);
}

bool bus_error_told() { return *told; }

}  // namespace plait
