// plait doctor: what was found on this machine, what is missing, and what to do.
#include <dlfcn.h>
#include <fmt/core.h>
#include <torch/headeronly/version.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/cli.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/symmetric/heap.h"

namespace plait::cli {
namespace {

struct Finding {
  std::string what;
  std::string found;
  std::string remedy;  // empty: all is well
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

Finding processor() {
  const unsigned cores = std::thread::hardware_concurrency();
  Finding finding{"processor",
                  fmt::format("{}, {} cores, {} threads in use", cpu_name(), cores, thread_count()),
                  ""};
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    finding.remedy = "this build needs AVX2 and FMA; use a newer processor";
#endif
  return finding;
}

Finding memory() {
  const std::uint64_t free = available_memory();
  return {"memory", format_bytes(free) + " free",
          free < (std::uint64_t{1} << 30) ? "free some memory: less than 1 GiB is left" : ""};
}

Finding huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const bool on = line.find("[never]") == std::string::npos && !line.empty();
  return {"huge pages", on ? "on request or always" : "off",
          on ? "" : "for speed: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding shared_memory() {
  try {
    const auto world = World::alone();
    SymmetricHeap::create(*world, 1 << 20);
    return {"shared memory", "anonymous (memfd)", ""};
  } catch (const std::exception& error) {
    return {"shared memory", error.what(), "run ranks on a Linux that has memfd_create"};
  }
}

Finding gpus() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return {"GPUs", "none (no CUDA driver): ranks run on the CPU", ""};
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  const bool works = init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0;
  return {"GPUs",
          works ? fmt::format("{}; this build runs on the CPU", devices)
                : "none that answers: ranks run on the CPU",
          ""};
}

void run(const Session& session) {
  const std::vector<Finding> findings{
      {"plait", PLAIT_VERSION, ""},    processor(), memory(), huge_pages(), shared_memory(),
      {"libtorch", TORCH_VERSION, ""}, gpus()};
  json list = json::array();
  std::size_t missing = 0;
  for (const Finding& f : findings) {
    missing += !f.remedy.empty();
    list.push_back(
        {{"what", f.what}, {"found", f.found}, {"ok", f.remedy.empty()}, {"remedy", f.remedy}});
    if (session.json) continue;
    fmt::print("{:<4}{:<15}{}\n", f.remedy.empty() ? "ok" : "!!", f.what, f.found);
    if (!f.remedy.empty()) fmt::print("    {:<15}-> {}\n", "", f.remedy);
  }
  if (session.json)
    print_json({{"findings", list}, {"missing", missing}});
  else
    fmt::print("{}\n", missing == 0 ? "nothing is missing" : "see the lines marked !!");
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  add_command(app, session, "doctor", "Show what was found, what is missing, and what to do",
              [&session] { run(session); });
}

}  // namespace plait::cli
