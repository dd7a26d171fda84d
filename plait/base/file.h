// Files: mapped for reading; written whole or not at all.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plait {

// A file mapped read-only. Its memory is the page cache, shared between ranks.
class MappedFile {
 public:
  // Throws Error "PATH: cannot be opened: REASON", or that it is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Maps a file that is open; its path is for messages. The descriptor remains the caller's.
  static std::shared_ptr<const MappedFile> of_descriptor(int descriptor, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // The content, which is valid as long as this object.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  std::size_t size_;
};

// Writes a file that appears under its name only when it is complete. It is written without a name
// in the same folder (O_TMPFILE; with a hidden temporary name if the file system cannot do that),
// synced, then put in place of the old file by rename. If the writer is destroyed before commit(),
// or the process is killed, nothing is left and the old file stays. All members throw Error "PATH:
// cannot be written: REASON".
class AtomicFile {
 public:
  // Begins an empty file that will replace `path`.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Writes at an offset, in front of or beyond the end.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  // Syncs the file and puts it in its place. Nothing may be written after it.
  void commit();

 private:
  std::string path_;
  std::string temporary_;  // empty while the file has no name
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

}  // namespace plait
