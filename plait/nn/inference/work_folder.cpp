#include "plait/nn/inference/work_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/file.h"

namespace plait {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void write_json(const std::string& path, const json& value) {
  AtomicFile file(path);
  file.write(value.dump() + "\n");
  file.commit();
}

[[noreturn]] void damaged(const std::string& path, const std::string& folder) {
  throw InputError(path, "its content", "is not what plait infer writes there",
                   "remove the folder " + folder + " to begin anew");
}

json read_json(const std::string& path, const std::string& folder) {
  json value = json::parse(MappedFile::open(path)->text(), nullptr, false);
  if (!value.is_object()) damaged(path, folder);
  return value;
}

// A whole number from 0 to `most`.
std::optional<std::uint64_t> number(const json& object, const char* key, std::uint64_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  return value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

WorkFolder::WorkFolder(World& world, std::string path,
                       const std::map<std::string, std::string>& settings)
    : path_(std::move(path)), rank_(world.rank()) {
  if (rank_ == 0) prepare(settings);
  world.barrier();
  require(fs::exists(file("manifest.json")),
          "{}: rank {} does not see the folder that rank 0 has made; give one on a file system "
          "that all hosts share",
          path_, rank_);
}

void WorkFolder::prepare(const std::map<std::string, std::string>& settings) {
  std::error_code error;
  fs::create_directory(path_, error);
  if (error) throw Error(path_ + ": cannot be made: " + error.message());
  lock_ = std::make_unique<FolderLock>(path_);
  const std::string manifest = file("manifest.json");
  if (!fs::exists(manifest)) {
    clear();  // files that an interrupted remove() has left
    require(fs::is_empty(path_),
            "{}: the folder holds something else; give another by --work, or empty it", path_);
    return write_json(manifest, settings);
  }
  const json there = read_json(manifest, path_);
  for (const auto& [key, value] : settings) {
    const auto found = there.find(key);
    if (found == there.end() || !found->is_string()) damaged(manifest, path_);
    if (*found != value)
      throw InputError(manifest, key,
                       fmt::format("the run that began here has {}, but this one has {}",
                                   found->get<std::string>(), value),
                       "go on with the same, or remove the folder " + path_ + " to begin anew");
  }
}

Reached WorkFolder::reached(std::uint64_t stages, std::uint64_t rows) const {
  const std::string path = rank_path();
  if (!fs::exists(path)) return {};
  const json there = read_json(path, path_);
  const auto stage = number(there, "stage", stages), done = number(there, "rows", rows);
  if (!stage || !done) damaged(path, path_);
  return {*stage, *done};
}

void WorkFolder::reach(const Reached& reached) const {
  write_json(rank_path(), {{"stage", reached.stage}, {"rows", reached.rows}});
}

std::string WorkFolder::rows_path(std::uint64_t stage) const {
  return file(fmt::format("rows-{}.f32", stage));
}

Array<float> WorkFolder::rows(std::uint64_t stage, std::uint64_t rows, std::uint64_t width) const {
  const std::string path = rows_path(stage);
  const auto mapped = MappedFile::open(path);
  const auto bytes = mapped->bytes();
  if (bytes.size() != rows * width * sizeof(float)) damaged(path, path_);
  return {mapped, {reinterpret_cast<const float*>(bytes.data()), rows * width}};
}

void WorkFolder::forget(std::uint64_t stage) const {
  std::error_code ignored;  // it may be gone since an earlier run
  fs::remove(rows_path(stage), ignored);
}

void WorkFolder::clear() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool record = name.starts_with("rank-") && name.ends_with(".json");
    const bool rows = name.starts_with("rows-") && name.ends_with(".f32");
    if (record || rows) fs::remove(entry.path(), ignored);
  }
}

void WorkFolder::remove() const {
  std::error_code ignored;
  fs::remove(file("manifest.json"), ignored);  // first: without it the rest counts for nothing
  clear();
  fs::remove(path_, ignored);  // not if the user keeps something in it
}

}  // namespace plait
