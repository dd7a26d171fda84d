# The files of the Python wheel: the operations beside the Python files, and the program's two executables
# as the environment's commands. Nothing is installed by other builds.
if(NOT SKBUILD)
  return()
endif()

# Files that need libtorch find it in the environment that they are installed in, not where it was while
# they were built, which may have been an environment for the build alone.
get_target_property(torch_link_options plait_torch INTERFACE_LINK_OPTIONS)
list(FILTER torch_link_options EXCLUDE REGEX "-rpath")
set_target_properties(plait_torch PROPERTIES INTERFACE_LINK_OPTIONS "${torch_link_options}")
set_target_properties(plait_ops PROPERTIES INSTALL_RPATH "$ORIGIN/../torch/lib")
# site-packages in virtual environments, dist-packages in Debian's own.
set(python_lib "$ORIGIN/../lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}")
set_target_properties(plait-ranks PROPERTIES
  INSTALL_RPATH "${python_lib}/site-packages/torch/lib:${python_lib}/dist-packages/torch/lib")

install(TARGETS plait_ops LIBRARY DESTINATION plait)
install(TARGETS plait plait-ranks RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}")
