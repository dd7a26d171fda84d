// Errors of the system as lines; and code shared by functions that write files, links of other
// users and whole writes, which is internal to this room.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

namespace plait {

// Tells whether the current folder is there: it may have been removed.
bool has_current_folder();

// Returns the system's words for an errno, made to follow a colon: "no space left on device". If
// files are too many, they say which limit counts them.
std::string reason(int error);
// Throw Error "PATH: cannot be opened: WHY", or "written".
[[noreturn]] void fail_read(const std::string& path, const std::string& why);
[[noreturn]] void fail_write(const std::string& path, const std::string& why);

// Returns the path of the folder that a path names a file of.
std::string folder_of(const std::string& path);

// Tells whether a path is a link of another user (other than root), which is not followed: in a
// folder such as /tmp it could lead to any file of whoever runs this program.
bool is_link_of_another(const std::string& path);
inline constexpr const char* kLinkOfAnother = "it is a link of another user; give another name";
// Tells whether a file is this user's or root's.
bool is_own_or_roots(const std::string& path);

// Writes all of `bytes` at `offset`. `path` is for the message of an Error.
void write_all(int descriptor, std::size_t offset, std::span<const std::byte> bytes,
               const std::string& path);

// Closes a descriptor at the end of a scope.
struct Closer {
  int descriptor;
  ~Closer() { close(descriptor); }
};

}  // namespace plait
