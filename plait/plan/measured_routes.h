// Times of aggregations that `plait tune` measured, and of epochs in which training tried ways,
// kept in files from one run to the next.
//
// There is one file per graph, kind of device and number of ranks, in the folder
// measured_routes_folder(). A file that is damaged, or that another version of Plait wrote, counts
// as none, and the reader is told why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/plan/optimiser.h"
#include "plait/plan/route.h"

namespace plait {

// The case that measurements were made in, and hold for.
struct MeasuredKey {
  std::string graph;   // checksum (io/fingerprint.h)
  std::string device;  // the name of the GPU, or "cpu" with the number of processors
  int ranks = 1;       // in all
  int here = 1;        // on the host of the first rank

  friend bool operator==(const MeasuredKey&, const MeasuredKey&) = default;
};

// One measurement: the median time of y = A x, for rows of `width` floats that cross as fp32.
struct MeasuredRoute {
  Strategy strategy = Strategy::bulk;
  PartitionScheme partition = PartitionScheme::edges;
  DeviceTransport transport = DeviceTransport::vmm;
  std::uint64_t width = 0;
  double ms = 0;

  friend bool operator==(const MeasuredRoute&, const MeasuredRoute&) = default;
};

// A kind of training on the graph of a key, and the parts of its route that trials leave alone.
struct TrainingKind {
  std::string model;                  // gcn, ...
  std::vector<std::uint64_t> widths;  // of rows, in floats, one per aggregation
  PartitionScheme partition = PartitionScheme::edges;
  DeviceTransport transport = DeviceTransport::vmm;
  bool exact = false;
  DType wire = DType::f32;

  friend bool operator==(const TrainingKind&, const TrainingKind&) = default;
};

// One way that training tried (plan/optimiser.h), with the least time of a step.
struct MeasuredEpoch {
  TrainingKind kind;
  TrialWay way;
  double ms = 0;

  friend bool operator==(const MeasuredEpoch&, const MeasuredEpoch&) = default;
};

// The measurements that are kept for a key.
struct MeasuredRoutes {
  std::vector<MeasuredRoute> routes;  // empty: nothing
  std::vector<MeasuredEpoch> epochs;  // of each kind the way that stayed first
  std::string note;                   // why a file that is there was not used; else empty
};

// Returns the folder: the environment's PLAIT_ROUTES (empty: nothing is kept), else plait/routes in
// XDG_CACHE_HOME or ~/.cache. Empty if there is none.
std::string measured_routes_folder();
// Returns the path of a key's file in the folder.
std::string measured_routes_path(const std::string& folder, const MeasuredKey& key);

// Reads the measurements of a key. Throws nothing for a file that is missing, damaged or stale.
MeasuredRoutes read_measured_routes(const std::string& folder, const MeasuredKey& key);
// Both make the folder, and throw Error if the file of a key cannot be written. The first leaves it
// as it is; the second keeps these measurements in the place of all earlier ones of the key. With
// an empty folder they do nothing.
void check_measured_routes(const std::string& folder, const MeasuredKey& key);
void keep_measured_routes(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredRoute>& routes);
// Keeps the ways of one kind of training, the way that stayed first, in the place of earlier ones
// of that kind; the other measurements of the key stay. Otherwise as keep_measured_routes().
void keep_measured_epochs(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredEpoch>& epochs);

}  // namespace plait
