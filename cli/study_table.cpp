#include "cli/study_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/kernels/cuda/get_module.h"
#include "plait/plan/choose.h"
#include "plait/plan/get_resources.h"

namespace plait::cli {
namespace {

using Entries = std::vector<StudyEntry>;

StudyEntry entry(std::string name, const StudyInput& in, Strategy strategy) {
  StudyEntry made{.name = std::move(name),
                  .options = {.route = in.route, .shards = {.transposed = false}},
                  .width = in.width};
  made.options.route.strategy = strategy;
  made.options.route = choose(made.options.route);
  return made;
}
StudyEntry by(const StudyInput& in, Strategy strategy) {
  return entry(std::string(to_string(strategy)), in, strategy);
}
// An entry of the strategy that is chosen by itself, which times this part.
StudyEntry part_of(std::string name, const StudyInput& in, StudyPart part) {
  StudyEntry made = entry(std::move(name), in, Strategy::automatic);
  made.part = part;
  return made;
}
template <class Set>
StudyEntry get_with(std::string name, const StudyInput& in, const Set& set) {
  StudyEntry made = entry(std::move(name), in, Strategy::get);
  set(made.options.route.get);
  return made;
}
StudyEntry claimed(StudyEntry made, double claim) {
  made.claim = claim;
  return made;
}
StudyEntry by_cusparse(std::string name, const StudyInput& in) {
  StudyEntry made = entry(std::move(name), in, Strategy::bulk);
  made.options.tuning.sum_by_cusparse = true;
  return made;
}

Entries neighbour_partitioning(const StudyInput& in) {
  return {get_with("none", in, [](GetTuning& t) { t.ps = GetTuning::kWholeRow; }),
          claimed(get_with("ps 16", in, [](GetTuning& t) { t.ps = 16; }), 2.26)};
}

Entries interleaving(const StudyInput& in) {
  return {get_with("off", in, [](GetTuning& t) { t.interleave = false; }),
          claimed(get_with("on", in, [](GetTuning& t) { t.interleave = true; }), 1.89)};
}

// Says why NVSHMEM's device functions cannot be measured; empty if they can.
std::string why_without_nvshmem(DeviceTransport transport) {
  if (transport != DeviceTransport::nvshmem)
    return "NVSHMEM's device functions need --transport nvshmem";
  return nvshmem_of_build().empty() ? "this build has none of NVSHMEM's device functions" : "";
}

Entries communication(const StudyInput& in) {
  const auto read = [&](const char* name, ReadBy threads, ReadWith with) {
    return get_with(name, in, [=](GetTuning& t) { t.read_by = threads, t.read_with = with; });
  };
  constexpr auto kAddresses = ReadWith::addresses, kNvshmem = ReadWith::nvshmem;
  Entries all{read("thread", ReadBy::thread, kAddresses),
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

Entries settings(const StudyInput& in) {
  Entries all;
  for (const std::uint32_t ps : {1u, 2u, 4u, 8u, 16u, 32u})
    for (const std::uint32_t wpb : {1u, 4u, 16u})
      for (const std::uint32_t dist : {1u, 4u, 16u}) {
        StudyEntry made = get_with(fmt::format("ps {} dist {} wpb {}", ps, dist, wpb), in,
                                   [&](GetTuning& t) { t.ps = ps, t.dist = dist, t.wpb = wpb; });
        made.row = fmt::format("ps {}", ps);
        made.column = fmt::format("{} / {}", dist, wpb);
        all.push_back(std::move(made));
      }
  return all;
}

Entries unified_memory(const StudyInput& in) {
  Entries all{entry("get on managed memory", in, Strategy::get), by(in, Strategy::paged),
              claimed(by(in, Strategy::get), 4.58), by(in, Strategy::pipelined)};
  all.front().rival = GetRival::managed_rows;
  return all;
}

Entries put(const StudyInput& in) {
  Entries all{entry("put", in, Strategy::get), by(in, Strategy::get), by(in, Strategy::pipelined)};
  all.front().rival = GetRival::pushed_rows;
  return all;
}

Entries collectives(const StudyInput& in) {
  if (!in.route.gpu)
    return {by(in, Strategy::bulk), by(in, Strategy::replicate), by(in, Strategy::get)};
  return {by_cusparse("bulk, cusparse", in), by(in, Strategy::bulk), by(in, Strategy::replicate),
          by(in, Strategy::get), by(in, Strategy::pipelined)};
}

Entries preprocessing(const StudyInput& in) {
  Entries all{part_of("epoch", in, StudyPart::epoch),
              part_of("communities", in, StudyPart::ordering)};
  all.back().order = ReorderMethod::communities;
  for (const PartitionScheme scheme :
       {PartitionScheme::edges, PartitionScheme::clusters, PartitionScheme::metis}) {
    all.push_back(
        part_of(fmt::format("partition by {}", to_string(scheme)), in, StudyPart::partition));
    all.back().options.route.partition = scheme;
  }
  all.push_back(part_of("shards", in, StudyPart::placing));
  if (in.route.gpu) all.push_back(part_of("neighbour groups", in, StudyPart::first_step));
  return all;
}

Entries split(const StudyInput& in) {
  Entries all{part_of("step", in, StudyPart::step)};
  if (in.route.gpu) {
    all.push_back(part_of("link alone", in, StudyPart::link));
    all.push_back(part_of("sum alone", in, StudyPart::sum));
  } else {
    all.push_back(part_of("waiting", in, StudyPart::waiting));
    all.push_back(part_of("fetching", in, StudyPart::fetching));
    all.push_back(part_of("summing", in, StudyPart::summing));
  }
  return all;
}

Entries renumbering(const StudyInput& in) {
  Entries all;
  for (const ReorderMethod method : {ReorderMethod::none, ReorderMethod::degree, ReorderMethod::rcm,
                                     ReorderMethod::communities}) {
    all.push_back(part_of(std::string(to_string(method)), in, StudyPart::step));
    all.back().order = method;
  }
  all.back().claim = 1.74;
  all.push_back(part_of("communities: cost", in, StudyPart::ordering));
  all.back().order = ReorderMethod::communities;
  return all;
}

Entries group_size_study(const StudyInput& in) {
  Entries all;
  for (std::uint32_t ngs = 1; ngs <= GetTuning::kMostNeighbours; ngs *= 2)
    all.push_back(get_with(fmt::format("ngs {}", ngs), in, [&](GetTuning& t) { t.ps = ngs; }));
  for (std::uint32_t edges = 32; edges <= 8192; edges *= 4) {
    all.push_back(entry(fmt::format("pipelined, {} edges", edges), in, Strategy::pipelined));
    all.back().options.tuning.group_edges = edges;
  }
  all.push_back(entry("pipelined, as chosen", in, Strategy::pipelined));
  return all;
}

Entries dimension_workers(const StudyInput& in) {
  Entries all;
  for (std::uint32_t dw = 1; dw <= GetTuning::kMostWorkers; dw *= 2)
    all.push_back(get_with(fmt::format("dw {}", dw), in, [&](GetTuning& t) { t.dw = dw; }));
  all.push_back(get_with("dw by the width", in, [](GetTuning&) {}));
  return all;
}

Entries atomics(const StudyInput& in) {
  return {get_with("atomic", in, [](GetTuning& t) { t.sums = GroupSums::atomic; }),
          get_with("ordered", in, [](GetTuning& t) { t.sums = GroupSums::ordered; }),
          by(in, Strategy::pipelined)};
}

Entries hidden_width(const StudyInput& in) {
  Entries all;
  for (std::uint64_t width = 16; width <= 512; width *= 2) {
    all.push_back(part_of(fmt::format("width {}", width), in, StudyPart::step));
    all.back().width = width;
  }
  return all;
}

Entries occupancy(const StudyInput& in) {
  constexpr GpuLimits kLimits;
  constexpr std::uint64_t kPiece = 16;  // bytes that a lane fetches at once from padded rows
  Entries all;
  for (const bool asynchronous : {true, false})
    for (const std::uint32_t wpb : {1u, 2u, 4u, 8u, 16u}) {
      StudyEntry made =
          get_with(fmt::format("wpb {}, {}", wpb, asynchronous ? "async" : "blocking"), in,
                   [&](GetTuning& t) { t.wpb = wpb, t.asynchronous = asynchronous; });
      const GetBlock block = get_block(made.options.route.get, kPiece);
      const std::uint64_t blocks = blocks_at_once(block, kLimits);
      made.figures = {{"blocks_at_once", static_cast<double>(blocks)},
                      {"occupancy", static_cast<double>(blocks * block.warps) /
                                        static_cast<double>(kLimits.warps)}};
      all.push_back(std::move(made));
    }
  return all;
}

Entries sampling(const StudyInput& in) {
  Entries all{part_of("whole graph", in, StudyPart::training)};
  for (const std::int64_t fanout : {2, 5, 10, 20, -1}) {
    all.push_back(
        part_of(fanout < 0 ? "batches, all edges" : fmt::format("fan-outs {0}, {0}", fanout), in,
                StudyPart::training));
    all.back().sampled = SampledTraining{.fanouts = {fanout, fanout}};
  }
  return all;
}

Entries epochs(const StudyInput& in) {
  struct Model {
    const char* name;
    std::optional<double> claim;  // of table V, ogbn-products
  };
  Entries all;
  for (const Model& model :
       {Model{"gcn", {}}, Model{"sage", 0.99 / 0.93}, Model{"gat", 3.28 / 0.93}}) {
    const std::string name = model.name, in_turn = name + ", in turn";
    const auto add = [&](std::string of_entry, StudyPart part, std::string of) {
      all.push_back(part_of(std::move(of_entry), in, part));
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
  StudyEntry made = part_of(std::move(name), in, StudyPart::rows);
  made.gather = way, made.ids = ids;
  return made;
}

Entries gathers(const StudyInput& in) {
  return {gather_by("messages", in, GatherWay::messages, StudyIds::samples),
          claimed(gather_by("reads", in, GatherWay::reads, StudyIds::samples), 2)};
}

// Rates of the links that WholeGraph's text tells of its figure 8, in GB/s per A100.
Entries row_bytes(const StudyInput& in) {
  constexpr double kLinkAt64 = 181, kLinkAbove = 230;
  Entries all;
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
Entries latency(const StudyInput& in) {
  struct Size {
    std::uint64_t bytes;
    double claim;
  };
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  const bool gpu = in.route.gpu;
  Entries all;
  for (const Size size : {Size{gpu ? 8 * kGiB : 64 * kMiB, 20.8 / 1.35},
                          Size{gpu ? 16 * kGiB : 256 * kMiB, 29.6 / 1.37}}) {
    const std::string bytes = format_bytes(size.bytes);
    const std::string first = fmt::format("{}, {}", gpu ? "managed" : "own", bytes);
    const auto add = [&](std::string name, ChainMemory memory) {
      all.push_back(part_of(std::move(name), in, StudyPart::reads));
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

Entries memory(const StudyInput& in) {
  Entries all;
  for (const auto& [name, component] :
       {std::pair{in.route.gpu ? "structure" : "graph", StudyComponent::structure},
        std::pair{"features", StudyComponent::features},
        std::pair{"training", StudyComponent::training}}) {
    all.push_back(part_of(name, in, StudyPart::memory));
    all.back().component = component, all.back().model = "sage";
  }
  if (in.route.gpu) all[0].claim = 3.1 * 8 / 24;
  all[1].claim = 6.7 * 8 / 53;
  return all;
}

const std::array kStudies{
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
    Study{"preprocessing",
          "How many epochs of training does each preparation take?",
          "GNNAdvisor, figure 13(b)",
          "renumbering takes 4.00% of the time of training",
          false,
          1,
          StudyRatio::share,
          {},
          preprocessing},
    Study{"split",
          "Which share of a step do communication and computation take?",
          "MGG, section 3",
          "the pipeline hides the shorter of both",
          false,
          2,
          StudyRatio::share,
          {},
          split},
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
    Study{"occupancy",
          "How many blocks fit on a multiprocessor, and what are they worth?",
          "MGG, section 7.1",
          "occupancy is 39.20% higher than of unified memory",
          true,
          2,
          StudyRatio::speedup,
          {"--wpb", "--get"},
          occupancy},
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
          gathers},
    Study{"row-bytes",
          "How does the rate of gathers depend on the bytes of a row?",
          "WholeGraph, figure 8",
          "it doubles with the bytes up to 64, and is the link's from 128 on",
          false,
          2,
          StudyRatio::speedup,
          {"--width"},
          row_bytes},
    Study{"latency",
          "How long does one read take, of unified memory and of other ranks' memory?",
          "WholeGraph, table I",
          "20.8 to 35.8 us of unified memory, 1.35 to 1.56 us of peers' memory",
          false,
          2,
          StudyRatio::speedup,
          {"--width"},
          latency},
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

constexpr std::array kScripts{
    StudyScript{"accuracy", "Is training on samples as accurate as by PyTorch Geometric?",
                "WholeGraph, figure 7 and table III",
                "validation accuracy by epoch is that of DGL, and the last one that of PyG",
                "PYTHONPATH=build/python python bench/nn/sampled_accuracy.py GRAPH.plait"},
    StudyScript{"layers", "What do Plait's layers gain over PyTorch Geometric's on Plait's store?",
                "WholeGraph, figure 11", "an epoch is up to 2.43 times as fast",
                "PYTHONPATH=build/python python bench/nn/store_layers.py GRAPH.plait"},
    StudyScript{"busy", "Which share of the time is a GPU busy?", "WholeGraph, figure 12",
                "95% and more", "scripts/gpu-busy GPUS"},
    StudyScript{"scaling", "How does an epoch on samples scale with ranks or GPUs?",
                "WholeGraph, figure 13", "close to linear, over nodes of eight GPUs",
                "python bench/nn/scaling.py [GRAPH.plait] --gpus 1 2 4"},
    StudyScript{"embeddings", "What do sharded embedding tables gain over collectives?",
                "MGG, table 4", "lookups are 2.64 times as fast as by NCCL",
                "torchrun --nproc-per-node N bench/nn/embedding_bags.py"},
};

constexpr std::array<std::string_view, 20> kParts{
    "step",      "link",      "sum",        "waiting", "fetching",    "summing", "ordering",
    "partition", "placing",   "first step", "epoch",   "training",    "ahead",   "in turn",
    "sampling",  "gathering", "computing",  "rows",    "1,000 reads", "memory"};

}  // namespace

std::string_view to_string(StudyPart part) { return kParts[static_cast<std::size_t>(part)]; }

std::span<const Study> studies() { return kStudies; }
std::span<const StudyScript> study_scripts() { return kScripts; }

const Study& study_of(std::string_view name) {
  const auto* const script = std::ranges::find(kScripts, name, &StudyScript::name);
  if (script != kScripts.end())
    throw UsageError(fmt::format("study {} is a script; run {} in the folder of the sources", name,
                                 script->command));
  const auto* const found = std::ranges::find(kStudies, name, &Study::name);
  require<UsageError>(found != kStudies.end(), "study '{}' is not one of {}", name,
                      fmt::join(kStudies | std::views::transform(&Study::name), ", "));
  return *found;
}

}  // namespace plait::cli
