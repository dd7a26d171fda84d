#include <fmt/core.h>

#include <array>

#include "cli/study/entries.h"

namespace plait::cli {
namespace {

StudyEntries preprocessing(const StudyInput& in) {
  StudyEntries all{study_part("epoch", in, StudyPart::epoch),
                   study_part("communities", in, StudyPart::ordering)};
  all.back().order = ReorderMethod::communities;
  for (const PartitionScheme scheme :
       {PartitionScheme::edges, PartitionScheme::clusters, PartitionScheme::metis}) {
    all.push_back(
        study_part(fmt::format("partition by {}", to_string(scheme)), in, StudyPart::partition));
    all.back().options.route.partition = scheme;
  }
  all.push_back(study_part("shards", in, StudyPart::placing));
  if (in.route.gpu) all.push_back(study_part("neighbour groups", in, StudyPart::first_step));
  return all;
}

StudyEntries renumbering(const StudyInput& in) {
  StudyEntries all;
  for (const ReorderMethod method : {ReorderMethod::none, ReorderMethod::degree, ReorderMethod::rcm,
                                     ReorderMethod::communities}) {
    all.push_back(study_part(std::string(to_string(method)), in, StudyPart::step));
    all.back().order = method;
  }
  all.back().claim = 1.74;
  all.push_back(study_part("communities: cost", in, StudyPart::ordering));
  all.back().order = ReorderMethod::communities;
  return all;
}

StudyEntries group_size_study(const StudyInput& in) {
  StudyEntries all;
  for (std::uint32_t ngs = 1; ngs <= GetTuning::kMostNeighbours; ngs *= 2)
    all.push_back(study_get(fmt::format("ngs {}", ngs), in, [&](GetTuning& t) { t.ps = ngs; }));
  for (std::uint32_t edges = 32; edges <= 8192; edges *= 4) {
    all.push_back(study_entry(fmt::format("pipelined, {} edges", edges), in, Strategy::pipelined));
    all.back().options.tuning.group_edges = edges;
  }
  all.push_back(study_entry("pipelined, as chosen", in, Strategy::pipelined));
  return all;
}

StudyEntries dimension_workers(const StudyInput& in) {
  StudyEntries all;
  for (std::uint32_t dw = 1; dw <= GetTuning::kMostWorkers; dw *= 2)
    all.push_back(study_get(fmt::format("dw {}", dw), in, [&](GetTuning& t) { t.dw = dw; }));
  all.push_back(study_get("dw by the width", in, [](GetTuning&) {}));
  return all;
}

StudyEntries atomics(const StudyInput& in) {
  return {study_get("atomic", in, [](GetTuning& t) { t.sums = GroupSums::atomic; }),
          study_get("ordered", in, [](GetTuning& t) { t.sums = GroupSums::ordered; }),
          study_by(in, Strategy::pipelined)};
}

StudyEntries hidden_width(const StudyInput& in) {
  StudyEntries all;
  for (std::uint64_t width = 16; width <= 512; width *= 2) {
    all.push_back(study_part(fmt::format("width {}", width), in, StudyPart::step));
    all.back().width = width;
  }
  return all;
}

const std::array kGnnAdvisorStudies{
    Study{"preprocessing",
          "How many epochs of training does each preparation take?",
          "GNNAdvisor, figure 13(b)",
          "renumbering takes 4.00% of the time of training",
          false,
          1,
          StudyRatio::share,
          {},
          preprocessing},
    Study{"renumbering",
          "What does an order of the vertices gain and cost?",
          "GNNAdvisor, figures 12(c) and 13(b)",
          "up to 1.74 times as fast for GCN",
          false,
          1,
          StudyRatio::speedup,
          {"--reorder"},
          renumbering},
    Study{"group-size",
          "How does the time depend on the neighbours in a group (ngs)?",
          "GNNAdvisor, figure 12(a)",
          "time falls up to ngs of about 32, then rises",
          true,
          1,
          StudyRatio::share,
          {"--ps", "--remote-ps"},
          group_size_study},
    Study{"dimension-workers",
          "How does the time depend on the lanes that share a row (dw)?",
          "GNNAdvisor, figure 12(b)",
          "time falls up to dw of 16, and is about the same at 32",
          true,
          1,
          StudyRatio::share,
          {"--dw", "--read-by"},
          dimension_workers},
    Study{"atomics",
          "What do sums of groups in order gain over atomics?",
          "GNNAdvisor, figure 12(d)",
          "block-level optimisation: 47.85% fewer atomics, 57.93% fewer bytes of memory",
          true,
          1,
          StudyRatio::speedup,
          {"--sums"},
          atomics},
    Study{"hidden-width",
          "How does the time grow with the width of rows?",
          "GNNAdvisor, figure 13(a)",
          "time grows with the width",
          false,
          1,
          StudyRatio::share,
          {"--width"},
          hidden_width},
};

}  // namespace

std::span<const Study> studies_of_gnnadvisor() { return kGnnAdvisorStudies; }

}  // namespace plait::cli
