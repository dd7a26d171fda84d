#include "cli/sample_options.h"

#include <array>
#include <charconv>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/sample/draw.h"

namespace plait::cli {
namespace {

constexpr std::int64_t kStandardFanout = 10;
constexpr std::array kOptions{"--fanout",           "--batch",     "--prefetch",
                              "--checkpoint-steps", "--structure", "--cooperative"};

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

}  // namespace

void add_sample_options(CLI::App* command, SampleOptions& options) {
  SampledTraining& settings = options.settings;
  command->add_flag("--sampled", options.sampled,
                    "Train on mini-batches of sampled neighbours, not on the whole graph");
  command
      ->add_option_function<std::string>(
          kOptions[0],
          [&settings](const std::string& list) { settings.fanouts = parse_fanouts(list); },
          "Edges to sample per vertex: one number for all layers, or one per layer, from the "
          "examples on; -1: all edges")
      ->type_name("N,...")
      ->default_str(std::to_string(kStandardFanout));
  command
      ->add_option(kOptions[1], settings.batch,
                   "Training examples per rank and step, with --sampled")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  command
      ->add_option(kOptions[2], settings.prefetch,
                   "Batches to prepare ahead while one is computed, with --sampled")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command
      ->add_option(kOptions[3], settings.checkpoint_steps,
                   "Steps between checkpoints within an epoch, with --sampled; 0: none within")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  add_choice(command, kOptions[4], settings.structure, parse_structure, "auto",
             "Structure of the graph for --sampled on GPUs: a copy on each, or shared out over "
             "them; auto: a copy on each if all fits then");
  command->add_flag(kOptions[5], settings.cooperative,
                    "With --sampled on CPU ranks: sample the batches of a step together, so that "
                    "each vertex is computed once, by the rank that owns it (--partition)");
}

std::optional<SampledTraining> sampled_of(const CLI::App& command, const SampleOptions& options,
                                          int layers) {
  for (const char* option : kOptions)
    require<UsageError>(options.sampled || command.count(option) == 0,
                        "{} is for training on samples; give --sampled too", option);
  if (!options.sampled) return std::nullopt;
  SampledTraining settings = options.settings;
  if (settings.fanouts.empty()) settings.fanouts.push_back(kStandardFanout);
  if (settings.fanouts.size() == 1)
    settings.fanouts.resize(static_cast<std::size_t>(layers), settings.fanouts[0]);
  return settings;
}

json sampled_to_json(const std::optional<SampledTraining>& sampled) {
  if (!sampled) return json::object();
  return {{"sampled",
           {{"fanout", sampled->fanouts},
            {"batch", sampled->batch},
            {"prefetch", sampled->prefetch},
            {"structure", to_string(sampled->structure)},
            {"cooperative", sampled->cooperative}}}};
}

}  // namespace plait::cli
