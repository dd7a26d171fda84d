#include "plait/base/shared_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/file_system.h"

namespace plait {

void SharedFile::make(const OwnFolder& folder, const std::string& name, std::uint64_t bytes) {
  const Closer file{folder.make_file(name)};
  const auto size = static_cast<off_t>(bytes);
  if (bytes == 0 || fallocate(file.descriptor, 0, 0, size) == 0) return;
  // EOPNOTSUPP and ENOSYS come from a file system that cannot promise room.
  if (errno != EOPNOTSUPP && errno != ENOSYS) fail_write(folder.path_of(name), reason(errno));
  if (ftruncate(file.descriptor, size) != 0) fail_write(folder.path_of(name), reason(errno));
}

SharedFile::SharedFile(const OwnFolder& folder, const std::string& name)
    : path_(folder.path_of(name)), descriptor_(folder.open_file(name, O_WRONLY)) {}

SharedFile::~SharedFile() { close(descriptor_); }

void SharedFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  write_all(descriptor_, offset, bytes, path_);
}

void SharedFile::sync() {
  if (fdatasync(descriptor_) != 0) fail_write(path_, reason(errno));
}

FolderLock::FolderLock(const std::string& path, std::chrono::milliseconds patience)
    : descriptor_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  lock(path, patience);
}

FolderLock::FolderLock(const OwnFolder& folder)
    : descriptor_(openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  lock(folder.path(), std::chrono::milliseconds(0));
}

void FolderLock::lock(const std::string& path, std::chrono::milliseconds patience) {
  constexpr auto kLook = std::chrono::milliseconds(5);
  if (descriptor_ < 0) fail_read(path, reason(errno));
  int error = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  for (; error == EWOULDBLOCK && patience.count() > 0; patience -= kLook) {
    std::this_thread::sleep_for(kLook);
    error = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  }
  if (error == 0) return;
  close(descriptor_);
  require(error != EWOULDBLOCK,
          "{}: another process is at work there; wait for it, or give another folder", path);
  fail_read(path, reason(error));
}

FolderLock::~FolderLock() { close(descriptor_); }

std::string file_stamp(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) fail_read(path, reason(errno));
  return fmt::format("{} bytes, changed at {}.{:09}", found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

std::string file_checksum(const std::string& path) {
  const auto file = MappedFile::open(path);
  return checksum_text(checksum_of(file->bytes()));
}

}  // namespace plait
