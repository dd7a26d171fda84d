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
  // Throws Error "PATH: cannot be opened: REASON" or that it is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  std::size_t size_;
};

// Writes a file that appears under its name only when it is complete: written without a name in
// the same folder (O_TMPFILE; a hidden temporary name where the file system has no such thing),
// synced, then put in place of what was there by rename. If the writer is destroyed before
// commit(), or the process is killed, nothing is left and what was there before stays.
// All members throw Error "PATH: cannot be written: REASON".
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);  // appends
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }
  void commit();

 private:
  std::string path_;
  std::string temporary_;  // empty while the file has no name
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

}  // namespace plait
