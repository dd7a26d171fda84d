// Shared libraries that are found at run time, so that the program starts without them.
#pragma once

#include <string>

namespace plait {

// The places of a library.
struct LibraryPlace {
  const char* name;
  // In the folder of Python's packages: the place of the wheels that torch asks for.
  const char* folder;
};
inline constexpr LibraryPlace kNccl{"libnccl.so.2", "nvidia/nccl/lib"};
inline constexpr LibraryPlace kCusparse{"libcusparse.so.12", "nvidia/cu13/lib"};
inline constexpr LibraryPlace kNvshmem{"libnvshmem_host.so.3", "nvidia/nvshmem/lib"};

// Opens a library by its name, or beside the libtorch of this process, and returns its handle; null
// if it is not there.
void* open_library(const LibraryPlace& place);

// The functions of a library by their names.
class LibraryFunctions {
 public:
  // Throws an Error with the remedy if the library is not there.
  LibraryFunctions(const LibraryPlace& place, const std::string& remedy);

  // Sets `function`, whose type the caller knows. Throws Error if the library has none of that
  // name.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* name) const;

  LibraryPlace place_;
  void* library_;
};

}  // namespace plait
