// plait convert IN OUT: from any format that is read to any that is written.
#include <fmt/core.h>

#include "cli/cli.h"
#include "plait/io/io.h"

namespace plait::cli {

void add_convert(CLI::App& app, Session& session) {
  struct Options {
    std::string in, out;
    BuildOptions build;
  };
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, session, "convert", "Read a graph in one format, write it in another", [=, &session] {
        const Dataset dataset =
            read_dataset(o->in, {.build = o->build, .progress = session.progress()});
        write_dataset(dataset, o->out);
        if (session.json)
          print_json({{"out", o->out},
                      {"vertices", dataset.vertices()},
                      {"edges", dataset.edges()},
                      {"symmetric", dataset.symmetric}});
        else
          fmt::print("{}: {} vertices, {} edges\n", o->out, dataset.vertices(), dataset.edges());
      });
  command->add_option("in", o->in, "Graph to read: .plait .mtx .npz .npy .txt .el .csv .tsv .edges")
      ->required();
  command->add_option("out", o->out, "Graph to write: .plait .mtx .npz .txt")->required();
  command->add_flag("--undirected", o->build.undirected,
                    "Add the reverse of every edge and drop duplicates");
  command->add_flag("--no-loops", o->build.drop_loops, "Drop edges from a vertex to itself");
  command->add_flag("--no-duplicates", o->build.drop_duplicates,
                    "Keep the first of parallel edges only");
  add_examples(command,
               "  plait convert cora.npz cora.plait --undirected --no-loops\n"
               "  plait convert web.mtx web.plait");
}

}  // namespace plait::cli
