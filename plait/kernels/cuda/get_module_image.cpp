#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/kernels/cuda/get_module.h"

#ifdef PLAIT_GET_MODULE  // the name of the file, as nvshmem/CMakeLists.txt gives it
asm(R"(
  .pushsection .rodata
  .balign 64
plait_get_module:
  .incbin ")" PLAIT_GET_MODULE R"("
plait_get_module_end:
  .popsection
)");
extern "C" const std::byte plait_get_module[], plait_get_module_end[];
#endif

namespace plait {

#ifdef PLAIT_GET_MODULE
std::span<const std::byte> get_module_image() { return {plait_get_module, plait_get_module_end}; }
std::string_view nvshmem_of_build() { return PLAIT_NVSHMEM_VERSION; }
#else
std::span<const std::byte> get_module_image() { return {}; }
std::string_view nvshmem_of_build() { return {}; }
#endif

void require_get_module() {
  require<UsageError>(!get_module_image().empty(),
                      "this build cannot read by NVSHMEM's device functions; install the package "
                      "nvidia-nvshmem-cu13 and build Plait again, or use {}",
                      setting("read-with", "addresses"));
}

}  // namespace plait
