#include "cli/study/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/study/entries.h"
#include "plait/base/error.h"

namespace plait::cli {
namespace {

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
                "torchrun --standalone --nproc-per-node N bench/nn/embedding_bags.py"},
};

}  // namespace

std::span<const Study> studies() {
  static const std::vector<Study> kAll = [] {
    std::vector<Study> all;
    for (const auto& of_paper :
         {studies_of_mgg(), studies_of_gnnadvisor(), studies_of_wholegraph()})
      all.insert(all.end(), of_paper.begin(), of_paper.end());
    return all;
  }();
  return kAll;
}

std::span<const StudyScript> study_scripts() { return kScripts; }

const Study& study_of(std::string_view name) {
  const auto* const script = std::ranges::find(kScripts, name, &StudyScript::name);
  if (script != kScripts.end())
    throw UsageError(fmt::format("study {} is a script; run {} in the folder of the sources", name,
                                 script->command));
  std::vector<std::string_view> names;
  for (const Study& study : studies()) {
    if (study.name == name) return study;
    names.push_back(study.name);
  }
  throw UsageError(fmt::format("study '{}' is not one of {}", name, fmt::join(names, ", ")));
}

}  // namespace plait::cli
