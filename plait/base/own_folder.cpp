#include "plait/base/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file_system.h"

namespace plait {
namespace {

constexpr std::string_view kRandom = "XXXXXX";  // which mkdtemp() replaces

[[noreturn]] void fail_make(const std::string& path) {
  throw Error(path + ": cannot be made: " + reason(errno));
}

// Returns the names in an open folder, except "." and "..".
std::vector<std::string> names_in(int folder, const std::string& path) {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) fail_read(path, reason(errno));
  DIR* const stream = fdopendir(again);  // which owns the descriptor
  if (stream == nullptr) {
    const std::string why = reason(errno);
    close(again);
    fail_read(path, why);
  }
  std::vector<std::string> names;
  while (const dirent* const entry = readdir(stream))
    if (const std::string_view name = entry->d_name; name != "." && name != "..")
      names.emplace_back(name);
  closedir(stream);
  return names;
}

}  // namespace

OwnFolder::OwnFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();  // which would follow a link
  if (is_link_of_another(path_)) fail_read(path_, kLinkOfAnother);
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) fail_read(path_, reason(errno));
  struct stat found {};
  const bool known = fstat(descriptor_, &found) == 0;
  if (known && found.st_uid == geteuid()) return;
  const std::string why = known ? "the folder is another user's; give one of yours" : reason(errno);
  close(descriptor_);
  fail_read(path_, why);
}

OwnFolder::~OwnFolder() { close(descriptor_); }

void OwnFolder::make(const std::string& path) {
  struct stat found {};
  if (mkdir(path.c_str(), S_IRWXU) == 0) return;
  if (errno != EEXIST) fail_make(path);
  if (stat(path.c_str(), &found) == 0 && !S_ISDIR(found.st_mode)) errno = ENOTDIR;
  if (errno != EEXIST) fail_make(path);
}

std::string OwnFolder::find_or_make(const std::string& begin) {
  const std::string above = folder_of(begin);
  const std::string stem = begin.substr(begin.rfind('/') + 1);
  const int folder = open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::vector<std::string> found;
  if (folder >= 0) {  // a folder may be writable but not readable
    const Closer closer{folder};
    for (const std::string& name : names_in(folder, above)) {
      struct stat is {};
      if (name.size() == stem.size() + kRandom.size() && name.starts_with(stem) &&
          fstatat(folder, name.c_str(), &is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(is.st_mode) &&
          is.st_uid == geteuid())
        found.push_back(begin + name.substr(stem.size()));
    }
  }
  if (!found.empty()) return std::ranges::min(found);
  std::string path = begin + std::string(kRandom);
  if (mkdtemp(path.data()) == nullptr) fail_make(begin);
  return path;
}

bool OwnFolder::has(const std::string& name) const {
  return faccessat(descriptor_, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> OwnFolder::names() const { return names_in(descriptor_, path_); }

int OwnFolder::make_file(const std::string& name) const {
  remove(name);
  const int file = openat(descriptor_, name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) fail_write(path_of(name), reason(errno));
  return file;
}

int OwnFolder::open_file(const std::string& name, int flags) const {
  const auto fail = [&](const std::string& why) {
    if ((flags & O_ACCMODE) == O_RDONLY) fail_read(path_of(name), why);
    fail_write(path_of(name), why);
  };
  // O_NONBLOCK: a named pipe without a writer must not make the program wait.
  const int file = openat(descriptor_, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) fail(errno == ELOOP ? "it is a link" : reason(errno));
  struct stat found {};
  std::string why;
  if (fstat(file, &found) != 0)
    why = reason(errno);
  else if (!S_ISREG(found.st_mode))
    why = "not a regular file";
  else if (found.st_uid != geteuid())
    why = "the file is another user's";
  else if (found.st_nlink != 1)
    why = "the file has another name, too";
  if (why.empty()) return file;
  close(file);
  fail(why);
  return -1;
}

std::shared_ptr<const MappedFile> OwnFolder::map(const std::string& name) const {
  const Closer file{open_file(name, O_RDONLY)};
  return MappedFile::of_descriptor(file.descriptor, path_of(name));
}

void OwnFolder::write(const std::string& name, std::string_view text) const {
  const std::string fresh = name + ".new";
  {
    const Closer file{make_file(fresh)};
    write_all(file.descriptor, 0, std::as_bytes(std::span(text)), path_of(name));
    if (fsync(file.descriptor) != 0) fail_write(path_of(name), reason(errno));
  }
  if (renameat(descriptor_, fresh.c_str(), descriptor_, name.c_str()) != 0)
    fail_write(path_of(name), reason(errno));
  // EINVAL comes from a file system whose folders need no sync.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail_write(path_of(name), reason(errno));
}

void OwnFolder::remove(const std::string& name) const {
  static_cast<void>(unlinkat(descriptor_, name.c_str(), 0));
}

void OwnFolder::remove_itself() const { static_cast<void>(rmdir(path_.c_str())); }

}  // namespace plait
