#include "plait/base/library.h"

#include <dlfcn.h>

#include <filesystem>

#include "plait/base/error.h"

namespace plait {

void* open_library(const LibraryPlace& place) {
  if (void* const library = dlopen(place.name, RTLD_NOW | RTLD_LOCAL)) return library;
  void* const torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (torch == nullptr) return nullptr;
  Dl_info info{};
  // Any symbol of libtorch tells where it is.
  const void* const symbol = dlsym(torch, "_ZN2at15get_num_threadsEv");
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return nullptr;
  const auto packages =
      std::filesystem::path(info.dli_fname).parent_path().parent_path().parent_path();
  return dlopen((packages / place.folder / place.name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

LibraryFunctions::LibraryFunctions(const LibraryPlace& place, const std::string& remedy)
    : place_(place), library_(open_library(place)) {
  require(library_ != nullptr, "{} is not there; {}", place.name, remedy);
}

void* LibraryFunctions::find(const char* name) const {
  void* const function = dlsym(library_, name);
  require(function != nullptr, "{} has no {}", place_.name, name);
  return function;
}

}  // namespace plait
