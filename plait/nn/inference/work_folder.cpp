#include "plait/nn/inference/work_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";

void write_json(const OwnFolder& folder, const std::string& name, const json& value) {
  folder.write(name, value.dump() + "\n");
}

[[noreturn]] void damaged(const OwnFolder& folder, const std::string& name) {
  throw InputError(folder.path_of(name), "its content", "is not what plait infer writes there",
                   "remove the folder " + folder.path() + " to begin anew");
}

json read_json(const OwnFolder& folder, const std::string& name) {
  json value = json::parse(folder.map(name)->text(), nullptr, false);
  if (!value.is_object()) damaged(folder, name);
  return value;
}

// Collective. Returns the path of rank 0, which makes the folder.
std::string made_by_rank_0(World& world, const WorkPlace& place) {
  std::string path;
  if (world.rank() == 0) {
    path = place.path.empty() ? OwnFolder::find_or_make(place.begin) : place.path;
    if (!place.path.empty()) OwnFolder::make(path);
  }
  const auto paths = world.all_gather(std::as_bytes(std::span(path)));
  return {reinterpret_cast<const char*>(paths[0].data()), paths[0].size()};
}

// A whole number from 0 to `most`.
std::optional<std::uint64_t> number(const json& object, const char* key, std::uint64_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  return value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

WorkFolder::WorkFolder(World& world, const WorkPlace& place,
                       const std::map<std::string, std::string>& settings)
    : rank_(world.rank()) {
  const std::string path = made_by_rank_0(world, place);
  if (rank_ == 0) {
    folder_ = std::make_unique<OwnFolder>(path);
    prepare(settings);
  }
  world.barrier();
  const auto unseen = [&] {
    return fmt::format(
        "{}: rank {} does not see the folder that rank 0 has made; give one on a "
        "file system that all hosts share",
        path, rank_);
  };
  if (rank_ > 0) {
    require(std::filesystem::exists(path), "{}", unseen());
    folder_ = std::make_unique<OwnFolder>(path);
  }
  require(folder_->has(kManifest), "{}", unseen());
}

void WorkFolder::prepare(const std::map<std::string, std::string>& settings) {
  lock_ = std::make_unique<FolderLock>(*folder_);
  if (!folder_->has(kManifest)) {
    clear();  // files that an interrupted remove() has left
    require(folder_->names().empty(),
            "{}: the folder holds something else; give another by {}, or empty it", path(),
            setting("work"));
    return write_json(*folder_, kManifest, settings);
  }
  const json there = read_json(*folder_, kManifest);
  for (const auto& [key, value] : settings) {
    const auto found = there.find(key);
    if (found == there.end() || !found->is_string()) damaged(*folder_, kManifest);
    if (*found != value)
      throw InputError(folder_->path_of(kManifest), key,
                       fmt::format("the run that began here has {}, but this one has {}",
                                   found->get<std::string>(), value),
                       "go on with the same, or remove the folder " + path() + " to begin anew");
  }
}

Reached WorkFolder::reached(std::uint64_t stages, std::uint64_t rows) const {
  const std::string name = rank_name();
  if (!folder_->has(name)) return {};
  const json there = read_json(*folder_, name);
  const auto stage = number(there, "stage", stages), done = number(there, "rows", rows);
  if (!stage || !done) damaged(*folder_, name);
  return {*stage, *done};
}

void WorkFolder::reach(const Reached& reached) const {
  write_json(*folder_, rank_name(), {{"stage", reached.stage}, {"rows", reached.rows}});
}

Array<float> WorkFolder::rows(std::uint64_t stage, std::uint64_t rows, std::uint64_t width) const {
  const auto mapped = folder_->map(rows_name(stage));
  const auto bytes = mapped->bytes();
  if (bytes.size() != rows * width * sizeof(float)) damaged(*folder_, rows_name(stage));
  return {mapped, {reinterpret_cast<const float*>(bytes.data()), rows * width}};
}

// It may be gone since an earlier run.
void WorkFolder::forget(std::uint64_t stage) const { folder_->remove(rows_name(stage)); }

void WorkFolder::clear() const {
  for (const std::string& name : folder_->names()) {
    const bool record = name.starts_with("rank-") && name.find(".json") != std::string::npos;
    const bool rows = name.starts_with("rows-") && name.ends_with(".f32");
    if (record || rows || name == "manifest.json.new") folder_->remove(name);
  }
}

void WorkFolder::remove() const {
  folder_->remove(kManifest);  // first: without it the rest counts for nothing
  clear();
  folder_->remove_itself();  // not if the user keeps something in it
}

}  // namespace plait
