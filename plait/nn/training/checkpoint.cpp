#include "plait/nn/training/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/setting.h"
#include "plait/nn/layers/input.h"
#include "plait/nn/training/trainable.h"
#include "plait/world/difference.h"

namespace plait {
namespace {

const std::string kWholeGraph = "whole graph";

using nlohmann::json;

// Version 3 has the split and the normalisation of training.
constexpr const char* kFormat = "plait-checkpoint-3";

NamedTensor to_named(const std::string& name, const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kCPU).contiguous();
  const auto size = static_cast<std::size_t>(flat.numel());
  Buffer<float> values(size);
  std::copy_n(flat.const_data_ptr<float>(), size, values.data());
  return {name, flat.sizes().vec(), std::move(values)};
}

// Returns array `name`, which must have the shape of `target`.
const NamedTensor& array_for(const torch::Tensor& target, const TensorFile& file,
                             const std::string& name, const std::string& path) {
  const NamedTensor* found = file.find(name);
  const std::string place = fmt::format("array '{}'", name);
  if (found == nullptr)
    throw InputError(path, place, "is missing", "use a checkpoint of this model");
  if (target.sizes() != c10::IntArrayRef(found->shape))
    throw InputError(
        path, place,
        fmt::format("has shape [{}], but the model needs [{}]", fmt::join(found->shape, ", "),
                    fmt::join(target.sizes().vec(), ", ")),
        "use a checkpoint of this model");
  return *found;
}

// Copies array `name` into `target`, which must have its shape and may be on any device.
void load_into(torch::Tensor target, const TensorFile& file, const std::string& name,
               const std::string& path) {
  const NamedTensor& found = array_for(target, file, name, path);
  const torch::NoGradGuard no_grad;
  target.copy_(torch::from_blob(const_cast<float*>(found.values.data()), target.sizes()));
}

// Throws unless the file has every array of a model of these settings, in its shape. No memory is
// taken for the model: its weights are shapes alone.
void check_arrays(const ModelConfig& config, const TensorFile& file, const std::string& path) {
  const Model shapes(config, torch::kMeta);
  for (const NamedTensors& some : {shapes.named_parameters(), shapes.named_buffers()})
    for (const auto& [name, tensor] : some) array_for(tensor, file, name, path);
}

const std::string& field(const TensorFile& file, const std::string& key, const std::string& path) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end())
    throw InputError(path, fmt::format("metadata '{}'", key), "is missing",
                     "use a checkpoint that plait train wrote");
  return found->second;
}

template <class T>
T number(const TensorFile& file, const std::string& key, const std::string& path) {
  const std::string& text = field(file, key, path);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw InputError(path, fmt::format("metadata '{}'", key),
                     fmt::format("value '{}' is not a number", text),
                     "use a checkpoint that plait train wrote");
  return value;
}

std::map<std::string, std::string> describe(const ModelConfig& config) {
  return {{"format", kFormat},
          {"kind", config.kind},
          {"layers", fmt::to_string(config.layers)},
          {"hidden", fmt::to_string(config.hidden)},
          {"inputs", fmt::to_string(config.inputs)},
          {"outputs", fmt::to_string(config.outputs)},
          {"dropout", fmt::to_string(config.dropout)},
          {"seed", fmt::to_string(config.seed)},
          {"task", std::string(to_string(config.task))},
          {"pool", std::string(to_string(config.pool))},
          {"norm", std::string(to_string(config.norm))},
          {"residual", config.residual ? "1" : "0"},
          {"activation", config.activation},
          {"heads", fmt::to_string(config.heads)},
          {"output_heads", fmt::to_string(config.output_heads)},
          {"slope", fmt::to_string(config.slope)},
          {"aggregation", config.aggregation}};
}

void check_format(const TensorFile& file, const std::string& path) {
  const std::string& format = field(file, "format", path);
  if (format != kFormat)
    throw InputError(path, "metadata 'format'",
                     fmt::format("value '{}' is not '{}'", format, kFormat),
                     "use a checkpoint that this version of plait wrote");
  field(file, kChecksumKey, path);  // without it the file is damaged
}

// Throws at the first fact in which the checkpoint's graph differs from this run's.
void check_graph(const TensorFile& file, const std::string& path, const Fingerprint& here) {
  const json there = json::parse(field(file, "graph", path), nullptr, false);
  const auto value_there = [&](const std::string& what) {
    const auto found = there.is_object() ? there.find(what) : there.end();
    return found != there.end() && found->is_string() ? found->get<std::string>() : "missing";
  };
  const auto refuse = [&](const std::string& what, const std::string& is) {
    throw InputError(path, "metadata 'graph'",
                     fmt::format("it was trained on another graph: {} is {} there and {} here",
                                 what, value_there(what), is),
                     "resume with the graph of the checkpoint");
  };
  for (const auto& [what, value] : here)
    if (value_there(what) != value) refuse(what, value);
  for (const auto& [what, value] : there.items())
    if (std::ranges::find(here, what, &Fingerprint::value_type::first) == here.end())
      refuse(what, "missing");
}

void to_json(json& j, const EpochResult& e) {
  j = {e.epoch,       e.loss,        e.validation_loss, e.train_metric, e.validation_metric,
       e.test_metric, e.milliseconds};
}

std::vector<EpochResult> parse_history(const TensorFile& file, const std::string& path) {
  const json list = json::parse(field(file, "history", path), nullptr, false);
  const auto good = [](const json& e) {
    return e.is_array() && e.size() == 7 &&
           std::ranges::all_of(e, [](const json& n) { return n.is_number(); });
  };
  if (!list.is_array() || !std::ranges::all_of(list, good))
    throw InputError(path, "metadata 'history'", "is not a list of epochs",
                     "use a checkpoint that plait train wrote");
  std::vector<EpochResult> history;
  for (const json& e : list)
    history.push_back({e[0].get<int>(), e[1].get<double>(), e[2].get<double>(), e[3].get<double>(),
                       e[4].get<double>(), e[5].get<double>(), e[6].get<double>()});
  return history;
}

// Encoded as [steps, milliseconds, [loss of rank 0, ...]]; without the field no epoch is under way.
EpochUnderWay parse_under_way(const TensorFile& file, const std::string& path, std::int64_t steps) {
  if (!file.metadata.contains("under_way")) return {};
  const json list = json::parse(field(file, "under_way", path), nullptr, false);
  const auto is_number = [](const json& n) { return n.is_number(); };
  const bool good = list.is_array() && list.size() == 3 && list[0].is_number_integer() &&
                    list[0].get<std::int64_t>() >= 1 && list[0].get<std::int64_t>() < steps &&
                    list[1].is_number() && list[2].is_array() && !list[2].empty() &&
                    std::ranges::all_of(list[2], is_number);
  if (!good)
    throw InputError(path, "metadata 'under_way'",
                     fmt::format("does not tell of an epoch of {} steps", steps),
                     "use a checkpoint that plait train wrote");
  return {list[0].get<std::int64_t>(), list[1].get<double>(), list[2].get<std::vector<double>>()};
}

}  // namespace

double EpochUnderWay::loss_of(int rank, int ranks) const {
  if (std::ssize(losses) == ranks) return losses[static_cast<std::size_t>(rank)];
  return rank == 0 ? std::accumulate(losses.begin(), losses.end(), 0.0) : 0.0;
}

void save_checkpoint(const std::string& path, const Model& model,
                     const std::vector<torch::Tensor>& best, const Adam& optimizer,
                     const TrainingState& training) {
  TensorFile file;
  file.metadata = describe(model.config());
  json history = json::array();
  for (const EpochResult& e : training.history) {
    json entry;
    to_json(entry, e);
    history.push_back(entry);
  }
  json graph = json::object();
  for (const auto& [what, value] : training.graph) graph[what] = value;
  file.metadata.insert(training.settings.begin(), training.settings.end());
  file.metadata["graph"] = graph.dump();
  file.metadata["history"] = history.dump();
  file.metadata["best_epoch"] = fmt::to_string(training.best_epoch);
  if (const EpochUnderWay& left = training.under_way; left.steps > 0)
    file.metadata["under_way"] = json{left.steps, left.milliseconds, left.losses}.dump();
  std::size_t i = 0;
  const auto add = [&](const std::string& name, const torch::Tensor& now) {
    file.tensors.push_back(to_named(name, best[i++]));
    file.tensors.push_back(to_named("resume." + name, now));
  };
  for (const auto& [name, parameter] : model.named_parameters()) {
    file.tensors.push_back(to_named("resume.adam.exp_avg." + name, optimizer.exp_avg()[i]));
    file.tensors.push_back(to_named("resume.adam.exp_avg_sq." + name, optimizer.exp_avg_sq()[i]));
    add(name, parameter);
  }
  for (const auto& [name, buffer] : model.named_buffers()) add(name, buffer);
  write_safetensors(file, path);
}

namespace {

// Reads a model's settings from a checkpoint's metadata. Throws UsageError for unknown words.
ModelConfig read_config(const TensorFile& file, const std::string& path) {
  ModelConfig config;
  config.kind = field(file, "kind", path);
  config.task = parse_task(field(file, "task", path));
  config.pool = parse_pool(field(file, "pool", path));
  config.norm = parse_norm(field(file, "norm", path));
  config.residual = number<int>(file, "residual", path) != 0;
  config.activation = field(file, "activation", path);
  config.heads = number<std::int64_t>(file, "heads", path);
  config.output_heads = number<std::int64_t>(file, "output_heads", path);
  config.slope = number<float>(file, "slope", path);
  config.aggregation = field(file, "aggregation", path);
  config.layers = number<int>(file, "layers", path);
  config.hidden = number<std::int64_t>(file, "hidden", path);
  config.inputs = number<std::int64_t>(file, "inputs", path);
  config.outputs = number<std::int64_t>(file, "outputs", path);
  config.dropout = number<float>(file, "dropout", path);
  config.seed = number<std::uint64_t>(file, "seed", path);
  model_defaults(config.kind);
  return config;
}

// Calls `make`, and turns its UsageError for unknown words into an InputError of the file.
template <class Make>
auto from_metadata(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const UsageError& error) {
    throw InputError(path, "metadata", error.what(), "use a checkpoint that plait train wrote");
  }
}

Normalize normalize_of(const TensorFile& file, const InferConfig& config) {
  const auto found = file.metadata.find("normalize");
  if (found == file.metadata.end()) return config.normalize;
  const Normalize trained =
      from_metadata(config.checkpoint, [&] { return parse_normalize(found->second); });
  if (config.normalize != Normalize::automatic && config.normalize != trained)
    throw InputError(
        config.checkpoint, "metadata 'normalize'",
        fmt::format("value {} is not this run's {}", found->second, to_string(config.normalize)),
        "leave out " + setting("normalize") + ", and features are normalised as in training");
  return trained;
}

}  // namespace

Model load_model(const TensorFile& file, const std::string& path, const torch::Device& device) {
  check_format(file, path);
  const ModelConfig config = from_metadata(path, [&] { return read_config(file, path); });
  // The arrays that are there bound what the fields may claim, before memory is taken for them.
  std::uint64_t held = 0;
  for (const NamedTensor& tensor : file.tensors) held += tensor.values.size();
  const auto claims = [&](std::int64_t n) { return n < 1 || static_cast<std::uint64_t>(n) > held; };
  // A single layer of scores has no array that is `hidden` wide, or of as many heads as others.
  const bool between = config.layers > 1 || config.pool != Pool::none;
  if (config.layers < 1 || static_cast<std::size_t>(config.layers) > file.tensors.size() ||
      claims(config.inputs) || claims(config.outputs) || claims(config.output_heads) ||
      (between && (claims(config.hidden) || claims(config.heads))))
    throw InputError(path, "metadata", "sizes differ from the arrays' sizes",
                     "use a checkpoint that plait train wrote");
  Model model = from_metadata(path, [&] {
    check_arrays(config, file, path);
    return Model(config, device);
  });
  for (const NamedTensors& some : {model.named_parameters(), model.named_buffers()})
    for (const auto& [name, tensor] : some) load_into(tensor, file, name, path);
  return model;
}

TensorFile read_checkpoint(World& world, const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  if (world.size() > 1)
    require_equal(world, "ranks read different checkpoints",
                  {{"the size in bytes", fmt::to_string(bytes.size())},
                   {"the checksum", checksum_text(checksum_of(bytes))}});
  return parse_safetensors(bytes, path);
}

TrainedModel load_model_for(World& world, const Dataset& dataset, const InferConfig& given,
                            const torch::Device& device) {
  const std::string& path = given.checkpoint;
  const TensorFile file = read_checkpoint(world, path);
  Model model = load_model(file, path, device);
  const ModelConfig& config = model.config();
  require<UsageError>(!dataset.features.empty(), "{} has no features", dataset.name);
  const auto width = static_cast<std::int64_t>(dataset.features.width);
  if (config.inputs != width)
    throw InputError(
        path, "metadata 'inputs'",
        fmt::format("the model reads {} features, but the graph has {}", config.inputs, width),
        "use the graph that it was trained on, or one like it");
  const bool labelled = !dataset.labels.empty() || !dataset.label_sets.empty();
  const bool same = labelled ? config.task == dataset.task()
                             : (config.pool != Pool::none) == dataset.is_set_of_graphs();
  if (!same)
    throw InputError(path, "metadata 'task'",
                     fmt::format("the model is for {} data, but the dataset is {}",
                                 to_string(config.task), to_string(dataset.task())),
                     "use the graph that it was trained on, or one like it");
  check_degrees(dataset, config.kind);
  return {std::move(model), resolved(normalize_of(file, given), dataset.features)};
}

namespace {

// Names what draws depend on besides fan-outs; empty for draws of any edges without replacement.
std::string draws_name(const SampledTraining& sampled) {
  std::string name;
  if (sampled.by_weight) name += ", by weight";
  if (sampled.replace) name += ", with replacement";
  if (sampled.latest) name += ", the latest";
  const auto add = [&](const char* of, const Array<std::int64_t>& times) {
    if (!times.empty())
      name += fmt::format(", times of {} {}", of,
                          checksum_text(checksum_of(std::as_bytes(times.span()))));
  };
  add("vertices", sampled.times.vertices);
  add("edges", sampled.times.edges);
  add("examples", sampled.times.examples);
  return name;
}

}  // namespace

std::string steps_name(const TrainConfig& config, int ranks, const Dataset& dataset) {
  if (!config.sampled) return kWholeGraph;
  const auto numbers = std::as_bytes(dataset.numbers.span());
  const std::string order =
      numbers.empty() ? "" : ", vertices in order " + checksum_text(checksum_of(numbers));
  return fmt::format("fan-outs {} of {} examples{}{}", fmt::join(config.sampled->fanouts, ","),
                     config.sampled->batch * ranks, draws_name(*config.sampled), order);
}

TrainingState resume_checkpoint(const TensorFile& file, const std::string& path,
                                TrainingState begun, Model& model, std::vector<torch::Tensor>& best,
                                Adam& optimizer) {
  check_format(file, path);
  std::map<std::string, std::string> settings = describe(model.config());
  settings.insert(begun.settings.begin(), begun.settings.end());
  const auto check_setting = [&](const std::string& key) {
    const bool old = key == "steps" && !file.metadata.contains(key);
    const std::string &found = old ? kWholeGraph : field(file, key, path),
                      &wanted = settings.at(key);
    if (found != wanted)
      throw InputError(path, fmt::format("metadata '{}'", key),
                       fmt::format("value {} is not this run's {}", found, wanted),
                       "resume with the settings of the checkpoint");
  };
  // First: they tell more than sizes and settings that also differ.
  for (const char* key : {"task", "kind"}) check_setting(key);
  for (const auto& [key, wanted] : settings) check_setting(key);
  check_graph(file, path, begun.graph);
  TrainingState training{std::move(begun.settings),
                         std::move(begun.graph),
                         parse_history(file, path),
                         number<int>(file, "best_epoch", path),
                         begun.steps,
                         parse_under_way(file, path, begun.steps)};
  const auto done = static_cast<std::int64_t>(training.history.size());
  const std::int64_t left = training.under_way.steps;
  if (done == 0 && left == 0)
    throw InputError(path, "metadata 'history'", "is empty",
                     "use a checkpoint that plait train wrote");
  const std::int64_t last = std::max<std::int64_t>(done - 1, 0);
  if (training.best_epoch < 0 || training.best_epoch > last)
    throw InputError(path, "metadata 'best_epoch'",
                     fmt::format("value {} is outside 0..{}", training.best_epoch, last),
                     "use a checkpoint that plait train wrote");
  optimizer.set_steps(done * training.steps + left);
  std::size_t i = 0;
  const auto load = [&](const std::string& name, const torch::Tensor& now) {
    load_into(best[i++], file, name, path);
    load_into(now, file, "resume." + name, path);
  };
  for (const auto& [name, parameter] : model.named_parameters()) {
    load_into(optimizer.exp_avg()[i], file, "resume.adam.exp_avg." + name, path);
    load_into(optimizer.exp_avg_sq()[i], file, "resume.adam.exp_avg_sq." + name, path);
    load(name, parameter);
  }
  for (const auto& [name, buffer] : model.named_buffers()) load(name, buffer);
  return training;
}

}  // namespace plait
