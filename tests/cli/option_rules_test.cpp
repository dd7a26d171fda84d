// Every option either changes something that can be seen, or is refused by its name. Commands run
// in this process: starting a program for each of some hundred cases would take a minute.
#include "cli/options/option_rules.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "cli/options/command_tree.h"
#include "cli/options/get_options.h"
#include "plait/apps/app.h"
#include "plait/base/file.h"
#include "plait/graph/build.h"
#include "plait/io/io.h"
#include "plait/io/npy.h"
#include "plait/nn/config.h"
#include "tests/support/command_runs.h"

namespace plait::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// A set of rings of four vertices.
Dataset set_of_rings() {
  constexpr std::uint32_t kGraphs = 12, kSize = 4, kWidth = 3;
  EdgeList<std::uint32_t> edges{.vertices = kGraphs * kSize};
  Buffer<std::uint32_t> source(edges.vertices), target(edges.vertices), ids(edges.vertices);
  Buffer<float> x(edges.vertices * kWidth);
  for (std::uint32_t v = 0; v < edges.vertices; ++v) {
    source[v] = v, ids[v] = v / kSize;
    target[v] = v / kSize * kSize + (v + 1) % kSize;
    for (std::uint32_t j = 0; j < kWidth; ++j)
      x[v * kWidth + j] = static_cast<float>((v * 7 + j * 5 + ids[v] % 2) % 11);
  }
  edges.source = std::move(source), edges.target = std::move(target);
  Dataset set{.name = "rings", .graph = build_csr(AnyEdgeList(std::move(edges)))};
  set.features = {.rows = kGraphs * kSize, .width = kWidth, .f32 = std::move(x)};
  Buffer<std::int32_t> labels(kGraphs);
  for (std::uint32_t g = 0; g < kGraphs; ++g) labels[g] = static_cast<std::int32_t>(g % 2);
  set.labels = std::move(labels), set.classes = 2;
  set.graph_ids = std::move(ids), set.graphs = kGraphs;
  return set;
}

class Options : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    runs_ = std::make_unique<CommandRuns>();
    ok("generate dcsbm --vertices 90 --edges 900 --communities 3 --width 6 --classes 3 -o g.plait");
    ok("generate uniform --vertices 90 --edges 700 -o u.plait");
    ok("convert u.plait x.plait --features degree");
    ok("generate uniform --vertices 600 --edges 3000 -o m.plait");
    std::ofstream("l.txt") << "0 0\n0 1\n0 1\n1 2\n";
    std::ofstream("w.txt") << "0 1 2.5\n1 2 0.5\n2 3 4\n3 0 1\n0 2 7\n3 1 0.25\n";
    std::ofstream("c.txt") << "0 1 1\n1 2 9\n2 3 1\n";
    std::ofstream("s.txt") << "3\n1\n";
    write_dataset(set_of_rings(), "set.plait", {});
    AtomicFile x("x.npy");
    Buffer<float> values(90 * 16);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 1.0f / static_cast<float>(i % 37 + 3);
    write_npy<float>(x, std::array<std::uint64_t, 2>{90, 16}, values.span());
    x.commit();
    AtomicFile times("t.npy");
    Buffer<std::int64_t> years(90);
    for (std::size_t v = 0; v < years.size(); ++v) years[v] = static_cast<std::int64_t>(v % 7);
    write_npy<std::int64_t>(times, std::array<std::uint64_t, 1>{90}, years.span());
    times.commit();
    ok("train g.plait --epochs 3 --checkpoint w.safetensors --quiet");
  }
  static void TearDownTestSuite() { runs_.reset(); }

  static Ran ok(const std::string& line) {
    Ran ran = runs_->run(line);
    EXPECT_EQ(ran.code, 0) << line << ": " << ran.error;
    return ran;
  }
  static void refused(const std::string& line, const std::string& option) {
    const Ran ran = runs_->run(line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_THAT(ran.error, HasSubstr(option + " does nothing in this run; it is read ")) << line;
  }

  // Returns the leaves of a result by their paths, without those that differ from run to run.
  static std::map<std::string, std::string> leaves(const nlohmann::json& result) {
    std::map<std::string, std::string> all;
    const nlohmann::json flat = result.is_object() ? result.flatten() : nlohmann::json::object();
    for (const auto& [path, value] : flat.items()) all[path] = value.dump();
    return all;
  }
  static std::unique_ptr<CommandRuns> runs_;
};
std::unique_ptr<CommandRuns> Options::runs_;

// Words with which an option can be given, and the least that its command needs.
const std::map<std::string, std::string> kValues{{"--heads", "4"},
                                                 {"--output-heads", "2"},
                                                 {"--aggregation", "max"},
                                                 {"--hidden", "24"},
                                                 {"--norm", "layer"},
                                                 {"--activation", "elu"},
                                                 {"--pool", "sum"},
                                                 {"--strategy", "get"},
                                                 {"--strategies", "get"},
                                                 {"--optimise", "on"},
                                                 {"--dropout", "0.1"},
                                                 {"--checkpoint-every", "7"},
                                                 {"--fanout", "3"},
                                                 {"--checkpoint-steps", "2"},
                                                 {"--batch", "8"},
                                                 {"--prefetch", "0"},
                                                 {"--structure", "sharded"},
                                                 {"--vertex-times", "t.npy"},
                                                 {"--edge-times", "t.npy"},
                                                 {"--example-times", "t.npy"},
                                                 {"--transport", "cuda"},
                                                 {"--gpu-timeout", "9"},
                                                 {"--timeout", "9"},
                                                 {"--wire", "bf16"},
                                                 {"--trace", "t.json"},
                                                 {"--seed", "5"},
                                                 {"--width", "8"},
                                                 {"--noise", "0.5"},
                                                 {"--labels", "sets"},
                                                 {"--weight-decay", "0.1"},
                                                 {"--reorder", "degree"},
                                                 {"--ranks", "2"},
                                                 {"--layers", "3"},
                                                 {"--model", "gat"},
                                                 {"--partition", "hash"},
                                                 {"--ps", "8"},
                                                 {"--remote-ps", "8"},
                                                 {"--dist", "1"},
                                                 {"--wpb", "2"},
                                                 {"--get", "async"},
                                                 {"--interleave", "off"},
                                                 {"--read-by", "block"},
                                                 {"--read-with", "nvshmem"},
                                                 {"--dw", "8"},
                                                 {"--sums", "atomic"}};
const std::map<std::string, std::string> kLeast{
    {"train", "train g.plait --epochs 3"},
    {"bench model", "bench model g.plait --repetitions 1"},
    {"aggregate", "aggregate g.plait --features x.npy --out y.npy"},
    {"infer", "infer g.plait --checkpoint w.safetensors --out s.npy"},
    {"plan", "plan g.plait --width 8"},
    {"tune", "tune g.plait --ranks 2"},
    {"study", "study hidden-width g.plait"},
    {"doctor", "doctor"},
    {"walk", "walk u.plait"},
    {"bench aggregate", "bench aggregate g.plait"},
    {"bench messages", "bench messages g.plait"},
    {"bench zoo", "bench zoo star"},
    {"partition", "partition g.plait --partition edges"},
    {"reorder", "reorder g.plait r.plait"},
    {"generate dcsbm", "generate dcsbm -o d.plait"},
    {"generate crawl", "generate crawl -o d.plait --vertices 64 --edges 200"}};

// Returns the least that a command needs.
std::string least_of(const std::string& command) {
  const auto least = kLeast.find(command);
  if (least != kLeast.end()) return least->second;
  EXPECT_NE(std::ranges::find(apps(), command, &App::name), apps().end()) << command;
  return command + " u.plait";
}

std::string with_value(const std::string& option) {
  const auto value = kValues.find(option);
  return " " + option + (value == kValues.end() ? "" : " " + value->second);
}

// Returns words with which a need is not met; the options' defaults are none of the values.
std::string words_against(const Need& need) {
  switch (need.kind) {
    case Need::Kind::absent:
      return with_value(need.option);
    case Need::Kind::other:
      return fmt::format("{} {}={}", std::string(need.option) == "--fanout" ? " --sampled" : "",
                         need.option, need.values);
    case Need::Kind::any_of:
      return std::string(need.option) == "--strategy" && std::string(need.values) == "auto"
                 ? " --strategy bulk"
                 : "";
    default:
      return "";
  }
}

TEST_F(Options, EveryRuleRefusesByName) {
  std::size_t cases = 0;
  for (const OptionRule& rule : option_rules())
    for (const char* command : rule.commands)
      for (const std::string& option : rule.options) {
        std::string line = least_of(command);
        for (const Need& need : rule.needs) {
          if (need.kind == Need::Kind::dataset && std::string(need.values) == "one graph")
            line = "train set.plait --model gat --folds 3 --epochs 1";
          line += words_against(need);
        }
        refused(line + with_value(option), option);
        ++cases;
      }
  EXPECT_GT(cases, 120u);
}

// Options of a model's shape, and the kinds that read them.
TEST_F(Options, EveryModelReadsItsOptions) {
  struct Shape {
    const char *option, *kinds;
  };
  constexpr const char *kAll = "gcn mlp sage gin gat gatv2 transformer",
                       *kWithHeads = "gat gatv2 transformer";
  const std::vector<Shape> shapes{{"--heads 2", kWithHeads},     {"--output-heads 2", kWithHeads},
                                  {"--aggregation max", "sage"}, {"--layers 3", kAll},
                                  {"--hidden 24", kAll},         {"--norm layer", kAll},
                                  {"--residual", kAll},          {"--activation", kAll},
                                  {"--dropout 0.1", kAll}};
  for (const std::string& kind : words_of_line(kAll)) {
    const std::string base = "train g.plait --json --quiet --epochs 3 --model " + kind;
    const nlohmann::json loss = ok(base).result["loss"];
    EXPECT_EQ(loss, ok(base).result["loss"]);
    for (const auto& [option, kinds] : shapes) {
      std::string words = option;
      if (words == "--activation") words += kind.starts_with("gat") ? " relu" : " elu";
      const Words reading = words_of_line(kinds);
      if (std::ranges::find(reading, kind) == reading.end())
        refused(base + " " + words, words_of_line(words).front());
      else
        EXPECT_NE(loss, ok(base + " " + words).result["loss"]) << kind << " " << words;
    }
    for (const std::string strategy : {"bulk", "get", "replicate"}) {
      const std::string line = base + " --strategy " + strategy;
      if (kind == "mlp")
        refused(line, "--strategy");
      else
        EXPECT_EQ(ok(line).result["strategy"], strategy);
      for (const GetParameter& parameter : get_parameters())
        refused(base + (kind == "mlp" ? "" : " --strategy " + strategy) +
                    with_value(option_of(parameter)),
                option_of(parameter));
    }
  }
}

// A run, and options that each change what it prints or writes.
struct Effects {
  std::string base;
  std::vector<std::string> options;
};
std::vector<Effects> all_effects() {
  const std::string sampled = "train g.plait --epochs 3 --sampled --batch 16 --fanout 3";
  return {
      {"aggregate u.plait --features x.npy --out y.npy",
       {"--op mean", "--transposed", "--strategy get", "--partition hash", "--exact",
        "--reorder degree", "--explain"}},
      {"aggregate u.plait --features x.npy --out y.npy", {"--features t.npy"}},
      {"info g.plait", {"--communities"}},
      {"generate dcsbm --vertices 90 --edges 900 --communities 4 --no-features -o o.plait",
       {"--communities 3", "--leaving 0.9", "--exponent 3", "--cap 12", "--classes 0", "--seed 5"}},
      {"generate dcsbm -o o.plait --edges 900",
       {"--vertices 80", "--width 4", "--noise 9", "--no-features", "--labels sets"}},
      {"generate dcsbm -o o.plait --like cora", {"--edges 900", "--scale 0.1", "--like citeseer"}},
      {"generate rmat -o o.plait --vertices 64 --edges 200",
       {"-a 0.4", "-b 0.1", "-c 0.1", "--seed 5", "--edges 300"}},
      {"generate uniform -o o.plait --edges 200 --vertices 64", {"--seed 5", "--edges 300"}},
      {"generate small-world -o o.plait --vertices 64",
       {"--degree 4", "--rewired 0.9", "--seed 5"}},
      {"generate bipartite -o o.plait --vertices 64 --left 9 --edges 90",
       {"--seed 5", "--edges 80", "--left 8"}},
      {"generate crawl -o o.plait --vertices 64 --edges 200 --classes 3 --width 4",
       {"--seed 5", "--classes 2", "--width 5", "--noise 9"}},
      {"generate crawl -o o.plait --like it-2004 --scale 0.000001",
       {"--edges 200", "--vertices 80", "--no-features", "--like uk-domain", "--scale 0.000002"}},
      {"generate grid -o o.plait", {"--rows 3", "--columns 3"}},
      {"generate star -o o.plait", {"--vertices 9"}},
      {"generate ring -o o.plait", {"--vertices 9"}},
      {"generate path -o o.plait", {"--vertices 9"}},
      {"generate tree -o o.plait", {"--vertices 9", "--children 3"}},
      {"generate cliques -o o.plait", {"--vertices 90", "--size 9"}},
      {"convert l.txt o.plait",
       {"--undirected", "--no-loops", "--no-duplicates", "--features degree", "--out-format mtx"}},
      {"reorder g.plait o.plait --method degree", {"--undo"}},
      {"reorder m.plait o.plait --method metis", {"--seed 5"}},
      {"reorder g.plait o.plait", {"--method rcm"}},
      {"partition g.plait --ranks 3",
       {"--partition hash", "--reorder degree", "--width 9", "--ranks 2", "--predict 16",
        "--seed 5"}},
      {"partition g.plait", {"--gpus 2"}},
      {"plan g.plait --width 8 --ranks 3",
       {"--train", "--strategy replicate", "--partition hash", "--reorder degree", "--ranks 2",
        "--width 9", "--explain"}},
      {"plan g.plait --width 8", {"--gpus 2"}},
      {"plan g.plait --width 8 --train", {"--model gat", "--layers 3", "--exact"}},
      {"train g.plait --epochs 12",
       {"--model sage", "--residual", "--dropout 0.1", "--epochs 2", "--lr 0.5",
        "--weight-decay 0.5", "--metric micro-f1", "--normalize unit", "--folds 4", "--seed 5",
        "--precision bf16", "--exact", "--partition hash", "--sampled", "--optimise maybe",
        "--split 9", "--checkpoint c.safetensors", "--reorder degree", "--explain"}},
      {"train g.plait --epochs 12 --lr 0.5", {"--resume w.safetensors"}},
      {"train g.plait --epochs 200 --lr 0.3", {"--patience 1"}},
      {"train g.plait --epochs 3 --folds 4", {"--fold 2"}},
      {"train set.plait --epochs 3 --folds 3", {"--pool sum", "--layers 3"}},
      {sampled,
       {"--fanout 2", "--batch 5", "--prefetch 0", "--cooperative", "--with-replacement",
        "--vertex-times t.npy", "--by-weight"}},
      {sampled + " --vertex-times t.npy", {"--latest", "--example-times u.plait"}},
      {sampled + " --checkpoint c.safetensors", {"--checkpoint-steps 99999999999"}},
      {"infer g.plait --checkpoint w.safetensors --out s.npy",
       {"--checkpoint x.npy", "--classes", "--normalize unit", "--memory-limit 1K",
        "--reorder degree", "--exact"}},
      {"bench model g.plait --repetitions 1 --strategies bulk",
       {"--model sage", "--layers 3", "--hidden 24", "--norm layer", "--residual", "--width 9",
        "--classes 5", "--training", "--strategies get", "--partition hash"}},
      {"bench model g.plait --repetitions 1 --strategies bulk --training",
       {"--dropout 0.1", "--activation elu", "--seed 5"}},
      {"bench aggregate g.plait --ranks 1 --repetitions 1", {"--widths 9", "--strategies get"}},
      {"study hidden-width --repetitions 1 --scale 0.01 --like cora",
       {"--like citeseer", "--scale 0.02", "--partition hash", "--plot p.svg"}},
      {"study renumbering g.plait --repetitions 1", {"--width 9"}},
      {"bfs u.plait --out d.npy", {"--source 3", "--partition hash", "--verify"}},
      {"components u.plait --out d.npy", {"--partition hash", "--verify"}},
      {"components l.txt --out d.npy", {"--strong"}},
      {"sssp w.txt --out d.npy", {"--source 3", "--partition hash", "--verify"}},
      {"kcore u.plait --out d.npy", {"--partition hash", "--verify"}},
      {"triangles u.plait --out d.npy", {"--partition hash", "--verify"}},
      {"pagerank u.plait --out d.npy",
       {"--source 3", "--partition hash", "--verify", "--damping 0.5", "--tolerance 0.1",
        "--iterations 2"}},
      {"pagerank w.txt --out d.npy", {"--weighted"}},
      {"louvain u.plait --out d.npy", {"--resolution 3", "--partition hash", "--verify"}},
      {"louvain c.txt --out d.npy", {"--weighted"}},
      {"leiden u.plait --out d.npy", {"--resolution 3", "--partition hash", "--verify"}},
      {"leiden c.txt --out d.npy", {"--weighted"}},
      {"walk u.plait --out d.npy",
       {"--length 3", "--walks 2", "--p 0.1", "--q 9", "--restart 0.5", "--seed 5", "--verify",
        "--starts s.txt"}},
      {"walk w.txt --out d.npy", {"--weighted"}},
  };
}

// Returns the line with an option, which takes the place of the same option with another value.
std::string with_option(const std::string& line, const std::string& option) {
  Words words = words_of_line(line);
  const Words given = words_of_line(option);
  const auto before = std::ranges::find(words, given.front());
  if (before == words.end()) return line + " " + option;
  *(before + 1) = given.back();
  return fmt::format("{}", fmt::join(words, " "));
}

TEST_F(Options, EveryAcceptedOptionChangesSomething) {
  struct Seen {
    std::map<std::string, std::string> leaves;
    std::string error, files;
    int code = 0;
  };
  const auto see = [&](const std::string& line) {
    const Ran ran = runs_->run(line + " --json");
    return Seen{leaves(ran.result), ran.error, runs_->files(), ran.code};
  };
  for (const Effects& effects : all_effects()) {
    const Seen first = see(effects.base);
    Seen again = see(effects.base);
    EXPECT_EQ(first.code, 0) << effects.base << ": " << first.error;
    for (const std::string& option : effects.options) {
      const Seen found = see(with_option(effects.base, option));
      bool differs = found.code != first.code || found.error != first.error ||
                     found.files != again.files || found.leaves.size() != first.leaves.size();
      for (const auto& [path, value] : first.leaves) {
        const auto twice = again.leaves.find(path);
        const auto here = found.leaves.find(path);
        const bool steady = twice != again.leaves.end() && twice->second == value;
        differs = differs || here == found.leaves.end() || (steady && here->second != value);
      }
      EXPECT_TRUE(differs) << effects.base << " " << option;
      EXPECT_THAT(found.error, Not(HasSubstr("does nothing"))) << effects.base << " " << option;
      again = see(effects.base);  // beside the files that the option has made
    }
  }
}

// Options that say how to run and to print, or that need GPUs or several ranks: other tests follow
// them to where they act, by their files' names.
const std::set<std::string> kElsewhere{"--help",
                                       "--json",
                                       "--quiet",
                                       "--ranks",  // test_command_line.py
                                       "--profile",
                                       "--trace",    // test_profile.py
                                       "--timeout",  // test_lost_ranks.py
                                       "--gpus",
                                       "--gpu-timeout",
                                       "--transport",
                                       "--tf32",
                                       "--structure",  // tests/gpu
                                       "--recorded",
                                       "--unrecorded",
                                       "--wire",     // test_wire_types.py
                                       "--measure",  // test_doctor_measure.py
                                       "--repetitions",
                                       "--threads",  // times alone
                                       "--store",
                                       "--dtype",
                                       "--place",
                                       "--hot-rows",
                                       "--embeddings",  // test_partition_and_plan.py
                                       "--ids",
                                       "--samples",
                                       "--split",
                                       "--optimizer",         // test_partition_and_plan.py
                                       "--edge-times",        // test_samples_by_values.py
                                       "--checkpoint-every",  // test_checkpoints.py
                                       "--weights",
                                       "--no-weights",
                                       "--format",  // test_convert_command.py
                                       "--work",    // test_infer_command.py
                                       "--vertices",
                                       "--directed",
                                       "--first-line",  // test_graph_formats.py
                                       "--version",
                                       "--list",
                                       "--out"};

// The first words of a line that are no options and no files: "bench model".
std::string command_of_line(const std::string& line) {
  const Words words = words_of_line(line);
  const bool two = words[0] == "bench" || words[0] == "generate";
  return two ? words[0] + " " + words[1] : words[0];
}

TEST_F(Options, NoOptionIsForgotten) {
  // These change times alone, rows that cross between ranks, or what GPUs do.
  std::set<std::pair<std::string, std::string>> known{{"study", "--seed"},
                                                      {"study", "--reorder"},
                                                      {"infer", "--strategy"},
                                                      {"infer", "--partition"},
                                                      {"bench model", "--reorder"},
                                                      {"bench aggregate", "--reorder"},
                                                      {"bench aggregate", "--partition"},
                                                      {"bench messages", "--reorder"},
                                                      {"bench messages", "--partition"},
                                                      {"bench zoo", "--widths"},
                                                      {"bench zoo", "--scale"},
                                                      {"bench zoo", "--partition"}};
  for (const GetParameter& parameter : get_parameters())
    known.emplace("study", option_of(parameter));
  for (const App& app : apps()) known.emplace(app.name, "--reorder");
  for (const Effects& effects : all_effects())
    for (const std::string& option : effects.options)
      for (const std::string& word : words_of_line(option))
        known.emplace(command_of_line(effects.base), word);
  for (const OptionRule& rule : option_rules())
    for (const char* command : rule.commands)
      for (const std::string& option : rule.options) known.emplace(command, option);
  CLI::App app{"", "plait"};
  Session session;
  add_commands(app, session);
  std::function<void(const Command&)> look = [&](const Command& command) {
    for (const Argument& option : command.options) {
      const bool is_known = std::ranges::any_of(option.names, [&](const std::string& name) {
        return kElsewhere.contains(name) || known.contains({command.path, name});
      });
      EXPECT_TRUE(is_known || command.path == "tune")
          << command.path << " " << fmt::format("{}", fmt::join(option.names, ","));
    }
    for (const Command& below : command.subcommands) look(below);
  };
  look(command_tree(app));
}

}  // namespace
}  // namespace plait::cli
