// Zip archives in memory, through libzip, as far as .npz needs them.
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

// Closes an archive without writing it.
struct ZipDiscard {
  void operator()(zip* archive) const;
};

// Reads stored and deflated members. Before memory is taken for a member, its promised size is
// compared with its compressed bytes, which deflate unpacks to at most 1032 each, and the size of
// all members together with the file; checksums are checked. For one thread at a time. Throws
// InputError.
class ZipReader {
 public:
  // Lists the members. `bytes` must outlive the reader. `file` names it in messages.
  ZipReader(std::span<const std::byte> bytes, std::string file);

  // Returns the number of each member, by name.
  const std::map<std::string, std::uint64_t>& members() const { return members_; }
  // Unpacks a member, which is named by its number.
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
  // With `compress`, members are deflated; else they are stored.
  explicit ZipWriter(bool compress) : compress_(compress) {}
  // Adds a member. The content is `head`, then `body`, which `owner` keeps, or which lives until
  // write().
  void add(std::string name, std::string head, std::span<const std::byte> body,
           std::shared_ptr<const void> owner = nullptr);
  // Writes the archive, which is held in memory meanwhile. The caller commits the file.
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
