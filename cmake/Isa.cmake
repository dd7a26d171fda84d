# The instruction set. On x86-64 everything is built for AVX2 and FMA (x86-64-v3, 2013 and later).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(plait_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-march=x86-64-v3>)
endif()
