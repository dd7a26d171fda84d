// The mark of functions that the CPU and the GPU share.
#pragma once

#ifdef __CUDACC__
#define PLAIT_HOST_DEVICE __host__ __device__
#else
#define PLAIT_HOST_DEVICE
#endif
