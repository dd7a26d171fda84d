// The kernels of strategy get that read remote rows by NVSHMEM's device functions, as MGG does
// (OSDI 2023, listing 1 and figure 10(c)): nvshmem_float_get() by a thread, and
// nvshmemx_float_get_warp() and _block() by a warp and a block, into shared memory, from which the
// rows are summed. With asynchronous reads they are the same functions with `_nbi`.
//
// These functions need NVSHMEM's state, a variable of the module that has them. So this file alone
// is compiled into a module of its own, linked with NVSHMEM's device library, and carried as data
// (CMakeLists.txt); the rest of the program is built without NVSHMEM. get_module.cuh loads it.
//
// NVSHMEM's bitcode library would not do instead: its copies write to global memory alone.
//
// A kernel has all numbers of lanes, chosen by an argument, so that it can have a plain name; one
// of single floats, which the library has for the narrowest rows alone, has the least.
#include <nvshmem.h>
#include <nvshmemx.h>

#include "plait/kernels/cuda/get_turns.cuh"

namespace plait::get_detail {
namespace {

// The functions of one way. All return when the rows are there, but with `ahead`, where wait() is
// to be called by each thread.
struct Functions {
  template <Way kWay>
  static __device__ void get(float* to, const float* from, std::size_t count, int rank,
                             bool ahead) {
    if constexpr (kWay == Way::nvshmem_thread)
      ahead ? nvshmem_float_get_nbi(to, from, count, rank)
            : nvshmem_float_get(to, from, count, rank);
    if constexpr (kWay == Way::nvshmem_warp)
      ahead ? nvshmemx_float_get_nbi_warp(to, from, count, rank)
            : nvshmemx_float_get_warp(to, from, count, rank);
    if constexpr (kWay == Way::nvshmem_block)
      ahead ? nvshmemx_float_get_nbi_block(to, from, count, rank)
            : nvshmemx_float_get_block(to, from, count, rank);
  }
  static __device__ void wait() { nvshmem_quiet(); }
};

template <int kVec, Way kWay, int kLanes = GetTuning::kLeastLanes>
__device__ void take_turns_by(const GetView& a, int lanes) {
  extern __shared__ float4 shared[];
  if constexpr (kVec > 1 && kLanes < kWarp) {
    if (lanes > kLanes) return take_turns_by<kVec, kWay, 2 * kLanes>(a, lanes);
  }
  take_turns<GetWarp<kVec, kLanes, true, kWay, Functions>>(a, shared);
}

constexpr int kMostThreads = GetTuning::kMostWarps * kWarp;

}  // namespace

// Their names are those of GetModule::kernel(): who reads a row, and the floats that a lane sums.
extern "C" {

__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_thread_1(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<1, Way::nvshmem_thread>(a, lanes);
}
__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_thread_4(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<4, Way::nvshmem_thread>(a, lanes);
}
__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_warp_1(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<1, Way::nvshmem_warp>(a, lanes);
}
__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_warp_4(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<4, Way::nvshmem_warp>(a, lanes);
}
__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_block_1(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<1, Way::nvshmem_block>(a, lanes);
}
__global__ void __launch_bounds__(kMostThreads, 2)
    plait_get_block_4(const __grid_constant__ GetView a, int lanes) {
  take_turns_by<4, Way::nvshmem_block>(a, lanes);
}

}  // extern "C"
}  // namespace plait::get_detail
