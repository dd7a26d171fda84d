// NVSHMEM, found at run time: beside libtorch, or where the system has it. Only its own transport
// needs it, and only its library for the host is used: memory of the same shape on the GPU of every
// rank, and its addresses; kernels that call its device functions are prepared for it. This header
// needs no header of CUDA or of NVSHMEM.
//
// A process joins once and never leaves: NVSHMEM's end is collective and waits on the GPU for all
// ranks, so a rank that fails would hang there; its memory goes with the process, as CUDA's does.
//
// NVSHMEM does not limit its waits. World's watch ends them when a rank is lost or fails, so an
// error of one rank alone is thrown there at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plait/world/world.h"

namespace plait {

// This process's membership. Made once, it lives as long as the process.
class Nvshmem {
 public:
  // Collective; each rank is on a GPU of its own, the current one. The first call of a process
  // joins, later ones return the same object. Throws an Error that says what is missing, or that
  // the world is another one than at first.
  //
  // Sets the following variables of NVSHMEM unless the environment has them: NVLink multicast
  // (NVLS), NCCL and network adapters, with the thread that would serve them, are off, since only
  // addresses are used; on one host, ranks meet over the loopback interface.
  static Nvshmem& join(World& world);

  // Collective, with the same size above 0 on all ranks. Returns memory of the GPU that is aligned
  // to 512 bytes and not zeroed; null if there is not enough.
  std::byte* allocate(std::uint64_t bytes);
  // Collective, in the same order on all ranks; waits for all.
  void free(std::byte* memory, std::uint64_t bytes);
  // Returns where the object that stands at `own` on this rank stands on `rank`; null if that is
  // not mapped here.
  std::byte* address(const std::byte* own, int rank) const;

  // Lets the kernels of a module call NVSHMEM's device functions. `module`: a handle of CUDA's
  // driver (CUlibrary), of a module that lives as long as the process; `version`: of NVSHMEM, whose
  // device library is linked into it. Throws as require_same_nvshmem(), and an Error if NVSHMEM
  // fails.
  void prepare(void* module, std::string_view version);

  // Returns the bytes that were freed: NVSHMEM keeps them, to give them again.
  std::uint64_t idle() const { return most_ - used_; }

 private:
  explicit Nvshmem(World& world);

  int rank_, ranks_;
  std::uint64_t used_ = 0, most_ = 0;
};

// Returns the version of the library that is found, as "3.4.5", if it has all functions that are
// used. Throws an Error that says what is missing.
std::string nvshmem_version();

// Throws an Error with both versions unless `built`, of NVSHMEM's device library, is that of the
// library that is found: its state for the GPU may have another layout.
void require_same_nvshmem(std::string_view built);

}  // namespace plait
