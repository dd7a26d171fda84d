#include "plait/base/user_cache.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/file_system.h"
#include "plait/base/printable.h"

namespace plait {
namespace {

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_folder(const char* variable, const char* name) {
  if (const char* const given = std::getenv(variable)) return given;
  const std::string cache = value_of("XDG_CACHE_HOME"), home = value_of("HOME");
  if (!cache.empty()) return cache + "/plait/" + name;
  return home.empty() ? "" : home + "/.cache/plait/" + name;
}

std::string cache_path(const std::string& folder, const std::string& key) {
  return fmt::format("{}/{}.json", folder,
                     checksum_text(checksum_of(std::as_bytes(std::span(key)))));
}

AtomicFile begin_cache_file(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  require(!failed, "{}: cannot be made: {}", printable(folder.string()), failed.message());
  return AtomicFile(path);
}

std::unique_ptr<FolderLock> lock_cache(const std::string& folder) {
  try {
    return std::make_unique<FolderLock>(folder, std::chrono::seconds(2));
  } catch (const Error&) {
    return nullptr;
  }
}

std::string read_cache_file(const std::string& path,
                            const std::function<void(std::string_view)>& read) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  const auto unused = [&](const std::string& reason) {
    return fmt::format("{} is not used: {}", printable(path), reason);
  };
  if (!is_own_or_roots(path)) return unused("it is another user's");
  try {
    const auto file = MappedFile::open(path);
    read(file->text());
    return "";
  } catch (const Error& error) {
    return unused(printable(error.what()));
  } catch (const std::exception&) {
    return unused("it is damaged");
  }
}

}  // namespace plait
