// Analytics apps as Python sees them: torch.classes.plait.AppGraph, a graph on which they run.
#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "plait/apps/app.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/process_owned.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/world/difference.h"
#include "plait/world/launch.h"
#include "python/operations.h"

namespace plait {
namespace {

using Settings = c10::Dict<std::string, double>;
using Columns = std::vector<at::Tensor>;
using OptionalWhole = std::optional<std::uint64_t>;

const App& app_of(const std::string& name) {
  for (const App& app : apps())
    if (name == app.name) return app;
  throw UsageError(fmt::format("there is no app '{}'", name));
}

// The place of a graph's runs, and the runs of its apps, by name, which keep their memory.
class AppGraphHandle : public torch::CustomClassHolder {
 public:
  AppGraphHandle(EdgesToPlace edges, const torch::Device& device)
      : world_(*edges.world), owners_(std::move(edges.owners)), device_(device) {
    dataset_.name = "the graph";
    dataset_.graph = std::move(edges.csr);
    dataset_.symmetric = edges.symmetric;
    dataset_.numbers = owners_->partition.numbers();
    graph_ = process_owned(
        std::make_unique<SpreadGraph>(world_, dataset_, owners_->partition, device.is_cuda()));
  }

  ~AppGraphHandle() override {
    try {
      const OnGpuOf gpu(device_);  // the caller's current GPU may be another one
      runs_.clear();
      graph_.reset();
    } catch (const std::exception&) {  // the process has lost its GPU
    }
  }

  // Returns the columns of own nodes, and the facts as tensors without dimensions.
  std::tuple<Columns, Columns> run(const std::string& name, const Settings& given) {
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const std::lock_guard lock(operation_mutex());
      require_here(world_, kPlaced);
      c10::OptionalDeviceGuard guard;
      use_device(device_, guard);
      require_same_question(name, given);
      const App& app = app_of(name);
      const AppSettings settings = settings_of(app, given);
      app.check(dataset_, settings);
      auto& run = runs_[name];
      try {
        return together(world_, "in an analytics app", [&] {
          if (!run) run = process_owned((device_.is_cuda() ? app.on_gpu : app.on_cpu)(*graph_));
          run->run(settings);
          return std::tuple(columns_of(app, *run), facts_of(*run));
        });
      } catch (...) {
        run.reset();  // what a failed run has left is not gone on with
        throw;
      }
    });
  }

 private:
  // Collective. Ranks that ask different questions would mix their answers.
  void require_same_question(const std::string& name, const Settings& given) const {
    if (world_.size() == 1) return;
    std::map<std::string, std::string> ordered;
    for (const auto& item : given) ordered[item.key()] = fmt::to_string(item.value());
    Facts question = {{"the app", name}};
    question.insert(question.end(), ordered.begin(), ordered.end());
    require_equal<UsageError>(world_, "ranks ask different questions", question);
  }
  static AppSettings settings_of(const App& app, const Settings& given) {
    AppSettings settings(app.options);
    for (const auto& item : given) {
      const auto option = std::ranges::find(app.options, item.key(), &AppOption::name);
      require<UsageError>(option != app.options.end(), "{} has no argument '{}'", app.name,
                          item.key());
      const double value = item.value();
      require<UsageError>(value >= option->least && value <= option->most,
                          "{} is {}, but must be in {}..{}", item.key(), value, option->least,
                          option->most);
      std::visit(
          [&]<class T>(T& to) {
            using Number = std::conditional_t<std::is_same_v<T, OptionalWhole>, std::uint64_t, T>;
            require<UsageError>(std::is_same_v<Number, double> ||
                                    value == static_cast<double>(static_cast<Number>(value)),
                                "{} is {}, but must be a whole number", item.key(), value);
            to = static_cast<Number>(value);
          },
          settings[item.key()]);
    }
    return settings;
  }

  Columns columns_of(const App& app, AppRun& run) const {
    Columns columns;
    std::vector<void*> places;
    for (const AppColumnKind& column : app.columns) {
      columns.push_back(
          at::empty({static_cast<std::int64_t>(graph_->own())},
                    at::TensorOptions(device_).dtype(column.whole ? at::kLong : at::kDouble)));
      places.push_back(columns.back().mutable_data_ptr());
    }
    // The memory may have been freed by work of a stream of libtorch that still goes on.
    if (device_.is_cuda()) wait_for_gpu();
    run.write(places);
    return columns;
  }
  static Columns facts_of(AppRun& run) {
    Columns facts;
    for (const AppFact& fact : run.facts())
      facts.push_back(std::visit(
          [](auto value) {
            if constexpr (std::is_same_v<decltype(value), std::uint64_t>)
              return at::scalar_tensor(static_cast<std::int64_t>(value), at::kLong);
            else
              return at::scalar_tensor(value, at::kDouble);
          },
          fact.value));
    return facts;
  }

  World& world_;
  const PartitionRef owners_;
  const torch::Device device_;
  Dataset dataset_;
  ProcessOwned<SpreadGraph> graph_;
  std::map<std::string, ProcessOwned<AppRun>> runs_;
};

c10::intrusive_ptr<AppGraphHandle> graph_for_apps(const at::Tensor& edge_index,
                                                  std::int64_t num_nodes,
                                                  const OptionalTensor& edge_weight,
                                                  const std::optional<PartitionRef>& partition,
                                                  const torch::Device& device) {
  return with_python_errors([&] {
    c10::OptionalDeviceGuard guard;
    use_device(device, guard);
    const ThreadCount threads(thread_share());
    const std::lock_guard lock(operation_mutex());
    return c10::make_intrusive<AppGraphHandle>(
        edges_to_place({edge_index, num_nodes, edge_weight}, partition), device);
  });
}

// Returns the table of apps as text: a line for each app with its name, its summary, its columns
// and its facts, and after it lines for its options, which begin with a tab: the name, the kind
// ("flag", "whole", "number", or "optional" for a whole number that need not be given), the
// standard value, which is empty for the last kind, and the help. Tabs stand between them.
std::string table_of_apps() {
  std::string table;
  for (const App& app : apps()) {
    table += fmt::format("{}\t{}\t", app.name, app.summary);
    for (const AppColumnKind& column : app.columns)
      table += fmt::format("{}{}", &column == app.columns.data() ? "" : " ", column.name);
    table += fmt::format("\t{}\n", fmt::join(app.facts, " "));
    for (const AppOption& option : app.options)
      std::visit(
          [&](auto value) {
            using T = decltype(value);
            const char* const kind = std::is_same_v<T, bool>            ? "flag"
                                     : std::is_same_v<T, std::uint64_t> ? "whole"
                                     : std::is_same_v<T, double>        ? "number"
                                                                        : "optional";
            std::string standard;
            if constexpr (!std::is_same_v<T, OptionalWhole>)
              standard = fmt::to_string(static_cast<double>(value));
            table += fmt::format("\t{}\t{}\t{}\t{}\n", option.name, kind, standard, option.help);
          },
          option.standard);
  }
  return table;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  register_partition_class();
  static const auto graph =
      torch::class_<AppGraphHandle>("plait", "AppGraph").def("run", &AppGraphHandle::run);
  m.def("apps() -> str", &table_of_apps);
  m.def(
      "graph_for_apps(Tensor edge_index, int num_nodes, Tensor? edge_weight, "
      "__torch__.torch.classes.plait.Partition? partition, Device device) -> "
      "__torch__.torch.classes.plait.AppGraph",
      &graph_for_apps);
}

}  // namespace plait
