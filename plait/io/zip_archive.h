// Zip archives in memory, through libzip: what .npz needs of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/file.h"

struct zip;
struct zip_error;

namespace plait {

struct ZipDiscard {
  void operator()(zip* archive) const;
};

// Reads stored and deflated members. `bytes` must outlive the reader. Before memory is taken for a
// member its promised size is held against its compressed bytes, which deflate unpacks to at most
// 1032 each, and all members together against the file; checksums are checked. Not for use by
// several threads. Throws InputError.
class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, std::string file);

  const std::map<std::string, std::uint64_t>& members() const {
    return members_;
  }  // name -> number
  Buffer<std::byte> inflate(std::uint64_t member) const;

 private:
  void list(std::uint64_t file_bytes);
  [[noreturn]] void fail(const std::string& place, const std::string& problem) const;
  [[noreturn]] void fail(const std::string& place, zip_error* error) const;

  std::string file_;
  std::unique_ptr<zip, ZipDiscard> archive_;
  std::map<std::string, std::uint64_t> members_;
};

// Collects members, then writes the archive; the same members always make the same bytes.
class ZipWriter {
 public:
  explicit ZipWriter(bool compress) : compress_(compress) {}
  // The content is `head`, then `body`, which `owner` keeps, or which lives until write().
  void add(std::string name, std::string head, std::span<const std::byte> body,
           std::shared_ptr<const void> owner = nullptr);
  // The compressed archive is held in memory meanwhile.
  void write(AtomicFile& file) const;

 private:
  struct Member {
    std::string name;
    std::string head;
    std::span<const std::byte> body;
    std::shared_ptr<const void> owner;
  };
  bool compress_;
  std::vector<Member> members_;
};

}  // namespace plait
