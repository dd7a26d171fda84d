// Small files that one run keeps for the next, in the user's cache.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "plait/base/file.h"
#include "plait/base/shared_file.h"

namespace plait {

// Returns the folder of one kind of files: what the environment's `variable` names (empty: nothing
// is kept), else plait/NAME in XDG_CACHE_HOME or ~/.cache. Empty if there is none.
std::string cache_folder(const char* variable, const char* name);

// Returns the path of the file of a key: FOLDER/CHECKSUM.json.
std::string cache_path(const std::string& folder, const std::string& key);

// Begins a file, in a folder that is made. Throws Error if it cannot be written.
AtomicFile begin_cache_file(const std::string& path);

// Keeps other processes that ask for it from changing files of a folder, while one reads a file and
// replaces it. Returns null if the folder is not there, or if another process holds the lock for
// more than two seconds: such a process may be stopped.
std::unique_ptr<FolderLock> lock_cache(const std::string& folder);

// Calls read(text) with the text of a file, if there is one. A file that cannot be read, that is
// neither this user's nor root's, or for which `read` throws an exception, counts as none: returns
// "PATH is not used: REASON". Exceptions that are no Error say that the file is damaged. Returns an
// empty text if all is well.
std::string read_cache_file(const std::string& path,
                            const std::function<void(std::string_view)>& read);

}  // namespace plait
