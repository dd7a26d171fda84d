// The folder in which inference by layers keeps rows between layers, and how far it has come, so
// that a run that was interrupted can be taken up again.
//
//   manifest.json   what the run is: graph, checkpoint, settings. Another run's is refused
//   rank-R.json     {"stage": S, "rows": N}: rank R has finished the stages before S and, of its
//                   own rows, the first N of stage S
//   rows-S.f32      what stage S gives: a row a vertex, float32, written by all ranks
//
// Ranks must all see the folder: on one host, or on a file system that their hosts share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plait/base/array.h"
#include "plait/base/shared_file.h"
#include "plait/world/world.h"

namespace plait {

// A stage under way and how many of a rank's own rows of it are done.
struct Reached {
  std::uint64_t stage = 0, rows = 0;
};

class WorkFolder {
 public:
  // Makes the folder, or finds it as a run of the same `settings` has left it. Collective. Throws
  // InputError that names what differs, Error if another process is at work there.
  WorkFolder(World& world, std::string path, const std::map<std::string, std::string>& settings);

  const std::string& path() const { return path_; }
  // What this rank had reached; stage and rows are not above those given.
  Reached reached(std::uint64_t stages, std::uint64_t rows) const;
  // Replaces it.
  void reach(const Reached& reached) const;

  std::string rows_path(std::uint64_t stage) const;
  // What a stage gave: rows x width. Throws InputError if the file has another size.
  Array<float> rows(std::uint64_t stage, std::uint64_t rows, std::uint64_t width) const;
  // Rows that no stage reads any more.
  void forget(std::uint64_t stage) const;
  // All that is here, and the folder, if nothing else is in it. On one rank.
  void remove() const;

 private:
  void prepare(const std::map<std::string, std::string>& settings);
  void clear() const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string rank_path() const { return file(fmt::format("rank-{}.json", rank_)); }

  std::string path_;
  int rank_;
  std::unique_ptr<FolderLock> lock_;  // of rank 0
};

}  // namespace plait
