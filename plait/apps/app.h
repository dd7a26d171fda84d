// Analytics apps: one algorithm each, which answers a question about a graph spread over ranks, on
// the CPU or on GPUs. Each is a row of the table below, from which its command and its function in
// Python come. Headers NAME.h have the algorithms, as templates over the operators of frontier/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "plait/frontier/graph.h"

namespace plait {

// The value of an option: a flag, a whole number or a number.
using AppValue = std::variant<bool, std::uint64_t, double>;

struct AppOption {
  const char* name;  // "source"
  const char* help;
  AppValue standard;  // its kind is the option's
  double least = 0, most = 1e18;
};

// The options of one run.
class AppSettings {
 public:
  // Takes a value; those that are not set have their standard.
  explicit AppSettings(std::span<const AppOption> options) {
    for (const AppOption& option : options) values_[option.name] = option.standard;
  }
  AppValue& operator[](const std::string& name) { return values_.at(name); }
  // Returns the value of an option of kind T.
  template <class T>
  T get(const std::string& name) const {
    return std::get<T>(values_.at(name));
  }

 private:
  std::map<std::string, AppValue> values_;
};

// One number per vertex: of own rows, or of all vertices in the order of their numbers.
struct AppColumn {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<double>> values;
};

// A number of the whole graph, the same on all ranks.
struct AppFact {
  std::string name;
  std::variant<std::uint64_t, double> value;
};

struct AppResult {
  std::vector<AppColumn> columns;
  std::vector<AppFact> facts;
};

// An app on a graph that is placed: it runs any number of times.
class AppRun {
 public:
  virtual ~AppRun() = default;
  // Collective. Finds the answer, which stays in the device's memory.
  virtual void run(const AppSettings& settings) = 0;
  // Collective. Returns the answer of the last run(), with the columns of own rows.
  virtual AppResult result() = 0;
};

struct App {
  const char* name;
  const char* summary;  // a sentence: the answer
  std::vector<AppOption> options;
  std::vector<const char*> columns, facts;  // their names, in order
  // Throws UsageError for settings that this graph does not allow.
  void (*check)(const Dataset& dataset, const AppSettings& settings);
  // Collective. The graph outlives the result.
  std::unique_ptr<AppRun> (*on_cpu)(SpreadGraph& graph);
  std::unique_ptr<AppRun> (*on_gpu)(SpreadGraph& graph);
  // Throws MismatchError if the result, whose columns have all vertices, is wrong: what it says is
  // compared with the graph, or with a slow version in plain loops. On one process.
  void (*verify)(const Dataset& dataset, const AppSettings& settings, const AppResult& result);
  // Bytes of the device's memory per slot, beside the graph's.
  std::uint64_t slot_bytes;
};

// Returns all apps.
std::span<const App> apps();

// Returns the run of an algorithm, a class template over the operators whose objects are made of
// them and have the members of AppRun. A build without CUDA throws UsageError for GPUs.
template <template <class> class Algorithm>
std::unique_ptr<AppRun> app_on_cpu(SpreadGraph& graph);
template <template <class> class Algorithm>
std::unique_ptr<AppRun> app_on_gpu(SpreadGraph& graph);

// An algorithm with its operators.
template <template <class> class Algorithm, class Operators>
class RunOn : public AppRun {
 public:
  explicit RunOn(SpreadGraph& graph) : operators_(graph), algorithm_(operators_) {}
  void run(const AppSettings& settings) override { algorithm_.run(settings); }
  AppResult result() override { return algorithm_.result(); }

 private:
  Operators operators_;
  Algorithm<Operators> algorithm_;
};

}  // namespace plait
