// The folder in which inference by layers keeps rows between layers, and its progress, so that an
// interrupted run can be taken up again.
//
//   manifest.json   names the run: graph, checkpoint, settings. Other runs are refused
//   rank-R.json     {"stage": S, "rows": N}: rank R has finished the stages before S and, of its
//                   own rows, the first N of stage S
//   rows-S.f32      the output of stage S: one row per vertex, float32, written by all ranks
//
// All ranks must see the folder: on one host, or on a file system that their hosts share. It is
// this user's alone (base/own_folder.h).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plait/base/array.h"
#include "plait/base/own_folder.h"
#include "plait/base/shared_file.h"
#include "plait/world/world.h"

namespace plait {

// A stage under way, and how many of a rank's own rows of it are done.
struct Reached {
  std::uint64_t stage = 0, rows = 0;
};

// The place of the folder.
struct WorkPlace {
  std::string path;   // or empty: in a folder that this user can find, and nobody can guess,
  std::string begin;  // whose path begins so
};

// One rank's view of the folder. Rank 0 holds a lock on it.
class WorkFolder {
 public:
  // Collective. Makes the folder, or takes it up as a run of the same `settings` has left it. Rank
  // 0 decides the path. Throws an InputError that names the setting that differs or a damaged file,
  // and Error if another process is at work there, the folder is another user's or holds other
  // files, or a rank does not see it.
  WorkFolder(World& world, const WorkPlace& place,
             const std::map<std::string, std::string>& settings);

  const std::string& path() const { return folder_->path(); }
  // The folder, and the name in it of a stage's file of rows.
  const OwnFolder& folder() const { return *folder_; }
  static std::string rows_name(std::uint64_t stage) { return fmt::format("rows-{}.f32", stage); }
  // Returns the place that this rank had reached; the beginning if none is recorded. Throws
  // InputError if it is beyond `stages` or `rows`.
  Reached reached(std::uint64_t stages, std::uint64_t rows) const;
  // Records the place, as a whole or not at all.
  void reach(const Reached& reached) const;

  // Maps the output of a stage: rows x width. Throws InputError if the file has another size.
  Array<float> rows(std::uint64_t stage, std::uint64_t rows, std::uint64_t width) const;
  // Removes the rows of a stage that no later stage reads.
  void forget(std::uint64_t stage) const;
  // Removes the files of the run, and the folder if nothing else is in it. One rank calls it.
  void remove() const;

 private:
  void prepare(const std::map<std::string, std::string>& settings);
  void clear() const;
  std::string rank_name() const { return fmt::format("rank-{}.json", rank_); }

  int rank_;
  std::unique_ptr<OwnFolder> folder_;
  std::unique_ptr<FolderLock> lock_;  // of rank 0
};

}  // namespace plait
