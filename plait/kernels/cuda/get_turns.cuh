// The body of all kernels of strategy get: a warp takes its local and remote groups in turns.
#pragma once

#include "plait/kernels/cuda/get_warp.cuh"

namespace plait::get_detail {

// Warp: a GetWarp. shared: the block's memory, of get_block() bytes. All threads of a block call
// it.
template <class Warp>
__device__ __forceinline__ void take_turns(const GetView& a, float4* shared) {
  using Sum = typename Warp::Sum;
  const std::uint64_t number = blockIdx.x * std::uint64_t{blockDim.x / kWarp} + threadIdx.x / kWarp;
  if (!Warp::kInStep && number >= a.warps) return;
  const int lane = threadIdx.x % kWarp;
  const Warp warp(a, reinterpret_cast<Sum*>(shared));
  const Share local(a.local, number, lane), remote(a.remote, number, lane);

  Place at_local, at_remote;
  Edges next_local = warp.next(local, at_local, 0), next_remote = warp.next(remote, at_remote, 0);
  int stage = 0;
  if constexpr (Warp::kFetches) warp.fetch_first(next_remote, stage);
  for (int k = 0; warp.goes_on(k < local.groups || k < remote.groups); ++k) {
    Edges near = next_local, far = next_remote;
    next_local = warp.next(local, at_local, k + 1),
    next_remote = warp.next(remote, at_remote, k + 1);
    if (k < local.groups) {
      Sum sum{};
      warp.sum_rows(near, warp.local_row(near.slot), sum);
      while (!near.last) {
        near = next_local, next_local = warp.next(local, at_local, k + 1);
        warp.sum_rows(near, warp.local_row(near.slot), sum);
      }
      warp.put(local, k, sum);
    }
    if (warp.goes_on(k < remote.groups)) {
      Sum sum{};
      for (bool more = true; more;) {
        if constexpr (Warp::kFetches)
          warp.sum_fetched(far, next_remote, stage, sum);
        else
          warp.sum_rows(far, warp.remote_row(far.slot), sum);
        more = warp.goes_on(!far.last);
        if (more && far.last)
          far.count = 0;  // the block goes on without this warp
        else if (more)
          far = next_remote, next_remote = warp.next(remote, at_remote, k + 1);
      }
      if (k < remote.groups) warp.put(remote, k, sum);
    }
  }
}

}  // namespace plait::get_detail
