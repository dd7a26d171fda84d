// plait generate KIND: generates a graph; the same seed gives the same graph on every machine.
#include "plait/graph/generate.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/cli.h"
#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/graph/crawl.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/random_graphs.h"
#include "plait/graph/shapes.h"
#include "plait/graph/validate.h"
#include "plait/io/io.h"

namespace plait::cli {
namespace {

struct Options {
  std::string out;
  RmatOptions rmat, uniform{.a = 0.25, .b = 0.25, .c = 0.25};
  DcsbmOptions dcsbm;
  SmallWorldOptions small_world{.degree = 10};
  BipartiteOptions bipartite;
  CrawlGraph crawl;
  std::string like;
  double scale = 1;
  bool no_features = false;
  std::uint64_t rows = 100, columns = 100, vertices = 1000, children = 2, size = 30;
};

void write(const Options& o, const Session& session, const Dataset& dataset) {
  write_graph(dataset, o.out, session);
  if (session.json)
    print_json({{"out", o.out},
                {"vertices", dataset.vertices()},
                {"edges", dataset.edges()},
                {"feature_width", dataset.features.width},
                {"classes", dataset.classes},
                {"seed", session.seed}});
  else
    print_graph(o.out, dataset);
}

Dataset dataset_of(const std::string& name, AnyEdgeList edges) {
  Dataset dataset{.name = name, .graph = build_csr(std::move(edges))};
  dataset.symmetric = is_symmetric(dataset.graph);
  return dataset;
}

template <class Preset>
bool has(std::span<const Preset> presets, const std::string& name) {
  return std::ranges::find(presets, name, &Preset::name) != presets.end();
}

// Returns the scaled preset, overridden by the options of the command line.
DcsbmOptions block_model(const Options& o, const CLI::App& command, std::uint64_t seed) {
  DcsbmOptions options = o.dcsbm;
  require<UsageError>(!has(crawl_presets(), o.like),
                      "{0} is a crawl of the web; use plait generate crawl --like {0}", o.like);
  if (!o.like.empty()) {
    options = scaled(dcsbm_preset(o.like), o.scale);
    const auto given = [&](const char* name) { return command.count(name) > 0; };
    if (given("--vertices")) options.vertices = o.dcsbm.vertices;
    if (given("--edges")) options.edges = o.dcsbm.edges;
    // Communities of one vertex have no room for edges.
    constexpr std::uint64_t kVerticesEach = 4;
    options.communities =
        std::min(options.communities, std::max<std::uint64_t>(options.vertices / kVerticesEach, 1));
    if (given("--communities")) options.communities = o.dcsbm.communities;
    if (given("--leaving")) options.leaving = o.dcsbm.leaving;
    if (given("--exponent")) options.exponent = o.dcsbm.exponent;
    if (given("--cap")) options.cap = o.dcsbm.cap;
    if (given("--classes")) options.classes = o.dcsbm.classes;
    if (given("--width")) options.width = o.dcsbm.width;
    if (given("--noise")) options.noise = o.dcsbm.noise;
    if (given("--labels")) options.labels = o.dcsbm.labels;
  }
  if (o.no_features) options.width = 0;
  options.seed = seed;
  return options;
}

// Returns the scaled preset, overridden by the options of the command line.
CrawlGraph crawl(const Options& o, const CLI::App& command, std::uint64_t seed) {
  const auto given = [&](const char* name) { return command.count(name) > 0; };
  require<UsageError>(!has(dcsbm_presets(), o.like),
                      "{0} is no crawl of the web; use plait generate dcsbm --like {0}", o.like);
  require<UsageError>(!o.like.empty() || (given("--vertices") && given("--edges")),
                      "a crawl needs --vertices and --edges, or --like");
  CrawlGraph crawl = o.like.empty() ? o.crawl : crawl_like(o.like, o.scale);
  if (given("--vertices")) crawl.links.vertices = o.crawl.links.vertices;
  if (given("--edges")) crawl.links.edges = o.crawl.links.edges;
  if (given("--classes")) crawl.data.classes = o.crawl.data.classes;
  if (given("--width")) crawl.data.width = o.crawl.data.width;
  if (given("--noise")) crawl.data.noise = o.crawl.data.noise;
  for (const char* option : {"--noise", "--no-features"})
    require<UsageError>(crawl.data.width > 0 || !given(option),
                        "{} is about features, and this graph has none", option);
  const bool left_out = o.no_features || (crawl.data.classes == 0 && !given("--width"));
  if (left_out) crawl.data.width = 0;
  require<UsageError>(crawl.data.width == 0 || crawl.data.classes > 0,
                      "features follow classes: --width needs --classes above 0");
  crawl.links.seed = seed;
  return crawl;
}

class Kinds {
 public:
  Kinds(CLI::App* generate, Session& session) : generate_(generate), session_(session) {}

  // A kind whose options are a member of Options that has a seed, and numbers of vertices and
  // edges.
  template <class Random>
  CLI::App* add_random(const char* name, const char* description, Random Options::*options,
                       AnyEdgeList (*generate)(const Random&)) {
    CLI::App* kind = add(
        name, description,
        [=](const Options& o, const CLI::App&, std::uint64_t seed) {
          Random random = o.*options;
          random.seed = seed;
          return dataset_of(name, generate(random));
        },
        true);
    Random& random = (*o_).*options;
    kind->add_option("--vertices", random.vertices, "Number of vertices")->required();
    if constexpr (requires { random.edges; })
      kind->add_option("--edges", random.edges, "Number of directed edges")->required();
    return kind;
  }

  // `draws`: the kind has a seed.
  template <class Make>
  CLI::App* add(const char* name, const char* description, Make make, bool draws = false) {
    CLI::App* kind =
        add_command(*generate_, session_, name, description, [make, o = o_, &session = session_] {
          const Dataset made =
              timed("generate", [&] { return make(*o, *session.command, session.seed); });
          write(*o, session, made);
        });
    as_output(session_,
              kind->add_option("-o,--out", o_->out, "Graph to write: " + writable_endings()))
        ->required();
    if (draws)
      kind->add_option("--seed", session_.seed,
                       "Seed; the same seed gives the same graph on every machine")
          ->capture_default_str();
    add_profile_options(kind, session_);
    add_examples(kind, fmt::format("  plait generate {0} -o {0}.plait", name));
    return kind;
  }
  Options& options() { return *o_; }

 private:
  CLI::App* generate_;
  Session& session_;
  std::shared_ptr<Options> o_ = std::make_shared<Options>();
};

// Returns the papers' tables with the presets of each: "of MGG (OSDI 2023), table 1: it-2004; ...".
template <class Preset>
std::string tables_of(std::span<const Preset> presets) {
  std::string text;
  std::string_view table;
  for (const Preset& preset : presets) {
    if (preset.table == table)
      text += ", ";
    else
      text += fmt::format("{}of {}: ", table.empty() ? "" : "; ", preset.table);
    table = preset.table;
    text += preset.name;
  }
  return text;
}

// Adds --like, which takes the names of `presets`, and --scale.
template <class Preset>
void add_like(CLI::App* kind, Options& o, std::span<const Preset> presets) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  show_words(
      kind->add_option("--like", o.like,
                       "Graph of a paper whose counts, features and classes to start from: " +
                           tables_of(presets)),
      fmt::format("{}", fmt::join(names, ",")));
  kind->add_option("--scale", o.scale, "Factor of the vertices and edges of --like")
      ->check(in_range(1e-6, 1.0))
      ->needs("--like")
      ->capture_default_str();
}

void add_dcsbm(Kinds& kinds) {
  CLI::App* kind = kinds.add(
      "dcsbm", "Degree-corrected stochastic block model, with classes",
      [](const Options& o, const CLI::App& command, std::uint64_t seed) {
        return generate_dcsbm(block_model(o, command, seed));
      },
      true);
  DcsbmOptions& d = kinds.options().dcsbm;
  add_like(kind, kinds.options(), dcsbm_presets());
  const auto option = [&](const char* name, auto& value, const char* text) {
    kind->add_option(name, value, text)->capture_default_str();
  };
  option("--vertices", d.vertices, "Number of vertices");
  option("--edges", d.edges, "Number of directed edges; it must be even");
  option("--communities", d.communities, "Number of communities, of uneven sizes");
  option("--leaving", d.leaving, "Share of edges that leave their community");
  option("--exponent", d.exponent, "Exponent of the Pareto degrees");
  option("--cap", d.cap, "Largest expected degree; 0: chosen automatically");
  option("--classes", d.classes, "Number of classes; 0: no labels");
  option("--width", d.width, "Features per vertex; 0: none");
  option("--noise", d.noise, "Standard deviation of the features' noise");
  show_words(
      add_choice(
          kind, "--labels", d.labels, parse_dcsbm_labels, "vertices",
          "What has classes: vertices, vertices that may have several (sets), or communities, "
          "which are then a set of graphs (graphs; it needs --leaving 0)"),
      "vertices,sets,graphs");
  kind->add_flag("--no-features", kinds.options().no_features, "Leave features out");
  add_examples(kind,
               "  plait generate dcsbm -o communities.plait --seed 1\n"
               "  plait generate dcsbm --like reddit --scale 0.01 --no-features -o reddit.plait");
}

void add_random_kinds(Kinds& kinds) {
  Options& o = kinds.options();
  CLI::App* uniform = kinds.add_random("uniform", "Directed edges between any two vertices",
                                       &Options::uniform, generate_rmat);
  add_examples(uniform, "  plait generate uniform --vertices 10000 --edges 200000 -o u.plait");
  CLI::App* world =
      kinds.add_random("small-world", "Ring whose edges lead to near vertices, some of them to any",
                       &Options::small_world, generate_small_world);
  world->add_option("--degree", o.small_world.degree, "Edges of a vertex; even")
      ->capture_default_str();
  world->add_option("--rewired", o.small_world.rewired, "Share of edges that lead to any vertex")
      ->capture_default_str();
  add_examples(world, "  plait generate small-world --vertices 10000 -o world.plait");
  CLI::App* sides =
      kinds.add_random("bipartite", "Edges between the vertices of two sides, in both directions",
                       &Options::bipartite, generate_bipartite);
  sides->add_option("--left", o.bipartite.left, "Vertices of the first side")->required();
  add_examples(sides,
               "  plait generate bipartite --vertices 10000 --left 100 --edges 200000 -o b.plait");
}

void add_crawl(Kinds& kinds) {
  CLI::App* kind = kinds.add(
      "crawl", "Directed links as in a crawl of the web",
      [](const Options& o, const CLI::App& command, std::uint64_t seed) {
        return generate_crawl_graph(crawl(o, command, seed));
      },
      true);
  Options& o = kinds.options();
  CrawlGraph& c = o.crawl;
  kind->add_option("--vertices", c.links.vertices, "Number of vertices");
  kind->add_option("--edges", c.links.edges, "Number of directed edges");
  kind->add_option("--classes", c.data.classes,
                   "Number of classes, which follow sites; 0: no labels")
      ->capture_default_str();
  kind->add_option("--width", c.data.width, "Features per vertex; 0: none")->capture_default_str();
  kind->add_option("--noise", c.data.noise, "Standard deviation of the features' noise")
      ->capture_default_str();
  kind->add_flag("--no-features", o.no_features, "Leave features out");
  add_like(kind, o, crawl_presets());
  add_examples(kind,
               "  plait generate crawl --vertices 100000 --edges 1600000 -o crawl.plait\n"
               "  plait generate crawl --like it-2004 --scale 0.01 -o it.plait\n"
               "  plait generate crawl --like uk-domain --scale 0.01 --no-features -o uk.plait");
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  CLI::App* command = add_command(
      app, session, "generate", "Generate a graph: dcsbm, rmat, crawl, grid, cliques, ...", [&app] {
        require<UsageError>(!app.get_subcommand("generate")->get_subcommands().empty(),
                            "a kind of graph is missing; see plait generate --help");
      });
  command->require_subcommand(0, 1);
  Kinds kinds(command, session);
  Options& o = kinds.options();
  add_dcsbm(kinds);

  CLI::App* rmat = kinds.add_random("rmat", "Recursive matrix (Graph500): directed, heavy-tailed",
                                    &Options::rmat, generate_rmat);
  rmat->add_option("-a", o.rmat.a, "Share of the first quadrant")->capture_default_str();
  rmat->add_option("-b", o.rmat.b, "Share of the second quadrant")->capture_default_str();
  rmat->add_option("-c", o.rmat.c, "Share of the third quadrant")->capture_default_str();
  add_examples(rmat, "  plait generate rmat --vertices 65536 --edges 1000000 -o rmat.mtx");

  CLI::App* grid =
      kinds.add("grid", "Grid of rows x columns; inner vertices have four neighbours",
                [](const Options& options, const CLI::App&, std::uint64_t) {
                  return dataset_of("grid", generate_grid(options.rows, options.columns));
                });
  grid->add_option("--rows", o.rows, "Number of rows")->capture_default_str();
  grid->add_option("--columns", o.columns, "Number of columns")->capture_default_str();

  const auto add_sized = [&](const char* name, const char* text, auto make) {
    CLI::App* kind =
        kinds.add(name, text, [=](const Options& options, const CLI::App&, std::uint64_t) {
          return dataset_of(name, make(options));
        });
    kind->add_option("--vertices", o.vertices, "Number of vertices")->capture_default_str();
    return kind;
  };
  add_sized("star", "Star: vertex 0 is joined to all others",
            [](const Options& options) { return generate_star(options.vertices); });
  add_sized("ring", "Ring: each vertex is joined to the next and the previous one",
            [](const Options& options) { return generate_ring(options.vertices); });
  add_sized("path", "Path: each vertex is joined to the next one",
            [](const Options& options) { return generate_path(options.vertices); });
  add_sized(
      "tree", "Tree: each vertex is joined to its children",
      [](const Options& options) { return generate_tree(options.vertices, options.children); })
      ->add_option("--children", o.children, "Children of a vertex")
      ->capture_default_str();
  add_sized("cliques", "Cliques, each joined to the next one by an edge",
            [](const Options& options) { return generate_cliques(options.vertices, options.size); })
      ->add_option("--size", o.size, "Vertices of a clique")
      ->capture_default_str();
  add_random_kinds(kinds);
  add_crawl(kinds);

  add_examples(command,
               "  plait generate dcsbm -o communities.plait --seed 1\n"
               "  plait generate rmat --vertices 65536 --edges 1000000 -o rmat.mtx\n"
               "  plait generate grid --help");
}

}  // namespace plait::cli
