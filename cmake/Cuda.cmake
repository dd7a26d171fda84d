# Sets up CUDA if its compiler is found. Without it everything else is built.
if(PLAIT_CUDA AND NOT PLAIT_SANITIZE)
  find_program(PLAIT_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
endif()
if(NOT PLAIT_NVCC)
  set(PLAIT_CUDA OFF)
  message(STATUS "CUDA: nvcc is not there or not wanted; built without the GPU engine")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${PLAIT_NVCC})
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90: with PTX, for GPUs that are newer than this build
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.8 REQUIRED)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${plait_ccache})
endif()
# CMake 3.25 does not know some facts of CUDA 13: how it is told the standard, and that it searches the
# host compiler's folders (named again, /usr/include would hide the C library's headers). Nor does
# CMake find CUDA's libraries for the linker.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
set(CMAKE_CUDA_IMPLICIT_LINK_LIBRARIES "")  # targets name CUDA::cudart_static
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -lineinfo")
