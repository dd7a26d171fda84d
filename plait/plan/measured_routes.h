// Times of ways that were measured, kept in files from one run to the next: of aggregations by
// `plait tune`, and of epochs in which training tried ways (optimiser.h).
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

// A kind of run on the graph of a key: what it computes, and the parts of its route that no
// measurement varies.
struct RunKind {
  std::string model = {};                  // that is trained: gcn, ...; empty: y = A x
  std::vector<std::uint64_t> widths = {};  // of rows, in floats, one per aggregation
  DeviceTransport transport = DeviceTransport::vmm;
  bool exact = false;
  DType wire = DType::f32;

  friend bool operator==(const RunKind&, const RunKind&) = default;
};

// One measurement: the median time of y = A x at one width, of rows that cross as fp32; or the
// least time of a training's step.
struct MeasuredRoute {
  RunKind kind;
  PartitionScheme partition = PartitionScheme::edges;
  TrialWay way;
  double ms = 0;

  friend bool operator==(const MeasuredRoute&, const MeasuredRoute&) = default;
};

// The measurements that are kept for a key.
struct MeasuredRoutes {
  // Of trainings of one kind on one partition, the way that stayed stands first.
  std::vector<MeasuredRoute> routes;
  std::string note;  // why a file that is there was not used; else empty
};

// Returns the folder: the environment's PLAIT_ROUTES (empty: nothing is kept), else plait/routes in
// XDG_CACHE_HOME or ~/.cache. Empty if there is none.
std::string measured_routes_folder();
// Returns the path of a key's file in the folder.
std::string measured_routes_path(const std::string& folder, const MeasuredKey& key);

// Reads the measurements of a key. Throws nothing for a file that is missing, damaged or stale.
MeasuredRoutes read_measured_routes(const std::string& folder, const MeasuredKey& key);
// Both make the folder, and throw Error if the file of a key cannot be written. With an empty
// folder they do nothing. The first leaves the file as it is.
void check_measured_routes(const std::string& folder, const MeasuredKey& key);
// Keeps measurements: each of y = A x in the place of an earlier one of the same way, with the
// same settings of strategy get, partition and width; those of a training in the place of all
// earlier ones of its kind on its partition. All others of the key stay.
void keep_measured_routes(const std::string& folder, const MeasuredKey& key,
                          const std::vector<MeasuredRoute>& routes);

}  // namespace plait
