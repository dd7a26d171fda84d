#include <fmt/core.h>

#include <array>

#include "cli/study/entries.h"
#include "plait/base/memory.h"

namespace plait::cli {
namespace {

StudyEntries sampling(const StudyInput& in) {
  StudyEntries all{study_part("whole graph", in, StudyPart::training)};
  for (const std::int64_t fanout : {2, 5, 10, 20, -1}) {
    all.push_back(
        study_part(fanout < 0 ? "batches, all edges" : fmt::format("fan-outs {0}, {0}", fanout), in,
                   StudyPart::training));
    all.back().sampled = SampledTraining{.fanouts = {fanout, fanout}};
  }
  return all;
}

StudyEntries epochs(const StudyInput& in) {
  struct Model {
    const char* name;
    std::optional<double> claim;  // of table V, ogbn-products
  };
  StudyEntries all;
  for (const Model& model :
       {Model{"gcn", {}}, Model{"sage", 0.99 / 0.93}, Model{"gat", 3.28 / 0.93}}) {
    const std::string name = model.name, in_turn = name + ", in turn";
    const auto add = [&](std::string of_entry, StudyPart part, std::string of) {
      all.push_back(study_part(std::move(of_entry), in, part));
      all.back().of = std::move(of), all.back().model = name;
    };
    add(name, StudyPart::ahead, "");
    all.back().claim = model.claim;
    add(in_turn, StudyPart::in_turn, name);
    add(name + ": sampling", StudyPart::sampling, in_turn);
    add(name + ": gathering", StudyPart::gathering, in_turn);
    add(name + ": computing", StudyPart::computing, in_turn);
  }
  return all;
}

StudyEntry gather_by(std::string name, const StudyInput& in, GatherWay way, StudyIds ids) {
  StudyEntry made = study_part(std::move(name), in, StudyPart::rows);
  made.gather = way, made.ids = ids;
  return made;
}

StudyEntries gathers(const StudyInput& in) {
  return {gather_by("messages", in, GatherWay::messages, StudyIds::samples),
          claimed(gather_by("reads", in, GatherWay::reads, StudyIds::samples), 2)};
}

// Rates of the links that WholeGraph's text tells of its figure 8, in GB/s per A100.
StudyEntries row_bytes(const StudyInput& in) {
  constexpr double kLinkAt64 = 181, kLinkAbove = 230;
  StudyEntries all;
  for (std::uint64_t bytes = 4; bytes <= 4096; bytes *= 2) {
    all.push_back(
        gather_by(fmt::format("{} bytes", bytes), in, GatherWay::reads, StudyIds::random));
    all.back().width = bytes / sizeof(float);
    if (bytes == 64) all.back().figures = {{"paper_link_gb_s", kLinkAt64}};
    if (bytes > 64) all.back().figures = {{"paper_link_gb_s", kLinkAbove}};
  }
  return all;
}

// The paper's table has 8 GB to 128 GB over eight GPUs.
StudyEntries latency(const StudyInput& in) {
  struct Size {
    std::uint64_t bytes;
    double claim;
  };
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  const bool gpu = in.route.gpu;
  StudyEntries all;
  for (const Size size : {Size{gpu ? 8 * kGiB : 64 * kMiB, 20.8 / 1.35},
                          Size{gpu ? 16 * kGiB : 256 * kMiB, 29.6 / 1.37}}) {
    const std::string bytes = format_bytes(size.bytes);
    const std::string first = fmt::format("{}, {}", gpu ? "managed" : "own", bytes);
    const auto add = [&](std::string name, ChainMemory memory) {
      all.push_back(study_part(std::move(name), in, StudyPart::reads));
      all.back().chain = memory, all.back().bytes = size.bytes, all.back().of = first;
    };
    add(first, gpu ? ChainMemory::managed : ChainMemory::own);
    add(fmt::format("all ranks', {}", bytes), ChainMemory::ranks);
    if (!gpu) continue;
    all.back().claim = size.claim;
    add(fmt::format("own, {}", bytes), ChainMemory::own);
  }
  return all;
}

StudyEntries memory(const StudyInput& in) {
  StudyEntries all;
  for (const auto& [name, component] :
       {std::pair{in.route.gpu ? "structure" : "graph", StudyComponent::structure},
        std::pair{"features", StudyComponent::features},
        std::pair{"training", StudyComponent::training}}) {
    all.push_back(study_part(name, in, StudyPart::memory));
    all.back().component = component, all.back().model = "sage";
  }
  if (in.route.gpu) all[0].claim = 3.1 * 8 / 24;
  all[1].claim = 6.7 * 8 / 53;
  return all;
}

const std::array kWholeGraphStudies{
    Study{"sampling",
          "What do samples of neighbours cost in accuracy, and what is an epoch worth?",
          "MGG, table 3; WholeGraph, figure 7",
          "accuracy is 2.0 (reddit) and 4.9 points (proteins) lower with samples",
          false,
          1,
          StudyRatio::speedup,
          {},
          sampling,
          true},
    Study{"epochs",
          "What do sampling, gathering and computing take of an epoch on samples?",
          "WholeGraph, figure 9 and table V",
          "sampling and gathering take much less than computing; gat 3.5 times as long as gcn",
          false,
          1,
          StudyRatio::share,
          {},
          epochs,
          true},
    Study{"gathers",
          "What do reads of other ranks' rows gain over messages?",
          "WholeGraph, figure 10",
          "more than twice as fast as NCCL",
          false,
          2,
          StudyRatio::speedup,
          {},
          gathers,
          false,
          {"--partition", "--transport"}},
    Study{"row-bytes",
          "How does the rate of gathers depend on the bytes of a row?",
          "WholeGraph, figure 8",
          "it doubles with the bytes up to 64, and is the link's from 128 on",
          false,
          2,
          StudyRatio::speedup,
          {"--width"},
          row_bytes,
          false,
          {"graph", "--like", "--scale", "--partition", "--reorder", "--transport"}},
    Study{"latency",
          "How long does one read take, of unified memory and of other ranks' memory?",
          "WholeGraph, table I",
          "20.8 to 35.8 us of unified memory, 1.35 to 1.56 us of peers' memory",
          false,
          2,
          StudyRatio::speedup,
          {"--width"},
          latency,
          false,
          {"graph", "--like", "--scale", "--partition", "--reorder", "--transport", "--seed"}},
    Study{"memory",
          "How much memory do the parts of training on samples take?",
          "WholeGraph, table IV",
          "of 8 GPUs each: structure 3.1 GB, features 6.7 GB, training 20.4 GB",
          false,
          1,
          StudyRatio::planned,
          {},
          memory,
          true},
};

}  // namespace

std::span<const Study> studies_of_wholegraph() { return kWholeGraphStudies; }

}  // namespace plait::cli
