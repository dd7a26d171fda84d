# Options common to all of Plait's code.
add_library(plait_options INTERFACE)
set(plait_cxx_options
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wno-missing-field-initializers
  # False alarms of GCC 12 in fmt and the standard library.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-restrict>
  # Results must be the same on every machine: no silent fusing of a multiply and an add, except
  # where a kernel asks for it.
  -ffp-contract=off)
target_compile_options(plait_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${plait_cxx_options}>"
  # fmt 9 takes nvcc for a compiler without constexpr.
  "$<$<COMPILE_LANGUAGE:CUDA>:-DFMT_USE_CONSTEXPR=1;-Xcompiler=-Wall,-Wextra,-ffp-contract=off;--fmad=false>")
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  string(REPLACE "-O2" "-O3" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  string(REPLACE "-g" "-g1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()
if(PLAIT_SANITIZE)
  add_compile_options(-fsanitize=${PLAIT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLAIT_SANITIZE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # Without this sloppiness, ccache keeps nothing that uses a precompiled header. Paths are relative to the
  # checkout, so that another checkout compiles only what differs. Clang's precompiled headers hold paths, so
  # that presets with Clang have none.
  set(plait_ccache ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${plait_ccache})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# Precompiles headers for a target's C++: the given ones, and headers that nearly all of Plait includes.
# All files include the headers that they use; CMAKE_DISABLE_PRECOMPILE_HEADERS shows it.
function(plait_precompile target)
  foreach(header IN ITEMS algorithm memory string utility vector fmt/format.h LISTS ARGN)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
endfunction()

# Compiles these files of a target together, one unit per folder: reading libtorch's or CLI11's headers
# costs more than what a file itself holds. Names without linkage in one folder must differ then, and an
# edit compiles its whole folder; -DPLAIT_UNITE=OFF compiles each file by itself.
function(plait_unite target)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" folder "${folder}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "of_${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PLAIT_UNITE} UNITY_BUILD_MODE GROUP)
endfunction()

# The same if all code is compiled for a sanitizer, which is done from nothing more often than after an edit:
# headers are read once for each folder. Files whose names match `alone` stay by themselves, as do files that have
# options of their own.
function(plait_unite_sanitized target alone)
  if(PLAIT_SANITIZE)
    list(FILTER ARGN EXCLUDE REGEX "${alone}")
    plait_unite(${target} ${ARGN})
  endif()
endfunction()
