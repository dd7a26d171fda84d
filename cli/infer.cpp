// plait infer GRAPH: class scores of every vertex by trained weights.
#include <fmt/core.h>

#include <array>

#include "cli/cli.h"
#include "plait/base/file.h"
#include "plait/io/npy.h"
#include "plait/nn/train.h"

namespace plait::cli {
namespace {

struct Options {
  InferConfig infer;
  std::string graph, out;
  Spread spread;
  bool classes = false;
};

// Share of the labelled vertices whose highest score is their label; -1 without labels.
double accuracy(const Dataset& dataset, const std::vector<std::int64_t>& predicted) {
  if (dataset.labels.empty()) return -1;
  std::uint64_t known = 0, right = 0;
  for (std::uint64_t v = 0; v < dataset.vertices(); ++v) {
    if (dataset.labels[v] < 0) continue;
    ++known;
    right += predicted[v] == dataset.labels[v];
  }
  return known > 0 ? static_cast<double>(right) / static_cast<double>(known) : -1;
}

void run(const Options& o, const Session& session, World& world) {
  const Dataset dataset = read_graph(o.graph, session);
  const Partition partition = partition_for(world, dataset.graph, o.spread.scheme, session.seed);
  const Scores scores = infer(world, dataset, partition, o.infer);
  if (world.rank() != 0) return;
  const std::vector<std::int64_t> predicted = scores.best();
  AtomicFile file(o.out);
  if (o.classes)
    write_npy<std::int64_t>(file, std::array{scores.rows}, predicted);
  else
    write_npy<float>(file, std::array{scores.rows, scores.classes}, scores.values.span());
  file.commit();
  const double right = accuracy(dataset, predicted);
  if (session.json) {
    json result = {{"out", o.out},
                   {"vertices", scores.rows},
                   {"classes", scores.classes},
                   {"device", device_name(session)}};
    if (right >= 0) result["accuracy"] = right;
    print_json(result);
  } else {
    fmt::print("{}: {} vertices, {} classes", o.out, scores.rows, scores.classes);
    if (right >= 0) fmt::print(", {:.2f}% of the labels met", 100 * right);
    fmt::print("\n");
  }
}

}  // namespace

void add_infer(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, session, "infer", "Score every vertex with the weights of a checkpoint", [=, &session] {
        o->infer.strategy = o->spread.strategy;
        o->infer.transport = o->spread.transport;
        o->infer.gpu = session.gpus > 0;
        on_ranks(session, [&](World& world) { run(*o, session, world); });
      });
  command->add_option("graph", o->graph, "Graph with features")->required();
  command->add_option("--checkpoint", o->infer.checkpoint, "What plait train wrote")->required();
  command->add_option("--out", o->out, ".npy to write: vertices x classes scores")->required();
  command->add_flag("--classes", o->classes, "Write the class with the highest score instead");
  add_choice(command, "--normalize", o->infer.normalize, parse_normalize, "auto", "As in training");
  add_spread_options(command, session, o->spread);
  add_timeout_option(command, session);
  add_examples(command,
               "  plait infer cora.plait --checkpoint cora.safetensors --out scores.npy\n"
               "  plait infer products.plait --gpus 4 --checkpoint p.safetensors --out p.npy");
}

}  // namespace plait::cli
