// Files and folders of work in progress, on which several processes work at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plait/base/own_folder.h"

namespace plait {

// A file of a known size, which processes write each at places of its own, and which is read by
// mapping it. It has its name from the beginning. Members throw Error "PATH: cannot be written:
// REASON".
class SharedFile {
 public:
  // Makes an empty file of `bytes` bytes in place of the old one; takes the room on the disk at
  // once if the file system can.
  static void make(const OwnFolder& folder, const std::string& name, std::uint64_t bytes);
  // Opens a file that was made.
  SharedFile(const OwnFolder& folder, const std::string& name);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Writes at an offset. Any thread may call it.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  // Returns when everything that was written before is on the disk.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

// A lock on a folder, which ends with this object, or with the process at the latest.
class FolderLock {
 public:
  // Throws Error if the folder cannot be read, or if another process holds the lock and does not
  // give it back within `patience`.
  explicit FolderLock(const std::string& path,
                      std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  explicit FolderLock(const OwnFolder& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void lock(const std::string& path, std::chrono::milliseconds patience);
  int descriptor_ = -1;
};

// Returns size and time of the last change of a file or folder, to tell whether it is still the
// same.
std::string file_stamp(const std::string& path);
// Returns XXH3 (64 bit) of the content of a file, in hexadecimal digits.
std::string file_checksum(const std::string& path);

}  // namespace plait
