#include "cli/options/sample_options.h"

#include <charconv>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/io/times.h"
#include "plait/sample/draw.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/difference.h"

namespace plait::cli {
namespace {

constexpr std::int64_t kStandardFanout = 10;

// Returns the fan-outs of a list such as "15,10".
std::vector<std::int64_t> parse_fanouts(std::string_view list) {
  std::vector<std::int64_t> fanouts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    std::int64_t fanout = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), fanout);
    const bool whole = error == std::errc() && stop == word.data() + word.size();
    const bool known = fanout == -1 || (fanout >= 1 && fanout <= std::int64_t{kMostFanout});
    require<UsageError>(whole && known,
                        "--fanout: '{}' is no number of edges; use 1..{}, or -1 for all",
                        printable(word.substr(0, 32)), kMostFanout);
    fanouts.push_back(fanout);
    begin = end + 1;
  }
  return fanouts;
}

// The way in which times limit samples, as a word.
const char* times_word(const SampledTraining& sampled) {
  if (!sampled.times.any()) return "none";
  return sampled.latest ? "latest" : "uniform";
}

// Adds the options of values that decide which edges are drawn.
void add_value_options(CLI::App* command, SampleOptions& options) {
  SampledTraining& settings = options.settings;
  command->add_flag("--by-weight", settings.by_weight,
                    "With --sampled: draw edges with chances in proportion to their weights, which "
                    "drawn edges then do not count by again; edges of weight 0 are never drawn");
  command->add_flag("--with-replacement", settings.replace,
                    "With --sampled: draw as many edges per vertex as --fanout says, the same edge "
                    "perhaps several times");
  command->add_flag("--latest", settings.latest,
                    "With times: take the latest edges that are not later than the example, not "
                    "any of them. The time of an edge is the later of its own and its source's");
  const auto file = [&](const char* name, std::string& path, const std::string& text) {
    command->add_option(name, path, text);
  };
  file("--vertex-times", options.vertex_times,
       "File (.npy) of one integer per vertex, its time: with --sampled, no example reads vertices "
       "that are later than itself");
  file(
      "--edge-times", options.edge_times,
      "File (.npy) of one integer per edge, its time, by target and then by source, by the numbers "
      "that vertices had before any reordering: with --sampled, no example reads edges that are "
      "later than itself");
  file("--example-times", options.example_times,
       "File (.npy) of one integer per vertex, its time as an example; without it --vertex-times");
}

}  // namespace

void add_sample_options(CLI::App* command, SampleOptions& options) {
  SampledTraining& settings = options.settings;
  command->add_flag("--sampled", options.sampled,
                    "Train on mini-batches of sampled neighbours, not on the whole graph");
  command
      ->add_option_function<std::string>(
          "--fanout",
          [&settings](const std::string& list) { settings.fanouts = parse_fanouts(list); },
          "Edges to sample per vertex: one number for all layers, or one per layer, from the "
          "examples on; -1: all edges")
      ->type_name("N,...")
      ->default_str(std::to_string(kStandardFanout));
  command
      ->add_option("--batch", settings.batch, "Training examples per rank and step, with --sampled")
      ->capture_default_str()
      ->check(in_range(1, 1 << 30));
  command
      ->add_option(
          "--prefetch", settings.prefetch,
          "Batches to prepare ahead while one is computed, with --sampled; 0: prepare each "
          "in its turn, so that --profile tells what that takes")
      ->capture_default_str()
      ->check(in_range(0, 64));
  command
      ->add_option("--checkpoint-steps", settings.checkpoint_steps,
                   "Steps between checkpoints within an epoch, with --sampled; 0: none within")
      ->capture_default_str()
      ->check(in_range(0, 1 << 30));
  add_choice(command, "--structure", settings.structure, parse_structure, "auto",
             "Structure of the graph for --sampled on GPUs: a copy on each, or shared out over "
             "them; auto: a copy on each if all fits then");
  command->add_flag("--cooperative", settings.cooperative,
                    "With --sampled: sample the batches of a step together, so that each vertex is "
                    "computed once, by the rank that owns it (--partition)");
  add_value_options(command, options);
}

std::optional<SampledTraining> sampled_of(const SampleOptions& options, int layers) {
  if (!options.sampled) return std::nullopt;
  SampledTraining settings = options.settings;
  if (settings.fanouts.empty()) settings.fanouts.push_back(kStandardFanout);
  if (settings.fanouts.size() == 1)
    settings.fanouts.resize(static_cast<std::size_t>(layers), settings.fanouts[0]);
  return settings;
}

void read_sample_times(World& world, const Dataset& dataset, const SampleOptions& options,
                       std::optional<SampledTraining>& sampled) {
  if (!sampled) return;
  const auto read = [&](const std::string& path, auto reader, Array<std::int64_t>& times) {
    if (path.empty()) return;
    on_all_or_none(world, [&] { times = reader(path, dataset); });
    const std::uint64_t checksum = checksum_of(std::as_bytes(times.span()));
    require_equal(world, "ranks read different times", {{"the checksum", checksum_text(checksum)}});
  };
  read(options.vertex_times, read_vertex_times, sampled->times.vertices);
  read(options.edge_times, read_edge_times, sampled->times.edges);
  read(options.example_times, read_vertex_times, sampled->times.examples);
}

json sampled_to_json(const std::optional<SampledTraining>& sampled) {
  if (!sampled) return json::object();
  return {{"sampled",
           {{"fanout", sampled->fanouts},
            {"batch", sampled->batch},
            {"prefetch", sampled->prefetch},
            {"structure", to_string(sampled->structure)},
            {"cooperative", sampled->cooperative},
            {"by_weight", sampled->by_weight},
            {"with_replacement", sampled->replace},
            {"times", times_word(*sampled)}}}};
}

}  // namespace plait::cli
