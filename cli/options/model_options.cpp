#include "cli/options/model_options.h"

#include "cli/options/option_rules.h"
#include "plait/base/limits.h"
#include "plait/nn/config.h"

namespace plait::cli {
namespace {

// A kind of model with the trait.
Need kind_with(KindTrait trait) {
  std::string kinds = model_kinds(trait);
  std::erase(kinds, ' ');
  return needs::any_of("--model", kinds);
}

// A model of a set of graphs has a last layer that is like the others.
std::vector<OptionRule> model_rules() {
  using namespace needs;
  const std::vector<const char*> models{"train", "bench model"};
  return {
      {models, {"--heads", "--output-heads"}, {kind_with(KindTrait::heads)}},
      {models, {"--aggregation"}, {kind_with(KindTrait::aggregation)}},
      {models, {"--hidden", "--heads"}, {other("--layers", "1"), set_of_graphs()}},
      {models,
       {"--norm", "--activation"},
       {other("--layers", "1"), kind_with(KindTrait::inner_norm), set_of_graphs()}},
      {models, {"--output-heads"}, {one_graph()}},
      {{"train"}, {"--pool"}, {set_of_graphs()}},
      {{"train"},
       {"--strategy", "--optimise", "--explain", "--fanout", "--cooperative", "--by-weight",
        "--with-replacement", "--latest", "--vertex-times", "--edge-times", "--example-times",
        "--structure"},
       {other("--model", "mlp")}},
      // The weights of the last layer decay in few kinds.
      {{"train"},
       {"--weight-decay"},
       {other("--layers", "1"), kind_with(KindTrait::decay_last), set_of_graphs()}},
      {{"bench model"}, {"--strategies"}, {other("--model", "mlp")}},
      {{"bench model"}, {"--dropout"}, {given("--training")}},
  };
}

}  // namespace

void add_model_options(CLI::App* command, ModelConfig& model) {
  add_option_rules(model_rules);
  const auto option = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  const auto by_kind = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->default_str("by model");
  };
  show_words(option("--model", model.kind, "Kind of model; mlp does not use the graph"),
             model_kinds());
  by_kind("--layers", model.layers, "Number of layers")->check(in_range(1, kMostLayers));
  by_kind("--hidden", model.hidden, "Features per vertex between layers")
      ->check(in_range(1, 65536));
  const std::string with_heads = " (" + model_kinds(KindTrait::heads) + ")",
                    with_aggregation = " (" + model_kinds(KindTrait::aggregation) + ")";
  by_kind("--heads", model.heads, "Attention heads, which share the hidden features" + with_heads)
      ->check(in_range(1, 1024));
  option("--output-heads", model.output_heads, "Attention heads of the last layer" + with_heads)
      ->check(in_range(1, 1024));
  option("--aggregation", model.aggregation, "Aggregation of neighbours" + with_aggregation)
      ->check(CLI::IsMember({"mean", "max", "min"}));
  add_choice(command, "--norm", model.norm, parse_norm, "none",
             "Normalisation between layers: batch over all vertices, layer within each row")
      ->default_str("by model");
  command->add_flag("--residual", model.residual, "Add each layer's input to its output");
  by_kind("--activation", model.activation, "Activation between layers")
      ->check(CLI::IsMember({"relu", "elu"}));
  by_kind("--dropout", model.dropout, "Share of each layer's input, and of attention, to drop")
      ->check(in_range(0.0, 0.99));
}

void apply_model_defaults(const CLI::App& command, TrainConfig& train) {
  const ModelDefaults& defaults = model_defaults(train.model.kind);
  const auto apply = [&](const char* name, auto& value, const auto& standard) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0) value = standard;
  };
  apply("--layers", train.model.layers, defaults.layers);
  apply("--hidden", train.model.hidden, defaults.hidden);
  apply("--heads", train.model.heads, defaults.heads);
  apply("--pool", train.model.pool, defaults.pool);
  apply("--dropout", train.model.dropout, defaults.dropout);
  apply("--norm", train.model.norm, defaults.norm);
  apply("--activation", train.model.activation, defaults.activation);
  apply("--lr", train.learning_rate, defaults.learning_rate);
  apply("--weight-decay", train.weight_decay, defaults.weight_decay);
}

}  // namespace plait::cli
