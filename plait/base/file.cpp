// Mapped and atomically written files, on the system calls of Linux.
#include "plait/base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/mapped_range.h"
#include "plait/base/memory.h"

namespace plait {

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  if (error == EMFILE) text += " (ulimit -n)";
  return text;
}

void fail_read(const std::string& path, const std::string& why) {
  throw Error(path + ": cannot be opened: " + why);
}

void fail_write(const std::string& path, const std::string& why) {
  throw Error(path + ": cannot be written: " + why);
}

void write_all(int descriptor, std::size_t offset, std::span<const std::byte> bytes,
               const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path, reason(errno));
    if (written == 0) fail_write(path, reason(ENOSPC));
    offset += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_link_of_another(const std::string& path) {
  struct stat link {};
  return lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != geteuid() &&
         link.st_uid != 0;
}

bool is_own_or_roots(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && (found.st_uid == geteuid() || found.st_uid == 0);
}

namespace {

constexpr int kMostLinks = 40;  // as Linux follows

// A hidden name in the folder of `path` that nobody can guess, so that nobody can take it before.
std::string hidden_name(const std::string& path) {
  std::array<std::uint64_t, 2> random{};
  if (getrandom(random.data(), sizeof random, 0) != ssize_t{sizeof random})
    fail_write(path, "there are no random numbers");
  return fmt::format("{}/.plait-{:016x}{:016x}.tmp", folder_of(path), random[0], random[1]);
}

// Tries hidden names until `make` succeeds with one. Returns the name, or nothing with errno set.
template <class Make>
std::optional<std::string> with_hidden_name(const std::string& path, Make make) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::string name = hidden_name(path);
    if (make(name)) return name;
    if (errno != EEXIST) break;
  }
  return std::nullopt;
}

// Names under /dev and /proc (but for the shared memory folder) stand for open files and devices,
// which cannot be replaced by a rename.
bool names_a_device(const std::string& path) {
  return path.starts_with("/proc/") ||
         (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
}

// Returns the name to which links lead that lead to no file yet.
std::string end_of_links(std::string path) {
  char target[PATH_MAX];
  for (int link = 0; link < kMostLinks; ++link) {
    if (is_link_of_another(path)) fail_write(path, kLinkOfAnother);
    const ssize_t size = readlink(path.c_str(), target, sizeof target);
    if (size < 0) return path;
    const std::string_view name(target, static_cast<std::size_t>(size));
    path = name.starts_with('/') ? name : fmt::format("{}/{}", folder_of(path), name);
  }
  fail_write(path, reason(ELOOP));
}

// Returns where the content will stand: a link is followed, so that the file is replaced and not
// the link. Throws when something other than a regular file is there.
std::string resolve_target(const std::string& path) {
  if (path.empty()) fail_write("''", "the name is empty; give the name of a file");
  if (names_a_device(path)) fail_write(path, "not a regular file; give the name of a file");
  if (is_link_of_another(path)) fail_write(path, kLinkOfAnother);
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) fail_write(path, reason(errno));
    const std::string target = end_of_links(path);
    if (target.back() == '/') fail_write(path, "is a folder; give the name of a file");
    if (names_a_device(target)) fail_write(path, "not a regular file; give the name of a file");
    return target;
  }
  if (S_ISDIR(found.st_mode)) fail_write(path, "is a folder; give the name of a file");
  if (!S_ISREG(found.st_mode)) fail_write(path, "not a regular file; give the name of a file");
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : path;
}

void sync_folder(const std::string& path) {
  const int descriptor = open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder may be writable but not readable
  const Closer closer{descriptor};
  // EINVAL comes from a file system whose folders need no sync.
  if (fsync(descriptor) != 0 && errno != EINVAL) fail_write(path, reason(errno));
}

}  // namespace

bool has_current_folder() {
  char name[1];  // too short for any name
  return getcwd(name, sizeof name) != nullptr || errno == ERANGE;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  if (path.empty()) fail_read("''", "the name is empty; give the name of a file");
  // O_NONBLOCK: a named pipe without a writer must not make the program wait.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_read(path, reason(errno));
  const Closer closer{descriptor};
  return of_descriptor(descriptor, path);
}

std::shared_ptr<const MappedFile> MappedFile::of_descriptor(int descriptor,
                                                            const std::string& path) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) fail_read(path, reason(errno));
  if (S_ISDIR(found.st_mode)) fail_read(path, "is a folder; give the name of a file");
  if (!S_ISREG(found.st_mode)) fail_read(path, "not a regular file; give the name of a file");
  const auto size = static_cast<std::size_t>(found.st_size);
  void* memory = nullptr;
  if (size > 0) {  // an empty range cannot be mapped
    memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED && errno == ENOMEM)
      throw DoesNotFitError(
          fmt::format("{}: {} cannot be mapped: {}; raise the limit on addresses (ulimit -v)", path,
                      format_bytes(size), reason(ENOMEM)));
    if (memory == MAP_FAILED) fail_read(path, reason(errno));
  }
  std::shared_ptr<const MappedFile> file(
      new MappedFile(path, static_cast<const std::byte*>(memory), size));
  if (size > 0) name_mapped_range(file->bytes(), path);
  return file;
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  forget_mapped_range(bytes());
  munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(std::string path) : path_(resolve_target(path)) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC;
  // Without /proc a file that has no name cannot be given one.
  if (access("/proc/self/fd", X_OK) == 0)
    descriptor_ = open(folder_of(path_).c_str(), O_TMPFILE | kFlags, 0666);
  else
    errno = EOPNOTSUPP;
  if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    const auto name = with_hidden_name(path_, [&](const std::string& hidden) {
      descriptor_ = open(hidden.c_str(), O_CREAT | O_EXCL | kFlags, 0666);
      return descriptor_ >= 0;
    });
    temporary_ = name.value_or("");
  }
  if (descriptor_ >= 0) return;
  const int error = errno;
  if (!has_current_folder() && !path_.starts_with('/'))
    fail_write(path, "the current folder has been removed; go to another one");
  if (error == ENOENT)
    fail_write(path,
               fmt::format("{}there is no folder {}; make it first",
                           path == path_ ? "" : fmt::format("it is a link to {}, but ", path_),
                           folder_of(path_)));
  fail_write(path, reason(error));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_at(size_, bytes); }

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  if (descriptor_ < 0) fail_write(path_, "it is complete already");
  write_all(descriptor_, offset, bytes, path_);
  size_ = std::max(size_, offset + bytes.size());
}

void AtomicFile::commit() {
  if (descriptor_ < 0) fail_write(path_, "it is complete already");
  struct stat old {};
  if (stat(path_.c_str(), &old) == 0) {
    // The new file is as open or as closed to others as the file that it replaces; but another user
    // does not decide who may write to this user's file.
    if (!S_ISREG(old.st_mode)) fail_write(path_, "not a regular file; give the name of a file");
    const mode_t kept = old.st_uid == geteuid() ? 0777 : 0755;
    if (fchmod(descriptor_, old.st_mode & kept) != 0) fail_write(path_, reason(errno));
  }
  if (fsync(descriptor_) != 0) fail_write(path_, reason(errno));
  if (temporary_.empty()) {
    const std::string self = fmt::format("/proc/self/fd/{}", descriptor_);
    const auto link_to = [&](const std::string& name) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    // One step gives the file a free name; a name that is taken can only be replaced by a rename
    // from another name.
    if (!link_to(path_)) {
      if (errno != EEXIST) fail_write(path_, reason(errno));
      const auto name = with_hidden_name(path_, link_to);
      if (!name) fail_write(path_, reason(errno));
      temporary_ = *name;
    }
  }
  if (!temporary_.empty() && rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_write(path_, reason(errno));
  temporary_.clear();
  // Errors that a network file system reports late come with close().
  const int closed = close(std::exchange(descriptor_, -1));
  if (closed != 0 && errno != EINTR) fail_write(path_, reason(errno));
  sync_folder(path_);
}

}  // namespace plait
