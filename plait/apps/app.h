// Analytics apps: one algorithm each, which answers a question about a graph spread over ranks, on
// the CPU or on GPUs. Each is a row of the table below, from which its command and its function in
// Python come. Headers NAME.h have the algorithms, as templates over the operators of frontier/.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "plait/frontier/graph.h"

namespace plait {

// The value of an option: a flag, a whole number, a number, or a whole number that need not be
// given.
using AppValue = std::variant<bool, std::uint64_t, double, std::optional<std::uint64_t>>;

// Bytes of memory that an app takes beside the graph: of the device's unless said otherwise.
struct AppBytes {
  std::uint64_t per_slot = 0;
  std::uint64_t per_edge = 0;          // of an own row, in either direction
  std::uint64_t per_lent_edge = 0;     // on several ranks: of the rank with the most, as above
  std::uint64_t per_thread_slot = 0;   // on the CPU: per slot and thread
  std::uint64_t per_edge_on_host = 0;  // on several GPUs: of the host's, per edge as above
};

struct AppOption {
  const char* name;  // "source"
  const char* help;
  AppValue standard;  // its kind is the option's
  double least = 0, most = 1e18;
  AppBytes bytes = {};  // that a flag adds to the app's
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

// The name of a column, and whether its numbers are std::int64_t or double.
struct AppColumnKind {
  const char* name;
  bool whole;
};

// An app on a graph that is placed: it runs any number of times.
class AppRun {
 public:
  virtual ~AppRun() = default;
  // Collective. Finds the answer, which stays in the device's memory.
  virtual void run(const AppSettings& settings) = 0;
  // Collective. Returns what the last run() has found of the whole graph.
  virtual std::vector<AppFact> facts() = 0;
  // Writes its numbers of own rows to memory of the device, one place per column, and waits until
  // they are there.
  virtual void write(std::span<void* const> columns) = 0;
  // Returns the numbers of own rows on the host.
  virtual std::vector<AppColumn> columns(std::span<const AppColumnKind> kinds) = 0;
};

struct App {
  const char* name;
  const char* summary;  // a sentence: the answer
  std::vector<AppOption> options;
  std::vector<AppColumnKind> columns;
  std::vector<const char*> facts;  // their names, in order
  // Throws UsageError for settings that this graph does not allow.
  void (*check)(const Dataset& dataset, const AppSettings& settings);
  // Collective. The graph outlives the result.
  std::unique_ptr<AppRun> (*on_cpu)(SpreadGraph& graph);
  std::unique_ptr<AppRun> (*on_gpu)(SpreadGraph& graph);
  // Throws MismatchError if the result, whose columns have all vertices, is wrong: what it says is
  // compared with the graph, or with a slow version in plain loops. On one process.
  void (*verify)(const Dataset& dataset, const AppSettings& settings, const AppResult& result);
  AppBytes bytes;  // at the most, without those of flags
};

// Returns the bytes with these settings.
AppBytes bytes_of(const App& app, const AppSettings& settings);

// Returns all apps.
std::span<const App> apps();

// Collective. Puts the columns of all ranks, in the order of the vertices' numbers, into the result
// of rank 0, and empties those of the others.
void gather_columns(World& world, const Partition& partition, AppResult& result);

// Returns the run of an algorithm, a class template over the operators whose objects are made of
// them (RunOn). A build without CUDA throws UsageError for GPUs.
template <template <class> class Algorithm>
std::unique_ptr<AppRun> app_on_cpu(SpreadGraph& graph);
template <template <class> class Algorithm>
std::unique_ptr<AppRun> app_on_gpu(SpreadGraph& graph);

// Writes columns of own rows for RunOn. (CUDA's functors must not be made in a function whose
// arguments are lambdas.)
template <class Operators>
struct ColumnWriter {
  template <class T, class F>
  struct WriteRow {
    T* to;
    F f;
    PLAIT_HOST_DEVICE void operator()(std::uint64_t row) const { to[row] = f(row); }
  };

  const Operators& on;
  std::span<void* const> places;  // by column

  template <class F>
  void operator()(std::size_t k, const F& f) const {
    using T = decltype(f(std::uint64_t{}));
    on.for_rows(on.view().own, WriteRow<T, F>{static_cast<T*>(places[k]), f});
  }
};

// An algorithm with its operators. It has, beside run() and facts(), columns(put), which calls
// put(k, f) for each column k with a functor f(row) that returns std::int64_t or double.
template <template <class> class Algorithm, class Operators>
class RunOn : public AppRun {
 public:
  explicit RunOn(SpreadGraph& graph) : operators_(graph), algorithm_(operators_) {}
  void run(const AppSettings& settings) override {
    algorithm_.run(settings);
    operators_.wait();
  }
  std::vector<AppFact> facts() override { return algorithm_.facts(); }
  void write(std::span<void* const> columns) override {
    algorithm_.columns(ColumnWriter<Operators>{operators_, columns});
    operators_.wait();
  }
  std::vector<AppColumn> columns(std::span<const AppColumnKind> kinds) override {
    const std::uint64_t own = operators_.view().own;
    std::vector<typename Operators::template Values<std::uint64_t>> values;
    std::vector<void*> places;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      values.push_back(operators_.template array<std::uint64_t>(own, 0));
      places.push_back(values.back().data());
    }
    write(places);
    std::vector<AppColumn> found;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const std::vector<std::uint64_t> bits = operators_.first(values[k], own);
      if (kinds[k].whole)
        found.push_back({kinds[k].name, std::vector<std::int64_t>(bits.begin(), bits.end())});
      else
        found.push_back({kinds[k].name, doubles_of(bits)});
    }
    return found;
  }

 private:
  static std::vector<double> doubles_of(const std::vector<std::uint64_t>& bits) {
    std::vector<double> values;
    for (const std::uint64_t each : bits) values.push_back(std::bit_cast<double>(each));
    return values;
  }

  Operators operators_;
  Algorithm<Operators> algorithm_;
};

}  // namespace plait
