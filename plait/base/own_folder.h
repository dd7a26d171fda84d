// A folder of work in progress, whose files belong to this user alone.
//
// Others may write to the folder above it, as anyone may to /tmp. So the folder is held by its
// descriptor, and its files are opened relative to that: never through a link, and only if they are
// this user's and have no other name. A name that another user has put there beforehand is replaced
// or refused, never written through.
//
// All members throw Error "PATH: cannot be opened: REASON", "made" or "written".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/file.h"

namespace plait {

// One folder. Copies are not made; it is closed with this object.
class OwnFolder {
 public:
  // Opens a folder. Throws an Error if it is not this user's, or if a link of another user leads to
  // it.
  explicit OwnFolder(std::string path);
  // Makes a folder that nobody else may enter, unless there is one.
  static void make(const std::string& path);
  // Returns the path of a folder that begins with `begin`, followed by six characters that nobody
  // can guess: one of this user's that an earlier call has made, or a new one.
  static std::string find_or_make(const std::string& begin);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  int descriptor() const { return descriptor_; }

  bool has(const std::string& name) const;
  // Returns the names of all files.
  std::vector<std::string> names() const;
  // Returns a descriptor, which the caller closes, of a new and empty file in place of an old one.
  int make_file(const std::string& name) const;
  // Returns a descriptor, which the caller closes, of a file that is there, with flags of open(2).
  int open_file(const std::string& name, int flags) const;
  std::shared_ptr<const MappedFile> map(const std::string& name) const;
  // Replaces a file, as a whole or not at all.
  void write(const std::string& name, std::string_view text) const;
  // Removes a file, if it is there and can be removed.
  void remove(const std::string& name) const;
  // Removes the folder, if it is empty.
  void remove_itself() const;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace plait
