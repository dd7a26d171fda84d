// plait study NAME [GRAPH]: repeats a comparison of the papers on this machine.
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "cli/options/get_options.h"
#include "cli/ranks.h"
#include "cli/study/output.h"
#include "plait/aggregate/shared_order.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/graph/crawl.h"
#include "plait/graph/dcsbm.h"
#include "plait/measure/study/engine.h"
#include "plait/plan/route.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

constexpr int kRanks = 2;  // of a study of several ranks, unless an option says otherwise

struct Options {
  std::string name, graph, plot;
  std::string like = "products";
  double scale = 0.05;
  bool list = false;
  StudyInput input;
  BenchEffort effort{.repetitions = 5};
  std::vector<StudyEntry> entries;
};

// Returns the names of known graphs.
std::vector<std::string_view> known_graphs() {
  std::vector<std::string_view> names;
  for (const DcsbmOptions& preset : dcsbm_presets()) names.push_back(preset.name);
  for (const CrawlGraph& preset : crawl_presets()) names.push_back(preset.name);
  return names;
}

bool is_crawl(const std::string& name) {
  return std::ranges::find(crawl_presets(), name, &CrawlGraph::name) != crawl_presets().end();
}

// Returns the preset at its scale, with features and labels only for studies that train.
Dataset make_like(const Options& o, bool trains, std::uint64_t seed) {
  const Phase phase("generating " + o.like, "generate");
  if (is_crawl(o.like)) {
    CrawlGraph crawl = crawl_like(o.like, o.scale);
    if (!trains) crawl.data = {};
    crawl.links.seed = seed;
    return generate_crawl_graph(crawl);
  }
  DcsbmOptions model = scaled(dcsbm_preset(o.like), o.scale);
  if (!trains) model.classes = 0, model.width = 0;
  model.seed = seed;
  return generate_dcsbm(model);
}

// Collective.
Dataset graph_of(World& world, const Options& o, bool trains, const Session& session) {
  if (!o.graph.empty()) return read_graph(world, o.graph, session);
  Dataset made = make_like(o, trains, session.seed);
  std::optional<Dataset> renumbered =
      shared_renumbering(world, made, session.reorder, session.seed, session.gpus > 0);
  return renumbered ? std::move(*renumbered) : std::move(made);
}

bool reads_graph(const Study& study) {
  return std::ranges::find(study.unread, std::string_view("graph")) == study.unread.end();
}

void run_on_rank(const Options& o, const Study& study, World& world, const Session& session) {
  StudySettings settings{.name = study.name,
                         .ratio = study.ratio,
                         .graph = {},
                         .seed = session.seed,
                         .effort = o.effort};
  if (reads_graph(study))
    settings.graph = [&] { return graph_of(world, o, study.trains, session); };
  const StudyResult result = run_study(world, o.entries, settings);
  if (world.rank() != 0) return;
  const StudyRun run{.study = study,
                     .result = result,
                     .ranks = ranks_of(world, session),
                     .rank_count = world.size(),
                     .device = device_name(session),
                     .partition = o.input.route.partition};
  if (!o.plot.empty()) {
    AtomicFile file(o.plot);
    file.write(plot_of(run));
    file.commit();
  }
  session.json ? print_json(to_json(run)) : print_text(run);
}

// Tells whether the seed does more than make the graph and a partition or an order by METIS.
bool draws(const Options& o, const Study& study) {
  return study.trains || std::ranges::any_of(o.entries, [](const StudyEntry& e) {
           return e.part == StudyPart::epoch || e.part == StudyPart::rows ||
                  e.options.route.partition == PartitionScheme::metis;
         });
}

// Refuses options that the study sets itself or has no use for.
void require_open(const Study& study, const CLI::App& command, const Options& o,
                  const Session& session) {
  for (const char* option : study.varies)
    require<UsageError>(command.count(option) == 0, "{} is set by study {} itself", option,
                        study.name);
  for (const char* option : study.unread)
    require<UsageError>(command.count(option) == 0, "study {} does not read {}; leave {} out",
                        study.name, o.graph.empty() ? option : "a graph",
                        o.graph.empty() ? "it" : printable(o.graph));
  const bool gets = std::ranges::any_of(
      o.entries, [](const StudyEntry& e) { return e.options.route.gets_on_gpus(); });
  require_get(command, gets, "this study does not use it");
  require<UsageError>(o.graph.empty() || command.count("--like") + command.count("--scale") == 0,
                      "--like and --scale make a graph, but {} is given", o.graph);
  require<UsageError>(command.count("--seed") == 0 || o.graph.empty() || draws(o, study) ||
                          session.reorder == ReorderMethod::metis,
                      "--seed does nothing in study {} of {}; it is read with --partition metis, "
                      "or --reorder metis, or where a graph is made",
                      study.name, printable(o.graph));
}

// Returns the number of ranks of the run, as far as it is known before ranks start.
int rank_count(const CLI::App& command, Session& session, const Study& study) {
  if (const auto world = valid_world_from_environment()) return world->size;
  const bool open = session.gpus == 0 && command.count("--ranks") == 0;
  if (open && study.least_ranks > 1) session.ranks = kRanks;
  return std::max(session.ranks, session.gpus);
}

// Before any rank starts.
void prepare(Options& o, const Study& study, const CLI::App& command, Session& session) {
  require<UsageError>(!study.needs_gpus || session.gpus > 0,
                      "study {} compares ways that need GPUs; add --gpus {}", study.name,
                      study.least_ranks);
  o.input.ranks = rank_count(command, session, study);
  require<UsageError>(o.input.ranks >= study.least_ranks,
                      "study {} needs {} ranks, as one rank moves no rows; add --{} {}", study.name,
                      study.least_ranks, session.gpus > 0 ? "gpus" : "ranks", study.least_ranks);
  const std::vector<std::string_view> known = known_graphs();
  require<UsageError>(!o.graph.empty() || std::ranges::find(known, o.like) != known.end(),
                      "--like {} is not one of {}", o.like, fmt::join(known, ", "));
  o.input.route.gpu = session.gpus > 0;
  o.entries = study.entries(o.input);
  require_open(study, command, o, session);
  for (const StudyEntry& entry : o.entries)
    if (entry.left_out.empty()) note_needs(session, resolved(entry.options.route));
}

// Tells whether an option means something for the list of all studies.
bool lists_with(const CLI::Option& option) {
  return option.check_lname("list") || option.check_lname("json") || option.check_lname("quiet");
}

void run(Options& o, Session& session) {
  const CLI::App& command = *session.command;
  if (o.list || o.name.empty()) {
    require<UsageError>(o.name.empty(), "--list lists all studies; leave out {}, or --list",
                        printable(o.name));
    for (const CLI::Option* option : command.get_options())
      require<UsageError>(option->count() == 0 || lists_with(*option),
                          "{} needs the name of a study", option->get_name());
    return session.json ? print_json(studies_to_json()) : print_studies();
  }
  const Study& study = study_of(o.name);
  prepare(o, study, command, session);
  on_ranks(session, [&](World& world) { run_on_rank(o, study, world, session); });
}

void add_graph_options(CLI::App* command, Options& o) {
  command->add_option("graph", o.graph, "Graph file; without it, a graph is made (--like)");
  show_words(
      command->add_option("--like", o.like, "Known graph to make one like")->capture_default_str(),
      fmt::format("{}", fmt::join(known_graphs(), ",")));
  command->add_option("--scale", o.scale, "Factor of the vertices and edges of --like")
      ->check(in_range(1e-6, 1.0))
      ->capture_default_str();
}

}  // namespace

void add_study(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "study", "Repeat a comparison of the papers on this machine",
                  [o, &session] { run(*o, session); });
  std::vector<std::string_view> names;
  for (const Study& study : studies()) names.push_back(study.name);
  show_words(command->add_option("name", o->name,
                                 "Study; without it, all are listed, also those that are scripts"),
             fmt::format("{}", fmt::join(names, ",")));
  add_graph_options(command, *o);
  add_reading_options(command, session);
  command->add_flag("--list", o->list, "List all studies, with the papers' figures");
  command
      ->add_option("--width,--dim", o->input.width,
                   "Width of x (features per row), or of hidden layers (sampling, epochs, memory)")
      ->check(in_range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--repetitions", o->effort.repetitions, "Repetitions of each measurement")
      ->check(in_range(1, 10000))
      ->capture_default_str();
  as_output(session, command->add_option("--plot", o->plot, "SVG file for a plot of the times"));
  add_choice(command, "--partition", o->input.route.partition, parse_partition_scheme, "edges",
             "Scheme that assigns vertices to ranks");
  add_rank_options(command, session, o->input.route.transport);
  command->add_option("--seed", session.seed, "Seed of the graph and of the partition (metis)")
      ->capture_default_str();
  add_get_options(command, o->input.route.get);
  add_timeout_options(command, session);
  group_options(command,
                {{"Study", {"--list", "--like", "--scale", "--width", "--repetitions", "--plot"}},
                 {"GPUs and ranks", {"--seed"}}});
  add_examples(
      command,
      "  plait study --list\n"
      "  plait study split --ranks 2 --like reddit --scale 0.01\n"
      "  plait study interleaving products.plait --gpus 2 --wpb 2 --plot interleaving.svg\n"
      "  plait study epochs --like products --scale 0.01 --width 64\n"
      "Wrong results end a study with exit code 3. See docs/studies.md.");
}

}  // namespace plait::cli
