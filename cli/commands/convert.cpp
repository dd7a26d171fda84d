// plait convert IN OUT: converts any format that is read to any format that is written.
#include "cli/cli.h"
#include "plait/graph/made_features.h"
#include "plait/io/attach.h"
#include "plait/io/io.h"

namespace plait::cli {
namespace {

struct Options {
  std::string in, out, out_format, features;
  ReadOptions read;
};

void run(const Options& o, const Session& session) {
  Dataset dataset = read_file(o.in, session, o.read);
  if (makes_features(o.features))
    dataset.features = make_features(o.features, dataset);
  else if (!o.features.empty())
    attach_features(dataset, o.features);
  write_graph(dataset, o.out, session, o.out_format);
  if (session.json)
    print_json({{"out", o.out},
                {"vertices", dataset.vertices()},
                {"edges", dataset.edges()},
                {"symmetric", dataset.symmetric}});
  else
    print_graph(o.out, dataset);
}

}  // namespace

void add_convert(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "convert", "Read a graph in one format and write it in another",
                  [=, &session] { run(*o, session); });
  command->add_option("in", o->in, "Graph to read: " + readable_endings() + ", or a folder of OGB")
      ->required();
  as_output(session, command->add_option("out", o->out, "Graph to write: " + writable_endings()))
      ->required();
  command
      ->add_option("--format", o->read.format,
                   "Format of IN if its name has another ending: mtx, graph, sg, ...")
      ->type_name("ENDING");
  command->add_option("--out-format", o->out_format, "Format of OUT if its name has another ending")
      ->type_name("ENDING");
  command->add_option("--features", o->features,
                      "Features, one row per vertex: .npy, or .npz with a SciPy matrix or x. "
                      "constant, degree and identity are computed from the graph");
  CLI::Option* const weights = command->add_option(
      "--weights", o->read.weights,
      "Weights, one number per edge in the order of IN: .npy, or .npz with edge_weight");
  command->add_flag("--no-weights", o->read.drop_weights, "Drop the weights of the edges")
      ->excludes(weights);
  add_reading_options(command, session);
  command
      ->add_flag("--undirected", o->read.build.undirected,
                 "Add the reverse of every edge and drop duplicates")
      ->excludes(command->get_option("--directed"));
  command->add_flag("--no-loops", o->read.build.drop_loops, "Drop edges from a vertex to itself");
  command->add_flag("--no-duplicates", o->read.build.drop_duplicates,
                    "Keep only the first of parallel edges");
  add_profile_options(command, session);
  add_examples(command,
               "  plait convert cora.npz cora.plait --undirected --no-loops\n"
               "  plait convert web.mtx web.plait\n"
               "  plait convert dataset/ogbn_products products.plait --undirected\n"
               "  plait convert proteins.npz proteins.plait --features degree\n"
               "  plait convert road.gr road.graph --undirected --no-loops");
}

}  // namespace plait::cli
