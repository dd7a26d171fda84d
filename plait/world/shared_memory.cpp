#include "plait/world/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/memory.h"
#include "plait/base/system_limits.h"

namespace plait {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Since Linux 6.3: newer kernels ask for this flag, older ones refuse it.
constexpr unsigned kNoExecSeal = 0x0008;

Descriptor open_anonymous() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor descriptor(::memfd_create("plait", kFlags | kNoExecSeal));
  if (!descriptor.open() && errno == EINVAL)
    descriptor = Descriptor(::memfd_create("plait", kFlags));
  if (!descriptor.open() && (errno == EMFILE || errno == ENFILE))
    throw SystemLimitError(fmt::format("shared memory cannot be made: {}", reason(errno)));
  require(descriptor.open(), "shared memory cannot be made: {}", reason(errno));
  return descriptor;
}

std::byte* map_shared(const Descriptor& descriptor, std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number(), 0);
  require<DoesNotFitError>(data != MAP_FAILED, "{} of shared memory cannot be mapped: {}",
                           format_bytes(bytes), std::strerror(errno));
  // Takes effect where the administrator lets shared memory have huge pages.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

// Gives every page its memory now. Returns an errno.
int populate(const Descriptor& descriptor, std::span<std::byte> memory) {
  if (::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;  // else: before Linux 5.14
  return ::posix_fallocate(descriptor.number(), 0, static_cast<off_t>(memory.size()));
}

[[noreturn]] void refuse(std::size_t bytes, int error) {
  const char* const remedy =
      error == EFBIG ? ", which the limit on the size of files counts; raise it (ulimit -f)" : "";
  throw DoesNotFitError(fmt::format("{} of shared memory cannot be had: {}{}", format_bytes(bytes),
                                    std::strerror(error), remedy));
}

}  // namespace

void Descriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

std::pair<SharedMemory, Descriptor> SharedMemory::create(std::size_t bytes) {
  Descriptor descriptor = open_anonymous();
  const bool sized = ::ftruncate(descriptor.number(), static_cast<off_t>(bytes)) == 0;
  if (!sized) refuse(bytes, errno);
  const bool sealed = ::fcntl(descriptor.number(), F_ADD_SEALS, kSeals) == 0;
  require(sealed, "shared memory cannot be sealed: {}", std::strerror(errno));
  SharedMemory memory(map_shared(descriptor, bytes), bytes);
  const int failure = populate(descriptor, memory.bytes());
  if (failure != 0) refuse(bytes, failure);
  return {std::move(memory), std::move(descriptor)};
}

SharedMemory SharedMemory::map(const Descriptor& descriptor, std::size_t bytes) {
  struct stat status {};
  const bool known = ::fstat(descriptor.number(), &status) == 0;
  const int seals = ::fcntl(descriptor.number(), F_GET_SEALS);
  require(known && static_cast<std::size_t>(status.st_size) == bytes && seals >= 0 &&
              (seals & kSeals) == kSeals,
          "a rank has handed over something else than its {} of shared memory",
          format_bytes(bytes));
  return {map_shared(descriptor, bytes), bytes};
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace plait
