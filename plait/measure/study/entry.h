// The entries of a study. Each is one measurement.
#pragma once

#include <cstdint>
#include <optional>
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

namespace plait {

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
  training,    // an epoch of training for accuracy (training.h)
  ahead,       // an epoch on samples (StudyEpochs),
  in_turn,     //   one whose batches are prepared in turn,
  sampling,    //   and its parts
  gathering,
  computing,
  rows,    // a gather of rows from a table over ranks (measure/gather_bench.h)
  reads,   // 1,000 reads, each at the place that the one before tells (measure/read_chain.h)
  memory,  // taking a component's memory (memory.h)
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

// The ratio of an entry, to the one that it refers to.
enum class StudyRatio {
  speedup,  // the other one's time divided by this one's
  share,    // this one's time divided by the other one's
  planned,  // measured bytes divided by planned ones
};

}  // namespace plait
