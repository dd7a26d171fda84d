# The libraries that Plait uses. All come from Debian, except libtorch, which is the PyPI wheel's.
find_package(fmt 9 REQUIRED)
find_package(OpenMP REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
add_library(libzip::zip ALIAS PkgConfig::libzip)
pkg_check_modules(xxhash_pc REQUIRED IMPORTED_TARGET libxxhash)
add_library(xxhash ALIAS PkgConfig::xxhash_pc)

find_path(METIS_INCLUDE metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
add_library(plait_metis INTERFACE)
target_include_directories(plait_metis SYSTEM INTERFACE ${METIS_INCLUDE})
target_link_libraries(plait_metis INTERFACE ${METIS_LIBRARY})

if(PLAIT_TORCH)
  find_package(CLI11 2.1 REQUIRED)
  # The interpreter whose torch is used: the environment of scripts/setup, or the one that builds
  # the wheel.
  if(NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  endif()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "libtorch: ${TORCH_DIR}")

  # torch's own CMake package demands a CUDA toolkit, which a machine without a GPU need not have;
  # so the wheel's libraries are named here.
  add_library(plait_torch INTERFACE)
  # These come after the system's folders: the wheel also carries headers of libraries that Debian has, of
  # other versions (fmt).
  target_compile_options(plait_torch INTERFACE "SHELL:-idirafter ${TORCH_DIR}/include"
    "SHELL:-idirafter ${TORCH_DIR}/include/torch/csrc/api/include")
  target_compile_definitions(plait_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)
  target_link_directories(plait_torch INTERFACE ${TORCH_DIR}/lib)
  target_link_options(plait_torch INTERFACE -Wl,-rpath,${TORCH_DIR}/lib
    # libtorch_cpu finds its own CUDA libraries through its rpath; the linker need not.
    -Wl,--allow-shlib-undefined)
  target_link_libraries(plait_torch INTERFACE torch_cpu c10)
endif()
