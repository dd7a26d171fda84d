// Explains the settings of strategy get by the published models, for plait plan --explain.
#pragma once

#include <string>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/plan/get_tuning.h"

namespace plait::cli {

// Returns lines that compare the resources that the kernel takes (plan/get_resources.h) with MGG's
// and GNNAdvisor's models (plan/published_models.h), for the rank with the most groups and rows of
// `width` floats. Throws DoesNotFitError if the settings take a grid that no GPU has.
std::vector<std::string> explain_get(const AnyCsr& graph, const Partition& partition,
                                     const GetTuning& tuning, std::uint64_t width);

}  // namespace plait::cli
