// plait info GRAPH: shows the contents of a file.
#include <fmt/core.h>

#include <algorithm>

#include "cli/cli.h"
#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/graph/statistics.h"
#include "plait/nn/config.h"
#include "plait/reorder/communities.h"
#include "plait/reorder/scattered.h"

namespace plait::cli {
namespace {

json split_counts(const Dataset& dataset, std::uint32_t split) {
  std::array<std::uint64_t, 4> counts{};
  for (const Split s :
       dataset.splits.span().subspan(split * dataset.examples(), dataset.examples()))
    ++counts[static_cast<std::size_t>(s)];
  return {{"train", counts[1]}, {"validation", counts[2]}, {"test", counts[3]}};
}

// Tells whether plait reorder would renumber the graph; null where the memory to tell is not free.
json scattered(const Dataset& dataset, const Session& session) {
  try {
    return is_scattered(input_of(dataset, session));
  } catch (const DoesNotFitError&) {
    return nullptr;
  }
}

json describe(const Dataset& dataset, const Session& session) {
  const DegreeStatistics degrees = degree_statistics(dataset.graph);
  json result = {{"name", dataset.name},
                 {"vertices", dataset.vertices()},
                 {"edges", dataset.edges()},
                 {"id_bits", std::holds_alternative<Csr32>(dataset.graph) ? 32 : 64},
                 {"weighted", is_weighted(dataset.graph)},
                 {"symmetric", dataset.symmetric},
                 {"renumbered", !dataset.numbers.empty()},
                 {"mean_degree", degrees.mean},
                 {"median_degree", degrees.median},
                 {"percentile_99_degree", degrees.percentile_99},
                 {"largest_degree", degrees.largest},
                 {"isolated", degrees.without_edges},
                 {"top_percent_share", degrees.top_percent_share},
                 {"averaged_edge_span", averaged_edge_span(dataset.graph)},
                 {"scattered", scattered(dataset, session)},
                 {"feature_width", dataset.features.width},
                 {"classes", dataset.classes},
                 {"splits", json::array()}};
  if (dataset.classes > 0) result["task"] = to_string(dataset.task());
  if (dataset.is_set_of_graphs()) result["graphs"] = dataset.graphs;
  if (!dataset.features.empty()) result["feature_form"] = dataset.features.form();
  for (std::uint32_t s = 0; s < dataset.split_count; ++s)
    result["splits"].push_back(split_counts(dataset, s));
  return result;
}

json describe_communities(const Dataset& dataset) {
  const CommunityStatistics found = community_statistics(dataset.graph, dataset.symmetric);
  return {{"communities", found.communities},
          {"largest_community", found.largest},
          {"inner_edges", found.inner_edges},
          {"modularity", found.modularity}};
}

void print_shape(const json& r) {
  fmt::print(
      "  degree          mean {:.2f}, median {}, 99% at most {}, largest {}; {} without "
      "incoming edges\n",
      r["mean_degree"].get<double>(), r["median_degree"].get<std::uint64_t>(),
      r["percentile_99_degree"].get<std::uint64_t>(), r["largest_degree"].get<std::uint64_t>(),
      r["isolated"].get<std::uint64_t>());
  fmt::print("  hubs            1% of the vertices have {:.1f}% of the edges\n",
             100 * r["top_percent_share"].get<double>());
  const json& scattered = r["scattered"];
  fmt::print("  edge span       {:.1f} ids on average{}\n", r["averaged_edge_span"].get<double>(),
             scattered.is_null()     ? ""
             : scattered.get<bool>() ? ": scattered, see plait reorder"
                                     : ": near enough");
  if (!r.contains("communities")) return;
  fmt::print(
      "  communities     {}, the largest of {} vertices; {:.1f}% of the edges are inside, "
      "modularity {:.3f}\n",
      r["communities"].get<std::uint64_t>(), r["largest_community"].get<std::uint64_t>(),
      100 * r["inner_edges"].get<double>(), r["modularity"].get<double>());
}

void print_text(const json& r) {
  fmt::print("{}\n", r["name"].get<std::string>());
  fmt::print("  vertices        {}{}\n", r["vertices"].get<std::uint64_t>(),
             r["renumbered"].get<bool>() ? ", renumbered by plait reorder" : "");
  fmt::print("  edges           {} ({}{}, {}-bit ids)\n", r["edges"].get<std::uint64_t>(),
             r["symmetric"].get<bool>() ? "symmetric" : "directed",
             r["weighted"].get<bool>() ? ", weighted" : "", r["id_bits"].get<int>());
  print_shape(r);
  if (r.contains("feature_form"))
    fmt::print("  features        {} columns, {}\n", r["feature_width"].get<std::uint64_t>(),
               r["feature_form"].get<std::string>());
  if (r["classes"].get<int>() > 0) fmt::print("  classes         {}\n", r["classes"].get<int>());
  if (r.contains("graphs")) fmt::print("  graphs          {}\n", r["graphs"].get<int>());
  if (r.contains("task")) fmt::print("  task            {}\n", r["task"].get<std::string>());
  for (std::size_t s = 0; s < r["splits"].size(); ++s)
    fmt::print("  split {:<9} {} train, {} validation, {} test\n", s,
               r["splits"][s]["train"].get<std::uint64_t>(),
               r["splits"][s]["validation"].get<std::uint64_t>(),
               r["splits"][s]["test"].get<std::uint64_t>());
}

}  // namespace

void add_info(CLI::App& app, Session& session) {
  auto path = std::make_shared<std::string>();
  auto communities = std::make_shared<bool>(false);
  CLI::App* command =
      add_command(app, session, "info", "Show the contents of a graph file", [=, &session] {
        const Dataset dataset = read_graph(*path, session);
        json result = timed("count", [&] { return describe(dataset, session); });
        if (*communities)
          result.update(timed("find communities", [&] { return describe_communities(dataset); }));
        session.json ? print_json(result) : print_text(result);
      });
  command->add_option("graph", *path, "Graph file")->required();
  add_reading_options(command, session);
  command->add_flag("--communities", *communities,
                    "Look for communities of vertices, which takes seconds for 100 million edges");
  add_profile_options(command, session);
  add_examples(command, "  plait info cora.plait\n  plait info web.mtx --communities --json");
}

}  // namespace plait::cli
