// plait doctor: reports what this machine has, what is missing, and how to get it.
#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "cli/commands/measure.h"
#include "cli/ranks.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/library.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/processor.h"
#include "plait/kernels/cuda/get_module.h"
#include "plait/symmetric/heap.h"
#include "plait/symmetric/nvshmem.h"
#include "plait/world/world.h"

namespace plait::cli {
namespace {

struct Finding {
  std::string what;
  std::string found;
  std::string remedy;  // empty: all is well
};

Finding processor() {
  const unsigned cores = std::thread::hardware_concurrency();
  Finding finding{
      "processor",
      fmt::format("{}, {} cores, {} threads in use", processor_name(), cores, thread_count()), ""};
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
          on ? "" : "for more speed: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding shared_memory() {
  try {
    const auto world = World::alone();
    SymmetricHeap::create(*world, 1 << 20);
    return {"shared memory", "anonymous (memfd)", ""};
  } catch (const std::exception& error) {
    return {"shared memory", error.what(), "run ranks on a Linux kernel that has memfd_create"};
  }
}

Finding engine() {
  if (built_with_cuda()) return {"GPU engine", "built in", ""};
  const bool driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
  return {"GPU engine", "built without the GPU engine",
          driver ? "there is a driver for GPUs: install CUDA 12.8 or later, with nvcc, and build "
                   "Plait again"
                 : ""};
}

// Reports which GPUs reach each other; the heap needs each GPU to reach all others.
Finding peer_access(const std::vector<Gpu>& gpus) {
  std::vector<std::string> lines;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    std::vector<std::size_t> reached;
    for (std::size_t peer = 0; peer < gpus.size(); ++peer)
      if (peer != g && gpus[g].reaches[peer]) reached.push_back(peer);
    if (reached.size() + 1 == gpus.size()) continue;
    lines.push_back(reached.empty()
                        ? fmt::format("GPU {} reaches no other", g)
                        : fmt::format("GPU {} reaches only {}", g, fmt::join(reached, ", ")));
  }
  if (lines.empty()) return {"peer access", "all reach each other", ""};
  return {"peer access", fmt::format("{}", fmt::join(lines, "; ")),
          "choose GPUs that reach each other with CUDA_VISIBLE_DEVICES"};
}

Finding links(const std::vector<Gpu>& gpus) {
  const auto same = [&](const Gpu& gpu) { return gpu.link == gpus.front().link; };
  if (std::ranges::all_of(gpus, same)) return {"links", gpus.front().link, ""};
  std::vector<std::string> each;
  for (std::size_t g = 0; g < gpus.size(); ++g)
    each.push_back(fmt::format("GPU {}: {}", g, gpus[g].link));
  return {"links", fmt::format("{}", fmt::join(each, "; ")), ""};
}

Finding library(const char* what, const LibraryPlace& place, const char* use) {
  const bool found = open_library(place) != nullptr;
  return {what, fmt::format("{} ({})", found ? "found" : "not found", use), ""};
}

// Says for which options a version of NVSHMEM is good.
std::string uses_of_nvshmem(const std::string& version) {
  const std::string_view built = nvshmem_of_build();
  if (built == version) return "for --transport nvshmem and --read-with nvshmem";
  return fmt::format("for --transport nvshmem; --read-with nvshmem {}",
                     built.empty() ? std::string("is not built in")
                                   : fmt::format("was built with version {}", built));
}

Finding nvshmem() {
  Finding finding = library("NVSHMEM", kNvshmem, "optional: for --transport nvshmem");
  if (open_library(kNvshmem) == nullptr) return finding;
  try {
    const std::string version = nvshmem_version();
    finding.found = fmt::format("version {}, {}", version, uses_of_nvshmem(version));
  } catch (const Error& error) {
    finding.found = fmt::format("not usable: {}", error.what());
  }
  return finding;
}

// Says how to make a GPU usable; empty if it is.
std::string remedy_of_gpu(int index, const Gpu& gpu) {
  if (gpu.major < 8) return "Plait needs compute capability 8.0 or later";
  const std::string fault = gpu_kernel_fault(index);
  if (fault.empty()) return "";
  return fault + "; install a driver for CUDA 13 or later, or build Plait on this machine";
}

// Adds findings about GPUs and returns the GPUs.
std::vector<Gpu> add_gpus(std::vector<Finding>& findings) {
  findings.push_back(engine());
  std::vector<Gpu> gpus;
  try {
    gpus = list_gpus();
  } catch (const std::exception& error) {
    findings.push_back({"GPUs", error.what(), "make sure that no other process uses them"});
    return gpus;
  }
  findings.push_back(
      {"GPUs", gpus.empty() ? "none: ranks run on the CPU" : std::to_string(gpus.size()), ""});
  for (std::size_t g = 0; g < gpus.size(); ++g)
    findings.push_back(
        {fmt::format("GPU {}", g),
         fmt::format("{}, compute capability {}.{}, {} free of {}", gpus[g].name, gpus[g].major,
                     gpus[g].minor, format_bytes(gpus[g].free), format_bytes(gpus[g].memory)),
         remedy_of_gpu(static_cast<int>(g), gpus[g])});
  if (gpus.size() > 1) findings.push_back(peer_access(gpus));
  if (!gpus.empty()) findings.push_back(links(gpus));
  if (built_with_cuda()) {
    findings.push_back(library("NCCL", kNccl, "for strategies bulk and replicate on GPUs"));
    findings.push_back(library("cuSPARSE", kCusparse, "for comparison"));
    findings.push_back(nvshmem());
  }
  return gpus;
}

json to_json(const std::vector<Gpu>& gpus) {
  json list = json::array();
  for (const Gpu& gpu : gpus)
    list.push_back({{"name", gpu.name},
                    {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                    {"memory", gpu.memory},
                    {"free", gpu.free},
                    {"reaches", gpu.reaches},
                    {"nvlinks", gpu.links},
                    {"link", gpu.link}});
  return list;
}

void run(const Session& session) {
  std::vector<Finding> findings{
      {"plait", PLAIT_VERSION, ""},   processor(), memory(), huge_pages(), shared_memory(),
      {"libtorch", TORCH_VERSION, ""}};
  const std::vector<Gpu> gpus = add_gpus(findings);
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
    print_json({{"findings", list}, {"missing", missing}, {"gpus", to_json(gpus)}});
  else
    fmt::print("{}\n", missing == 0 ? "nothing is missing" : "see the lines marked !!");
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  const auto measures = std::make_shared<bool>(false);
  CLI::App* command = add_command(
      app, session, "doctor", "Show what this machine has, what is missing, and how to get it",
      [=, &session] { *measures ? measure_machine(session) : run(session); });
  CLI::Option* const flag = command->add_flag("--measure", *measures,
                                              "Measure how fast rows are read and moved, and "
                                              "latencies; keep the rates, by which later runs "
                                              "on as many GPUs plan their steps");
  add_count_options(command, session);
  command->get_option("--ranks")->needs(flag);
  command->get_option("--gpus")->needs(flag);
  add_timeout_options(command, session);
  add_examples(command,
               "  plait doctor\n  plait doctor --json\n  plait doctor --measure --gpus 4\n"
               "  plait doctor --measure --ranks 2");
}

}  // namespace plait::cli
