#include "cli/commands/memory_table.h"

#include <fmt/core.h>

#include "plait/aggregate/route_choice.h"
#include "plait/base/memory.h"

namespace plait::cli {
namespace {

void print_line(const MemoryItem& item) {
  fmt::print("{:<42}", item.name);
  for (const std::uint64_t of_rank : item.bytes) fmt::print("{:>12}", format_bytes(of_rank));
  fmt::print("{:>12}\n", format_bytes(MemoryPlan{{item}}.total()));
}

FreeNow show_beside_gpus(const MemoryPlan& plan, const Session& session, json result,
                         const std::function<void()>& print) {
  const std::vector<std::uint64_t> free = free_on_gpus(session.gpus);
  if (session.json) {
    result["gpus"] = session.gpus;
    result["available"] = free;
    result["fits"] = free.empty() ? json(nullptr) : json(fits_on_gpus(plan, free));
    print_json(result);
  } else {
    print();
    print_free_on_gpus(free, session.gpus);
  }
  return {.gpus = free};
}

}  // namespace

json memory_json(const MemoryPlan& plan) {
  json arrays = json::array();
  for (const MemoryItem& item : plan.items)
    arrays.push_back({{"name", item.name}, {"bytes", item.bytes}});
  return {{"arrays", arrays}, {"largest_rank", plan.largest_rank()}, {"total", plan.total()}};
}

void print_memory(const MemoryPlan& plan, int ranks) {
  fmt::print("{:<42}", "bytes per rank");
  for (int rank = 0; rank < ranks; ++rank) fmt::print("{:>12}", fmt::format("rank {}", rank));
  fmt::print("{:>12}\n", "all");
  for (const MemoryItem& item : plan.items) print_line(item);
  MemoryItem total{.name = "total", .bytes = {}};
  for (int rank = 0; rank < ranks; ++rank) total.bytes.push_back(plan.rank_total(rank));
  print_line(total);
}

void print_free_on_gpus(const std::vector<std::uint64_t>& free, int gpus) {
  if (free.empty())
    fmt::print("not compared: this host does not have {} that Plait can use\n",
               counted(static_cast<std::uint64_t>(gpus), "GPU"));
  else
    print_line({.name = "free on the GPU", .bytes = free});
}

FreeNow show_beside_free(const MemoryPlan& plan, const Session& session, json result,
                         const std::function<void()>& print) {
  if (session.gpus > 0) return show_beside_gpus(plan, session, std::move(result), print);
  const std::uint64_t available = available_memory();
  if (session.json) {
    result["ranks"] = session.ranks;
    result["available"] = available;
    result["fits"] = plan.total() <= available;
    print_json(result);
  } else {
    print();
    fmt::print("all ranks {}, free on this machine {}\n", format_bytes(plan.total()),
               format_bytes(available));
  }
  return {.host = available};
}

}  // namespace plait::cli
