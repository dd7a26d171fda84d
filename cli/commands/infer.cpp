// plait infer GRAPH: computes class scores of every vertex, or of every graph in a set of graphs.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cli/options/get_options.h"
#include "cli/ranks.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/io/npy.h"
#include "plait/nn/inference/infer_by_layers.h"
#include "plait/plan/route.h"

namespace plait::cli {
namespace {

struct Options {
  InferConfig infer;
  std::string graph, out;
  bool classes = false;
  std::uint64_t memory_limit = 0;  // 0: in memory
  std::string work;
};

// Works on the scores block by block of rows, to limit memory.
template <class Body>
void each_piece(const Scores& scores, Body body) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;
  for (std::uint64_t begin = 0; begin < scores.rows; begin += kPiece) {
    const std::uint64_t rows = std::min(kPiece, scores.rows - begin);
    const auto values = scores.values.span().subspan(begin * scores.classes, rows * scores.classes);
    const Scores piece{scores.task, rows, scores.classes, Array<float>(nullptr, values)};
    body(begin, piece.predicted());
  }
}

void write_result(const Options& o, const Session& session, const Dataset& dataset,
                  const Scores& scores) {
  const Timed timed("write");
  AtomicFile file(o.out);
  if (o.classes && scores.columns() == 1)
    file.write(npy_header(npy_type<std::int64_t>(), std::array{scores.rows}));
  else if (o.classes)
    file.write(npy_header(npy_type<std::int64_t>(), std::array{scores.rows, scores.columns()}));
  else
    write_npy<float>(file, std::array{scores.rows, scores.classes}, scores.values.span());
  LabelCounts counts(scores.task, dataset);
  each_piece(scores, [&](std::uint64_t begin, const std::vector<std::int64_t>& predicted) {
    if (o.classes) file.write(std::as_bytes(std::span(predicted)));
    counts.add(begin, predicted);
  });
  file.commit();
  const std::optional<LabelsMet> met = counts.met();
  if (session.json) {
    json result = {{"out", o.out},
                   {dataset.is_set_of_graphs() ? "graphs" : "vertices", scores.rows},
                   {"classes", scores.classes},
                   {"wire", to_string(o.infer.route.wire)},
                   {"device", device_name(session)}};
    if (o.infer.route.gets_on_gpus()) result["get"] = to_json(o.infer.route.get);
    if (met) result["metric"] = to_string(met->metric);
    if (met) result[met->metric == MetricKind::accuracy ? "accuracy" : "micro_f1"] = met->value;
    print_json(result);
  } else {
    fmt::print("{}: {} {}, {} classes", printable(o.out), scores.rows,
               dataset.is_set_of_graphs() ? "graphs" : "vertices", scores.classes);
    if (met && met->metric == MetricKind::accuracy)
      fmt::print(", {:.2f}% of the labels met", 100 * met->value);
    else if (met)
      fmt::print(", {} {:.4f}", to_string(met->metric), met->value);
    fmt::print("\n");
  }
}

void run_by_layers(const Options& o, const Session& session, World& world, const Dataset& dataset,
                   const Partition& partition) {
  const std::atomic<bool>& stop = stop_on_signals();
  const ByLayers by{.memory_limit = o.memory_limit,
                    .work = {o.work, o.out + ".layers-"},
                    .graph = o.graph,
                    .stop = &stop};
  infer_by_layers(world, dataset, partition, o.infer, by,
                  [&](const Scores& scores) { write_result(o, session, dataset, scores); });
}

void run_in_memory(const Options& o, const Session& session, World& world, const Dataset& dataset,
                   const Partition& partition) {
  try {
    const Scores scores = infer(world, dataset, partition, o.infer);
    if (world.rank() == 0) write_result(o, session, dataset, scores);
  } catch (const DoesNotFitError& error) {
    throw DoesNotFitError(fmt::format(
        "{}; --memory-limit BYTES works layer by layer through files instead", error.what()));
  }
}

void run(const Options& o, const Session& session, World& world) {
  require_wire_used(o.infer.route, world.size());
  const Dataset dataset = read_graph(world, o.graph, session);
  const Partition partition =
      shared_partition(world, dataset, o.infer.route.partition, session.seed);
  const auto way = o.memory_limit > 0 ? run_by_layers : run_in_memory;
  way(o, session, world, dataset, partition);
}

}  // namespace

void add_infer(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, session, "infer", "Compute scores with the weights of a checkpoint",
      [=, &session] { on_ranks(session, [&](World& world) { run(*o, session, world); }); });
  command->add_option("graph", o->graph, "Graph with features")->required();
  add_reading_options(command, session);
  command->add_option("--checkpoint", o->infer.checkpoint, "Checkpoint that plait train wrote")
      ->required();
  as_output(session, command->add_option("--out", o->out,
                                         "File of scores to write: .npy, vertices (or graphs) x "
                                         "classes"))
      ->required();
  command->add_flag(
      "--classes", o->classes,
      "Write the class with the highest score instead, or 0 or 1 per class for several labels");
  add_choice(command, "--normalize", o->infer.normalize, parse_normalize, "auto",
             "Normalisation of features, as in training");
  add_route_options(command, session, o->infer.route);
  add_timeout_options(command, session);
  add_profile_options(command, session);
  CLI::Option* const limit =
      command
          ->add_option(
              "--memory-limit", o->memory_limit,
              "Memory per rank in bytes, such as 512M or 2G, without mapped files. Work layer by "
              "layer through files; an interrupted run continues where it stopped")
          ->transform(as_bytes());
  for (const char* other : {"--gpus", "--strategy", "--transport", "--wire", "--exact"})
    limit->excludes(command->get_option(other));
  as_output_folder(
      session, command->add_option("--work", o->work,
                                   "Folder for the files of --memory-limit, which all hosts see. "
                                   "Without it: the name of --out with .layers- and six characters "
                                   "that nobody can guess"))
      ->needs(limit);
  group_options(command, {{"Files", {"--checkpoint", "--out", "--work"}},
                          {"Inference", {"--classes", "--normalize", "--memory-limit"}}});
  add_examples(command,
               "  plait infer cora.plait --checkpoint cora.safetensors --out scores.npy\n"
               "  plait infer products.plait --gpus 4 --checkpoint p.safetensors --out p.npy\n"
               "  plait infer papers.plait --memory-limit 8G --work /scratch/papers "
               "--checkpoint p.safetensors --out p.npy");
}

}  // namespace plait::cli
