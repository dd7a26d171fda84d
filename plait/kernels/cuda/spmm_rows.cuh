// How the kernels of spmm.cu read rows of x and write rows of y. Internal to this room.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/dtype.h"
#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {

// The arguments of a sum as kernels take them; DeviceSpmmArgs says what they are.
struct SpmmView {
  const RowGroup* groups;
  std::uint32_t group_count, long_count;  // long groups come first
  const Slot* columns;
  const float* weights;
  const void* x;
  std::uint64_t x_stride, width;
  void* y;
  std::uint64_t y_stride;
  const float* row_scale;
  bool accumulate;
  bool y_in_vectors;  // all rows of y begin at multiples of four elements
  float* partial_sums;
  std::uint64_t partial_stride;
};

// Calls use(T{}) with a floating point type.
template <class Use>
void with_type(DType type, Use&& use) {
  if (type == DType::f32) return use(float{});
  if (type == DType::bf16) return use(__nv_bfloat16{});
  use(__half{});
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }

// kVec elements of a row, as they are loaded.
template <class T, int kVec>
struct Piece {
  using Raw = std::conditional_t<kVec == 1, T, uint4>;
  static_assert(kVec == 1 || kVec * sizeof(T) == sizeof(uint4));

  // Ordered: volatile keeps all loads of a batch before the first use of one.
  template <bool kOrdered>
  static __device__ Raw load(const T* from) {
    if constexpr (!kOrdered) {
      return __ldg(reinterpret_cast<const Raw*>(from));
    } else {
      static_assert(kVec > 1);
      Raw raw;
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(raw.x), "=r"(raw.y), "=r"(raw.z), "=r"(raw.w)
                   : "l"(from));
      return raw;
    }
  }
  static __device__ void add(float (&sum)[kVec], const Raw& raw, float weight) {
    const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] = fmaf(weight, to_float(values[i]), sum[i]);
  }
  static __device__ void add(float (&sum)[kVec], const Raw& raw) {
    const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] += to_float(values[i]);
  }
};

// Returns the place of the first row of x from which a lane reads. Lanes beyond the width read the
// first columns, for nothing.
template <class X, int kVec, int kLanes>
__device__ const X* first_element(const SpmmView& a) {
  const std::uint64_t column = (std::uint64_t{blockIdx.y} * kLanes + threadIdx.x % kLanes) * kVec;
  return static_cast<const X*>(a.x) + (column < a.width ? column : 0);
}

// Puts sums begin .. end - 1 of kVec into y, which is where sum 0 belongs.
template <class Y, int kVec>
__device__ void store(Y* y, const float (&sum)[kVec], int begin, int end, bool accumulate) {
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    if (i >= begin && i < end) y[i] = Y(accumulate ? to_float(y[i]) + sum[i] : sum[i]);
}

// Four elements that are loaded and stored at once: 16 or 8 bytes.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T value[4];
};

// Does the same where y stands at a multiple of four elements.
template <class Y, int kVec>
__device__ void store_vectors(Y* y, const float (&sum)[kVec], int begin, int end, bool accumulate) {
  using Raw = std::conditional_t<sizeof(Y) == 4, uint4, uint2>;
#pragma unroll
  for (int i = 0; i < kVec; i += 4) {
    float four[4] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
    if (i < begin || i + 4 > end) {
      store(y + i, four, begin - i, end - i, accumulate);
      continue;
    }
    auto* const at = reinterpret_cast<Raw*>(y + i);
    if (accumulate) {
      const auto before = __builtin_bit_cast(Four<Y>, __ldcs(at));
#pragma unroll
      for (int k = 0; k < 4; ++k) four[k] += to_float(before.value[k]);
    }
    const Four<Y> result{Y(four[0]), Y(four[1]), Y(four[2]), Y(four[3])};
    __stcs(at, __builtin_bit_cast(Raw, result));
  }
}

// Puts `count` columns of a slice into a y that stands at any float: kVec of each of kLanes lanes.
// Each lane gives its last columns to the next one, so that the columns that it then has begin at a
// multiple of 16 bytes; the last lane also writes its own last ones. The whole warp calls this.
template <int kVec, int kLanes>
__device__ void store_shifted(float* y, const float (&sum)[kVec], int count, bool accumulate,
                              bool mine) {
  constexpr int kMost = 3;  // floats from y down to a multiple of 16 bytes
  const int lane = threadIdx.x % kLanes;
  const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) / sizeof(float) % 4);
  float wide[kMost + kVec], shifted[kVec];
#pragma unroll
  for (int i = 0; i < kMost; ++i) wide[i] = __shfl_up_sync(kAll, sum[kVec - kMost + i], 1, kLanes);
#pragma unroll
  for (int i = 0; i < kVec; ++i) wide[kMost + i] = sum[i];
#pragma unroll
  for (int i = kMost + kVec - 1; i >= 1; --i) wide[i] = (shift & 1) != 0 ? wide[i - 1] : wide[i];
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    shifted[i] = (shift & 2) != 0 ? wide[kMost + i - 2] : wide[kMost + i];
  if (!mine) return;
  const int column = lane * kVec - shift;
  store_vectors(y + column, shifted, lane == 0 ? shift : 0, count - column, accumulate);
  if (lane == kLanes - 1)
    store(y + lane * kVec, sum, kVec - shift, count - lane * kVec, accumulate);
}

// Adds the rows that a lane has loaded at once.
template <bool kWeighted, class Load, int kVec, int kBatch>
__device__ void add_batch(float (&sum)[kVec], const typename Load::Raw (&loaded)[kBatch],
                          [[maybe_unused]] const float (&factor)[kBatch]) {
#pragma unroll
  for (int k = 0; k < kBatch; ++k) {
    if constexpr (kWeighted)
      Load::add(sum, loaded[k], factor[k]);
    else
      Load::add(sum, loaded[k]);
  }
}

// Puts the sums of a group where they belong. This lane has kVec columns of them if `mine`; lanes
// beyond the width have none. The whole warp calls this.
template <class Y, int kVec, int kLanes>
__device__ void put(const SpmmView& a, std::uint32_t target, bool mine, float (&sum)[kVec]) {
  const std::uint64_t slice = std::uint64_t{blockIdx.y} * (kLanes * kVec);
  const int column = threadIdx.x % kLanes * kVec;
  const int count = static_cast<int>(min(a.width - slice, std::uint64_t{kLanes * kVec}));
  const bool partial = (target & RowGroup::kPartial) != 0;
  const std::uint64_t number = target & ~RowGroup::kPartial;
  if (mine && partial) {
    float* const to = a.partial_sums + number * a.partial_stride + slice + column;
    if constexpr (kVec > 1)
      store_vectors(to, sum, 0, count - column, false);
    else
      store(to, sum, 0, count - column, false);
  }
  mine = mine && !partial;
  if (mine && a.row_scale != nullptr)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] *= a.row_scale[number];
  Y* const y = static_cast<Y*>(a.y) + (partial ? 0 : number) * a.y_stride + slice;
  if constexpr (kVec > 1) {
    if (a.y_in_vectors) {
      if (mine) store_vectors(y + column, sum, 0, count - column, a.accumulate);
      return;
    }
    if constexpr (std::is_same_v<Y, float>)
      return store_shifted<kVec, kLanes>(y, sum, count, a.accumulate, mine);
  }
  if (mine) store(y + column, sum, 0, count - column, a.accumulate);
}

// Calls use(X{}, Y{}) with the types of x and y, which is fp32 or the type of x.
template <class Use>
void with_types(DType x, DType y, Use&& use) {
  with_type(x, [&]<class X>(X) { y == x ? use(X{}, X{}) : use(X{}, float{}); });
}

// Programmatic dependent launch, which GPUs below compute capability 9.0 lack: there, a kernel
// starts when the one in front of it has ended.
//
// Lets a kernel that is launched early start, from here on, beside this one.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
// Waits until the kernel in front of this one has ended, and all that it has written is visible.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Enqueues a kernel that may start before the kernel in front of it has ended. All its threads must
// call wait_for_kernel_before() before they read or write anything that others do.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                  Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.stream = stream;
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "the GPU");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "the GPU");
  config.attrs = &early, config.numAttrs = major >= 9 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "spmm");
}

}  // namespace plait
