#include "cli/run_json.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/json_text.h"
#include "plait/base/printable.h"

namespace plait::cli {
namespace {

using nlohmann::json;

// The phases in the order in which they are shown.
constexpr const char* kPhases[] = {"setup",   "computing", "summing",   "fetching",
                                   "waiting", "gradients", "evaluating"};
constexpr const char* kRemedy = "give the output of plait train --json";

// Reads fields of an object in a file by name; throws InputError.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  bool has(const char* name) const { return object_.contains(name); }
  [[noreturn]] void wrong(const std::string& name, const std::string& problem) const {
    throw InputError(path_, fmt::format("field '{}'", name), problem, kRemedy);
  }
  const json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) wrong(name, "is missing");
    return *found;
  }
  std::string text(const char* name) const {
    const json& value = at(name);
    if (!value.is_string()) wrong(name, fmt::format("is {}, not a text", value.type_name()));
    return value.get<std::string>();
  }
  double number(const char* name) const { return number(at(name), name); }
  // Returns a whole number in 0 .. most.
  std::uint64_t count(const char* name, std::uint64_t most) const {
    const json& value = at(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      wrong(name, fmt::format("is {}, not an integer in 0..{}", short_text(value), most));
    return value.get<std::uint64_t>();
  }
  std::vector<double> numbers(const char* name, std::size_t length) const {
    return numbers(at(name), name, length);
  }
  std::vector<double> numbers(const json& list, const std::string& name, std::size_t length) const {
    if (!list.is_array() || list.size() != length)
      wrong(name, fmt::format("is not a list of {} numbers", length));
    std::vector<double> values;
    for (const json& value : list) values.push_back(number(value, name));
    return values;
  }

 private:
  // JSON has null in place of numbers that are not finite.
  double number(const json& value, const std::string& name) const {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) wrong(name, fmt::format("holds {}, not a number", value.type_name()));
    return value.get<double>();
  }

  const json& object_;
  std::string path_;
};

json parse(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    return json::parse(file->text());
  } catch (const json::parse_error& error) {
    throw InputError(path, fmt::format("byte {}", error.byte), "not JSON", kRemedy);
  }
}

void read_costs(const Fields& fields, Run& run) {
  if (fields.has("phases")) {
    const json& phases = fields.at("phases");
    if (!phases.is_object()) fields.wrong("phases", "is not an object");
    for (const char* name : kPhases)
      if (phases.contains(name))
        run.phases.emplace_back(
            name, fields.numbers(phases[name], std::string("phases.") + name, run.ranks));
  }
  if (fields.has("bytes_between_ranks") && !fields.at("bytes_between_ranks").is_null()) {
    const json& rows = fields.at("bytes_between_ranks");
    if (!rows.is_array() || rows.size() != run.ranks)
      fields.wrong("bytes_between_ranks", fmt::format("is not a list of {} lists", run.ranks));
    for (const json& row : rows)
      run.bytes_between.push_back(fields.numbers(row, "bytes_between_ranks", run.ranks));
  }
  if (!fields.has("memory")) return;
  const json& memory = fields.at("memory");
  if (!memory.is_object()) fields.wrong("memory", "is not an object");
  for (auto [name, list] : {std::pair{"host", &run.host_memory}, {"gpu", &run.gpu_memory}})
    if (memory.contains(name))
      *list = fields.numbers(memory[name], std::string("memory.") + name, run.ranks);
}

}  // namespace

Run read_run(const std::string& path) {
  const json object = parse(path);
  const Fields fields(object, path);
  if (!object.is_object()) throw InputError(path, "the file", "not one JSON object", kRemedy);
  if (const auto schema = fields.count("schema", 1 << 20); schema != 1)
    fields.wrong("schema", fmt::format("is {}; this program reads 1", schema));
  Run run;
  run.name = printable(std::filesystem::path(path).stem().string());
  run.model = fields.text("model");
  run.device = fields.text("device");
  run.strategy = fields.text("strategy");
  run.partition = fields.text("partition");
  run.graph = fields.has("graph") ? fields.text("graph") : "";
  run.metric = fields.has("metric") ? fields.text("metric") : "accuracy";
  run.ranks = fields.count("ranks", 1 << 20);
  run.seed = fields.count("seed", std::numeric_limits<std::uint64_t>::max());
  const std::uint64_t epochs = fields.count("epochs", 10'000'000);
  if (run.ranks == 0 || epochs == 0)
    fields.wrong(epochs == 0 ? "epochs" : "ranks", "is 0; at least 1 is needed");
  run.best_epoch = static_cast<int>(fields.count("best_epoch", epochs - 1));
  run.interrupted = fields.at("interrupted") == true;
  run.loss = fields.numbers("loss", epochs);
  if (fields.has("val_loss_by_epoch")) run.val_loss = fields.numbers("val_loss_by_epoch", epochs);
  // If the metric is accuracy, its fields have that name; otherwise they have the name "metric".
  const auto of_metric = [&](const std::string& begin, const std::string& end) {
    const std::string general = begin + "metric" + end;
    return fields.has(general.c_str()) ? general : begin + "accuracy" + end;
  };
  run.val_metric_by_epoch = fields.numbers(of_metric("val_", "_by_epoch").c_str(), epochs);
  run.train_metric = fields.number(of_metric("train_", "").c_str());
  run.val_metric = fields.number(of_metric("val_", "").c_str());
  run.test_metric = fields.number(of_metric("test_", "").c_str());
  run.epoch_ms = fields.number("epoch_ms");
  run.comm_share = fields.number("comm_share");
  run.bytes_per_rank = fields.number("bytes_per_rank");
  read_costs(fields, run);
  return run;
}

}  // namespace plait::cli
