#include "cli/sample_options.h"

#include "plait/base/error.h"
#include "plait/sample/draw.h"

namespace plait::cli {
namespace {

constexpr std::int64_t kStandardFanout = 10;

void check_fanout(std::int64_t fanout) {
  require<UsageError>(
      fanout == -1 || (fanout >= 1 && fanout <= static_cast<std::int64_t>(kMostFanout)),
      "--fanout: {} is no number of edges; use 1..{}, or -1 for all", fanout, kMostFanout);
}

}  // namespace

void add_sample_options(CLI::App* command, std::optional<SampledTraining>& sampled) {
  sampled = SampledTraining{};
  CLI::Option* const flag = command->add_flag(
      "--sampled", "Train on mini-batches of sampled neighbours instead of the whole graph");
  const auto option = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->needs(flag);
  };
  option("--fanout", sampled->fanouts,
         "Edges to sample per vertex: one number for all layers, or one per layer, from the "
         "examples on; -1: all edges")
      ->delimiter(',')
      ->default_str(std::to_string(kStandardFanout));
  option("--batch", sampled->batch, "Training examples per rank and step")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  option("--prefetch", sampled->prefetch, "Batches to prepare ahead while one is computed")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
}

void apply_fanouts(const CLI::App& command, std::optional<SampledTraining>& sampled, int layers) {
  if (command.count("--sampled") == 0) {
    sampled.reset();
    return;
  }
  std::vector<std::int64_t>& fanouts = sampled->fanouts;
  for (const std::int64_t fanout : fanouts) check_fanout(fanout);
  if (fanouts.empty()) fanouts.push_back(kStandardFanout);
  if (fanouts.size() == 1) fanouts.resize(static_cast<std::size_t>(layers), fanouts[0]);
}

json to_json(const std::optional<SampledTraining>& sampled) {
  if (!sampled) return json::object();
  return {{"sampled", {{"fanout", sampled->fanouts}, {"batch", sampled->batch}}}};
}

}  // namespace plait::cli
