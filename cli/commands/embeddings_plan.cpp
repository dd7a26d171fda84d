#include "cli/commands/embeddings_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands/memory_table.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/names.h"
#include "plait/table/table_layout.h"

namespace plait::cli {
namespace {

constexpr double kMostIds = 1e9;  // of a sample, in a table

constexpr Names<DType, 3> kTypes{"type of embedding tables", {"fp32", "bf16", "fp16"}};
DType parse_type(std::string_view word) { return kTypes.parse(word); }

// Tables that are not divided are dealt out to ranks by size, as plait.nn.EmbeddingBags does.
void deal_out(std::vector<EmbeddingTable>& tables, int ranks) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < tables.size(); ++t) order.push_back(t);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t t) { return tables[t].rows; });
  std::vector<std::uint64_t> load(static_cast<std::size_t>(ranks));
  for (const std::size_t t : order) {
    const auto least = std::ranges::min_element(load);
    tables[t].owner = static_cast<int>(least - load.begin());
    *least += tables[t].rows;
  }
}

EmbeddingMemory question_of(const EmbeddingsOptions& o, const Session& session,
                            std::uint64_t width) {
  require<UsageError>(width > 0, "--embeddings needs --width, the columns of the tables, above 0");
  require<UsageError>(o.ids.empty() || o.ids.size() == o.rows.size(),
                      "--ids has {}, but --embeddings has {}", counted(o.ids.size(), "number"),
                      counted(o.rows.size(), "table"));
  for (const double ids : o.ids)
    require<UsageError>(ids <= kMostIds,
                        "--ids: {:g} ids per sample are too many; use at most {:g}", ids, kMostIds);
  EmbeddingMemory memory{.rule = o.rule, .gpus = session.gpus > 0};
  memory.use = {.width = width,
                .ranks = std::max(session.ranks, session.gpus),
                .samples = o.samples,
                .type = o.type};
  for (std::size_t t = 0; t < o.rows.size(); ++t)
    memory.use.tables.push_back({o.rows[t], o.ids.empty() ? 1.0 : o.ids[t]});
  memory.tables = choose_splits(memory.use);
  if (!o.split) return memory;
  for (EmbeddingTable& table : memory.tables) table.split = *o.split;
  if (*o.split == EmbeddingSplit::table) deal_out(memory.tables, memory.use.ranks);
  return memory;
}

json to_json(const EmbeddingMemory& m, const MemoryPlan& plan) {
  json tables = json::array();
  for (std::size_t t = 0; t < m.tables.size(); ++t) {
    const EmbeddingTable& table = m.tables[t];
    json one = {
        {"rows", table.rows}, {"ids", m.use.tables[t].ids}, {"split", to_string(table.split)}};
    if (table.split == EmbeddingSplit::table) one["rank"] = table.owner;
    tables.push_back(one);
  }
  json result = memory_json(plan);
  result["width"] = m.use.width;
  result["embeddings"] = {{"tables", tables},
                          {"dtype", to_string(m.use.type)},
                          {"optimizer", to_string(m.rule)},
                          {"samples", m.use.samples}};
  return result;
}

void print_text(const EmbeddingMemory& m, const MemoryPlan& plan) {
  fmt::print("{} of {} columns as {}, optimizer {}\n", counted(m.tables.size(), "embedding table"),
             m.use.width, to_string(m.use.type), to_string(m.rule));
  for (std::size_t t = 0; t < m.tables.size(); ++t) {
    const EmbeddingTable& table = m.tables[t];
    const bool whole = table.split == EmbeddingSplit::table;
    fmt::print("table {}: {} rows, split {}{}\n", t, table.rows, to_string(table.split),
               whole ? fmt::format(" on rank {}", table.owner) : "");
  }
  print_memory(plan, m.use.ranks);
}

// Returns the account of one rank alone.
std::vector<MemoryItem> of_rank(const MemoryPlan& plan, std::size_t rank) {
  std::vector<MemoryItem> items;
  for (const MemoryItem& item : plan.items) items.push_back({item.name, {item.bytes[rank]}});
  return items;
}

// Throws DoesNotFitError with all components if they are more than is free.
void require_fit_of(const MemoryPlan& plan, const std::string& where, std::uint64_t free) {
  if (plan.total() <= free) return;
  std::vector<std::string> parts;
  for (const MemoryItem& item : plan.items)
    parts.push_back(fmt::format("{} {}", item.name, format_bytes(MemoryPlan{{item}}.total())));
  throw DoesNotFitError(fmt::format(
      "embedding tables need {} {} ({}), but only {} is free; use bf16 or fp16, an optimizer with "
      "fewer states, or more GPUs or machines",
      format_bytes(plan.total()), where, fmt::join(parts, ", "), format_bytes(free)));
}

}  // namespace

void add_embeddings_options(CLI::App* command, EmbeddingsOptions& o) {
  CLI::Option* const tables =
      add_list(command, "--embeddings", o.rows,
               "Rows of embedding tables of --width columns, with commas: count their memory, "
               "in place of a graph's")
          ->needs(command->get_option("--store"));
  show_words(add_choice(command, "--dtype", o.type, parse_type, "fp32",
                        "Type of the numbers of the tables")
                 ->needs(tables),
             "fp32, bf16, fp16");
  add_list(command, "--ids", o.ids, "Ids per sample in each table, on average, with commas")
      ->default_str("1")
      ->needs(tables);
  command->add_option("--samples", o.samples, "Samples of each rank in a step")
      ->capture_default_str()
      ->check(in_range(std::uint64_t{1}, std::uint64_t{1} << 31))
      ->needs(tables);
  show_words(command
                 ->add_option_function<std::string>(
                     "--split",
                     [&o](const std::string& word) {
                       o.split = value_of_word("--split", word, parse_embedding_split);
                     },
                     "Division of the tables among ranks")
                 ->default_str("chosen for each table")
                 ->needs(tables),
             "replicated, table, columns, rows");
  show_words(add_choice(command, "--optimizer", o.rule, parse_row_rule, "adagrad",
                        "Optimizer of rows, which keeps 0, 1 or 2 floats per number")
                 ->needs(tables),
             "sgd, adagrad, adam");
}

void plan_embedding_tables(const EmbeddingsOptions& o, const Session& session,
                           std::uint64_t width) {
  const EmbeddingMemory memory = question_of(o, session, width);
  const MemoryPlan plan = plan_embeddings(memory);
  const FreeNow free =
      show_beside_free(plan, session, to_json(memory, plan), [&] { print_text(memory, plan); });
  for (std::size_t rank = 0; rank < free.gpus.size(); ++rank)
    require_fit_of(MemoryPlan{of_rank(plan, rank)}, fmt::format("on the GPU of rank {}", rank),
                   free.gpus[rank]);
  if (session.gpus == 0) require_fit_of(plan, "on this machine", free.host);
}

}  // namespace plait::cli
