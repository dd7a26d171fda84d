#include <fmt/core.h>

#include <array>

#include "cli/study/entries.h"
#include "plait/kernels/cuda/get_module.h"

namespace plait::cli {
namespace {

StudyEntry by_cusparse(std::string name, const StudyInput& in) {
  StudyEntry made = study_entry(std::move(name), in, Strategy::bulk);
  made.options.tuning.sum_by_cusparse = true;
  return made;
}

StudyEntries neighbour_partitioning(const StudyInput& in) {
  return {study_get("none", in, [](GetTuning& t) { t.ps = GetTuning::kWholeRow; }),
          claimed(study_get("ps 16", in, [](GetTuning& t) { t.ps = 16; }), 2.26)};
}

StudyEntries interleaving(const StudyInput& in) {
  return {study_get("off", in, [](GetTuning& t) { t.interleave = false; }),
          claimed(study_get("on", in, [](GetTuning& t) { t.interleave = true; }), 1.89)};
}

// Says why NVSHMEM's device functions cannot be measured; empty if they can.
std::string why_without_nvshmem(DeviceTransport transport) {
  if (transport != DeviceTransport::nvshmem)
    return "NVSHMEM's device functions need --transport nvshmem";
  return nvshmem_of_build().empty() ? "this build has none of NVSHMEM's device functions" : "";
}

StudyEntries communication(const StudyInput& in) {
  const auto read = [&](const char* name, ReadBy threads, ReadWith with) {
    return study_get(name, in, [=](GetTuning& t) { t.read_by = threads, t.read_with = with; });
  };
  constexpr auto kAddresses = ReadWith::addresses, kNvshmem = ReadWith::nvshmem;
  StudyEntries all{read("thread", ReadBy::thread, kAddresses),
                   read("block", ReadBy::block, kAddresses),
                   read("warp", ReadBy::warp, kAddresses),
                   read("nvshmem thread", ReadBy::thread, kNvshmem),
                   read("nvshmem block", ReadBy::block, kNvshmem),
                   read("nvshmem warp", ReadBy::warp, kNvshmem)};
  for (StudyEntry& one : all)
    if (one.options.route.get.read_with == kNvshmem)
      one.left_out = why_without_nvshmem(in.route.transport);
  return all;
}

StudyEntries settings(const StudyInput& in) {
  StudyEntries all;
  for (const std::uint32_t ps : {1u, 2u, 4u, 8u, 16u, 32u})
    for (const std::uint32_t wpb : {1u, 4u, 16u})
      for (const std::uint32_t dist : {1u, 4u, 16u}) {
        StudyEntry made = study_get(fmt::format("ps {} dist {} wpb {}", ps, dist, wpb), in,
                                    [&](GetTuning& t) { t.ps = ps, t.dist = dist, t.wpb = wpb; });
        made.row = fmt::format("ps {}", ps);
        made.column = fmt::format("{} / {}", dist, wpb);
        all.push_back(std::move(made));
      }
  return all;
}

StudyEntries unified_memory(const StudyInput& in) {
  StudyEntries all{study_entry("get on managed memory", in, Strategy::get),
                   study_by(in, Strategy::paged), claimed(study_by(in, Strategy::get), 4.58),
                   study_by(in, Strategy::pipelined)};
  all.front().rival = GetRival::managed_rows;
  return all;
}

StudyEntries put(const StudyInput& in) {
  StudyEntries all{study_entry("put", in, Strategy::get), study_by(in, Strategy::get),
                   study_by(in, Strategy::pipelined)};
  all.front().rival = GetRival::pushed_rows;
  return all;
}

StudyEntries collectives(const StudyInput& in) {
  if (!in.route.gpu)
    return {study_by(in, Strategy::bulk), study_by(in, Strategy::replicate),
            study_by(in, Strategy::get)};
  return {by_cusparse("bulk, cusparse", in), study_by(in, Strategy::bulk),
          study_by(in, Strategy::replicate), study_by(in, Strategy::get),
          study_by(in, Strategy::pipelined)};
}

StudyEntries split(const StudyInput& in) {
  StudyEntries all{study_part("step", in, StudyPart::step)};
  if (in.route.gpu) {
    all.push_back(study_part("link alone", in, StudyPart::link));
    all.push_back(study_part("sum alone", in, StudyPart::sum));
  } else {
    all.push_back(study_part("waiting", in, StudyPart::waiting));
    all.push_back(study_part("fetching", in, StudyPart::fetching));
    all.push_back(study_part("summing", in, StudyPart::summing));
  }
  return all;
}

StudyEntries occupancy(const StudyInput& in) {
  StudyEntries all;
  for (const bool asynchronous : {true, false})
    for (const std::uint32_t wpb : {1u, 2u, 4u, 8u, 16u}) {
      all.push_back(study_get(fmt::format("wpb {}, {}", wpb, asynchronous ? "async" : "blocking"),
                              in,
                              [&](GetTuning& t) { t.wpb = wpb, t.asynchronous = asynchronous; }));
      all.back().occupancy = true;
    }
  return all;
}

const std::array kMggStudies{
    Study{"neighbour-partitioning",
          "What do neighbour groups of 16 gain over whole rows?",
          "MGG, figure 10(a)",
          "2.26 times as fast with groups",
          true,
          2,
          StudyRatio::speedup,
          {"--ps", "--remote-ps"},
          neighbour_partitioning},
    Study{"interleaving",
          "What does a warp gain by local and remote groups in turns?",
          "MGG, figure 10(b)",
          "1.89 times as fast with interleaving",
          true,
          2,
          StudyRatio::speedup,
          {"--interleave"},
          interleaving},
    Study{"communication",
          "Which threads should read a remote row together?",
          "MGG, figure 10(c)",
          "a warp is the fastest",
          true,
          2,
          StudyRatio::speedup,
          {"--read-by", "--read-with"},
          communication},
    Study{"settings",
          "Which ps, dist and wpb are the fastest?",
          "MGG, figure 11",
          "up to 68% less time than the initial settings",
          true,
          2,
          StudyRatio::speedup,
          {"--ps", "--remote-ps", "--dist", "--wpb"},
          settings},
    Study{"uvm",
          "What do reads of remote rows gain over pages of unified memory?",
          "MGG, figure 8",
          "4.58 times as fast for GCN",
          true,
          2,
          StudyRatio::speedup,
          {},
          unified_memory},
    Study{"put",
          "What does reading rows gain over rows that their owners push, one per remote edge?",
          "MGG, first version (arXiv), section 3.3",
          "GET spares the reader the checks for rows that have arrived",
          true,
          2,
          StudyRatio::speedup,
          {},
          put},
    Study{"nccl",
          "What do reads and pushes gain over messages, whose rows come before the sum?",
          "MGG, table 4",
          "2.64 times as fast as NCCL, for lookups of a recommendation model",
          false,
          2,
          StudyRatio::speedup,
          {},
          collectives},
    Study{"split",
          "Which share of a step do communication and computation take?",
          "MGG, section 3",
          "the pipeline hides the shorter of both",
          false,
          2,
          StudyRatio::share,
          {},
          split},
    Study{"occupancy",
          "How many blocks fit on a multiprocessor, and what are they worth?",
          "MGG, section 7.1",
          "occupancy is 39.20% higher than of unified memory",
          true,
          2,
          StudyRatio::speedup,
          {"--wpb", "--get", "--read-with"},
          occupancy},
};

}  // namespace

std::span<const Study> studies_of_mgg() { return kMggStudies; }

}  // namespace plait::cli
