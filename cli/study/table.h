// The studies of `plait study`: comparisons of the papers, one row of a table each; each paper has
// a table (study_entries.h). A study is a list of entries, which one engine (study_engine.h)
// measures on one graph.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/exchange/options.h"
#include "plait/measure/cuda/rival_bench.h"
#include "plait/measure/gather_bench.h"
#include "plait/measure/read_chain.h"
#include "plait/nn/config.h"
#include "plait/reorder/reorder.h"

namespace plait::cli {

// The work that an entry times.
enum class StudyPart {
  step,        // y = A x
  link,        // on GPUs: the transfer of the halo alone
  sum,         // on GPUs: the sum over all edges alone
  waiting,     // on the CPU: the part of a step in which a rank waits for others,
  fetching,    //   moves rows,
  summing,     //   and sums
  ordering,    // finding the order of vertices, and renumbering the graph by it
  partition,   // finding the owners of vertices
  placing,     // making the shards and what moving rows needs
  first_step,  // on GPUs: the first step, less a later one: neighbour groups and memory for sums
  epoch,       // a step of training: GCN of two layers, 16 wide, with made features and labels
  training,    // an epoch of training for accuracy (study_training.h)
  ahead,       // an epoch on samples (StudyEpochs),
  in_turn,     //   one whose batches are prepared in turn,
  sampling,    //   and its parts
  gathering,
  computing,
  rows,    // a gather of rows from a table over ranks (measure/gather_bench.h)
  reads,   // 1,000 reads, each at the place that the one before tells (measure/read_chain.h)
  memory,  // taking a component's memory (study_memory.h)
};
std::string_view to_string(StudyPart part);

// The ids of the rows that are gathered.
enum class StudyIds {
  samples,  // vertices of a batch of samples; the table has a row per vertex
  random,   // uniform, of a table of 1 GiB per GPU or 64 MiB per rank; results take a quarter of it
};

// A part of what training on samples keeps.
enum class StudyComponent { structure, features, training };

// One measurement.
struct StudyEntry {
  std::string name;
  StudyPart part = StudyPart::step;
  ExchangeOptions options;
  std::optional<GetRival> rival = {};           // instead of strategy get
  std::uint64_t width = 0;                      // of x, in floats
  ReorderMethod order = ReorderMethod::none;    // of the graph
  std::optional<double> claim = {};             // the paper's ratio
  std::optional<SampledTraining> sampled = {};  // of training; none: it takes the whole graph
  // Numbers beside the times, by their keys in JSON.
  std::vector<std::pair<std::string, double>> figures = {};
  std::string row = {}, column = {};  // the cell of a heat map; empty: a bar
  std::string left_out = {};          // why this is not measured; empty: it is
  std::string of = {};                // the entry that its ratio refers to; empty: the first one
  std::string model = {};             // that is trained
  std::optional<GatherWay> gather = {};
  StudyIds ids = StudyIds::samples;
  std::optional<ChainMemory> chain = {};
  std::uint64_t bytes = 0;  // of the memory that is read
  std::optional<StudyComponent> component = {};
  bool occupancy = false;  // the GPU is asked how many blocks of the kernel it has at once
};

// The settings of a study, from which its entries are made.
struct StudyInput {
  Route route;  // its strategy is open
  std::uint64_t width = 64;
  int ranks = 1;
};

// The ratio of an entry, to the one that it refers to.
enum class StudyRatio {
  speedup,  // the other one's time divided by this one's
  share,    // this one's time divided by the other one's
  planned,  // measured bytes divided by planned ones
};

struct Study {
  std::string_view name;
  std::string_view question;
  std::string_view paper;  // where the paper has it
  std::string_view claim;  // what the paper says
  bool needs_gpus;
  int least_ranks;
  StudyRatio ratio;
  // Options of the command that the study sets itself.
  std::vector<const char*> varies;
  // Throws UsageError for a route that cannot be.
  std::vector<StudyEntry> (*entries)(const StudyInput& input);
  bool trains = false;                   // the graph needs features and labels
  std::vector<const char*> unread = {};  // options of the command that change nothing here
};

// A comparison that a script makes, as it needs Python or several runs.
struct StudyScript {
  std::string_view name, question, paper, claim;
  std::string_view command;  // from the root of the sources
};

// Returns all studies, and all scripts.
std::span<const Study> studies();
std::span<const StudyScript> study_scripts();
// Throws a UsageError that lists all names, or, for the name of a script, tells its command.
const Study& study_of(std::string_view name);

}  // namespace plait::cli
