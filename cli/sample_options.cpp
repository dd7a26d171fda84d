#include "cli/sample_options.h"

#include <charconv>

#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/sample/draw.h"

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
                        printable(word), kMostFanout);
    fanouts.push_back(fanout);
    begin = end + 1;
  }
  return fanouts;
}

}  // namespace

void add_sample_options(CLI::App* command, std::optional<SampledTraining>& sampled) {
  sampled = SampledTraining{};
  const std::string what = "Train on mini-batches of sampled neighbours, not on the whole graph";
  CLI::Option* const flag = command->add_flag("--sampled", what);
  const auto option = [&](const char* name, auto& value, const char* text) {
    return command->add_option(name, value, text)->needs(flag);
  };
  const auto parse = [&sampled](const std::string& list) {
    sampled->fanouts = parse_fanouts(list);
  };
  command
      ->add_option_function<std::string>(
          "--fanout", parse,
          "Edges to sample per vertex: one number for all layers, or one per layer, from the "
          "examples on; -1: all edges")
      ->needs(flag)
      ->type_name("N,...")
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
  if (fanouts.empty()) fanouts.push_back(kStandardFanout);
  if (fanouts.size() == 1) fanouts.resize(static_cast<std::size_t>(layers), fanouts[0]);
}

json sampled_to_json(const std::optional<SampledTraining>& sampled) {
  if (!sampled) return json::object();
  return {{"sampled", {{"fanout", sampled->fanouts}, {"batch", sampled->batch}}}};
}

}  // namespace plait::cli
