// Shared libraries that are found at run time, so that the program starts without them.
#pragma once

namespace plait {

struct LibraryPlace {
  const char* name;
  const char* folder;  // among Python's packages, where the wheels that torch asks for put it
};
inline constexpr LibraryPlace kNccl{"libnccl.so.2", "nvidia/nccl/lib"};
inline constexpr LibraryPlace kCusparse{"libcusparse.so.12", "nvidia/cu13/lib"};
inline constexpr LibraryPlace kNvshmem{"libnvshmem_host.so.3", "nvidia/nvshmem/lib"};

// By its name, or beside the libtorch of this process. Null if it is not there.
void* open_library(const LibraryPlace& place);

// The functions of a library by their names, with the types of what they are put into.
class LibraryFunctions {
 public:
  // Throws Error with the remedy if the library is not there.
  LibraryFunctions(const LibraryPlace& place, const char* remedy);

  // Throws Error if the library has none of that name.
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
