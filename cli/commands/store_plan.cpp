#include "cli/commands/store_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/commands/memory_table.h"
#include "plait/aggregate/route_choice.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/printable.h"

namespace plait::cli {
namespace {

bool all_reach(const std::vector<Gpu>& gpus, std::size_t count) {
  for (std::size_t g = 0; g < std::min(count, gpus.size()); ++g)
    for (std::size_t other = 0; other < std::min(count, gpus.size()); ++other)
      if (other != g && !gpus[g].reaches[other]) return false;
  return true;
}

// The account of a dataset with what it was compared with.
struct Account {
  StoreQuestion question;
  FreeMemory free;
  bool compared = true;  // free memory of GPUs is known, or none is asked for
  StorePlan plan;
  std::optional<DoesNotFitError> refusal;  // by all places
};

// Chooses the place, or notes why none fits. A structure without a place is shared out if all does
// not fit with a copy of it on each GPU.
TablePlace chosen_place(Account& a, StructurePlace structure) {
  if (!a.compared) return TablePlace::gpu;
  try {
    return choose_place(a.question, a.free);
  } catch (const DoesNotFitError& error) {
    const bool may_share = a.question.gpus && a.question.ranks > 1;
    if (structure == StructurePlace::automatic && may_share) {
      a.question.shard_structure = true;
      return chosen_place(a, StructurePlace::sharded);
    }
    a.refusal = error;
    return a.question.gpus ? TablePlace::gpu : TablePlace::host;
  }
}

Account make_account(const StoreOptions& o, const Session& session, const Dataset& dataset,
                     std::uint64_t width) {
  require<UsageError>(!dataset.is_set_of_graphs(),
                      "{} is a set of graphs; only one graph is sampled", dataset.name);
  require<UsageError>(!dataset.features.is_sparse(),
                      "the features of {} are sparse: training on samples keeps no table of them, "
                      "and copies them with each batch",
                      dataset.name);
  require<UsageError>(o.structure == StructurePlace::automatic || session.gpus > 0,
                      "--structure is for --gpus; ranks on the CPU read the graph's file");
  const std::uint64_t own = dataset.features.width;
  if (width > 0 && own > 0 && width != own && !session.quiet)
    fmt::print(
        stderr,
        "plait: warning: {} has {} features per vertex; the plan is of {}, as --width says\n",
        printable(dataset.name), own, width);
  const int ranks = std::max(session.ranks, session.gpus);
  Account a{.question = store_question(dataset, {.width = width, .type = dataset.features.type()},
                                       ranks, session.gpus > 0)};
  require<UsageError>(a.question.table.width > 0,
                      "{} has no features; name their number with --width", dataset.name);
  // Ranks on the CPU read features in the file itself.
  a.free = {.gpus = {}, .host = available_memory(), .mappable = true};
  if (session.gpus > 0) {
    a.free.gpus = free_on_gpus(session.gpus);
    a.compared = !a.free.gpus.empty();
    a.free.peers = !a.compared || all_reach(list_gpus(), static_cast<std::size_t>(ranks));
  }
  a.question.shard_structure = o.structure == StructurePlace::sharded;
  a.question.table.place = chosen_place(a, o.structure);
  a.plan = plan_store(a.question);
  return a;
}

// Returns nothing if it is not known.
std::optional<bool> account_fits(const Account& a) {
  if (!a.question.gpus) return a.plan.total() <= a.free.host;
  if (a.plan.host > a.free.host) return false;
  if (!a.compared) return std::nullopt;
  return fits_on_gpus(a.plan.memory, a.free.gpus);
}

void print_text(const Account& a) {
  const TableSettings& t = a.question.table;
  fmt::print("{} rows of {} features as {}, place {}\n", t.rows, t.width, to_string(t.type),
             to_string(t.place));
  print_memory(a.plan.memory, a.question.ranks);
  if (a.plan.host > 0)
    fmt::print("features in the host's memory, which GPUs read {}; all memory {}\n",
               format_bytes(a.plan.host), format_bytes(a.plan.total()));
  if (a.question.gpus) print_free_on_gpus(a.free.gpus, a.question.ranks);
  fmt::print("free on this machine {}\n", format_bytes(a.free.host));
}

json to_json(const Account& a, const Dataset& dataset) {
  const TableSettings& t = a.question.table;
  const std::optional<bool> fits = account_fits(a);
  json result = memory_json(a.plan.memory);
  result["graph"] = dataset.name;
  result["width"] = t.width;
  result["store"] = {
      {"rows", t.rows},
      {"dtype", to_string(t.type)},
      {"place", to_string(t.place)},
      {"structure", to_string(a.question.shard_structure ? StructurePlace::sharded
                                                         : StructurePlace::replicated)}};
  result["host"] = a.plan.host;
  result["total"] = a.plan.total();  // the host's memory counts, too
  result["fits"] = fits ? json(*fits) : json(nullptr);
  result[a.question.gpus ? "gpus" : "ranks"] = a.question.ranks;
  if (a.question.gpus)
    result["available"] = a.free.gpus;
  else
    result["available"] = a.free.host;
  return result;
}

}  // namespace

void add_store_options(CLI::App* command, StoreOptions& o) {
  CLI::Option* const store = command->add_flag(
      "--store", o.store,
      "Count the memory of keeping the dataset for training on samples, by component");
  add_choice(command, "--structure", o.structure, parse_structure, "auto",
             "Structure of the graph: a copy on each GPU, or shared out over them")
      ->needs(store);
}

void plan_stored(const StoreOptions& o, const Session& session, const Dataset& dataset,
                 std::uint64_t width) {
  const Account a = make_account(o, session, dataset, width);
  if (session.json)
    print_json(to_json(a, dataset));
  else
    print_text(a);
  if (a.refusal) throw DoesNotFitError(*a.refusal);
  if (account_fits(a).value_or(true)) return;
  if (a.compared) require_fit_on_gpus(a.plan.memory, a.free.gpus);
  require_memory(a.question.gpus ? a.plan.host : a.plan.total(), "the store", a.free.host);
}

}  // namespace plait::cli
