// plait info GRAPH: shows the contents of a file.
#include <fmt/core.h>

#include <algorithm>

#include "cli/cli.h"
#include "plait/nn/config.h"

namespace plait::cli {
namespace {

struct Degrees {
  EdgeOffset largest = 0;
  std::uint64_t isolated = 0;  // vertices without incoming edges
};

Degrees degrees(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        Degrees d;
        for (std::uint64_t i = 0; i < graph.vertices(); ++i) {
          d.largest = std::max(d.largest, graph.degree(i));
          d.isolated += graph.degree(i) == 0;
        }
        return d;
      },
      any);
}

json split_counts(const Dataset& dataset, std::uint32_t split) {
  std::array<std::uint64_t, 4> counts{};
  for (const Split s :
       dataset.splits.span().subspan(split * dataset.examples(), dataset.examples()))
    ++counts[static_cast<std::size_t>(s)];
  return {{"train", counts[1]}, {"validation", counts[2]}, {"test", counts[3]}};
}

json describe(const Dataset& dataset) {
  const Degrees d = degrees(dataset.graph);
  json result = {{"name", dataset.name},
                 {"vertices", dataset.vertices()},
                 {"edges", dataset.edges()},
                 {"id_bits", std::holds_alternative<Csr32>(dataset.graph) ? 32 : 64},
                 {"weighted", is_weighted(dataset.graph)},
                 {"symmetric", dataset.symmetric},
                 {"mean_degree",
                  static_cast<double>(dataset.edges()) / static_cast<double>(dataset.vertices())},
                 {"largest_degree", d.largest},
                 {"isolated", d.isolated},
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

void print_text(const json& r) {
  fmt::print("{}\n", r["name"].get<std::string>());
  fmt::print("  vertices        {}\n", r["vertices"].get<std::uint64_t>());
  fmt::print("  edges           {} ({}{}, {}-bit ids)\n", r["edges"].get<std::uint64_t>(),
             r["symmetric"].get<bool>() ? "symmetric" : "directed",
             r["weighted"].get<bool>() ? ", weighted" : "", r["id_bits"].get<int>());
  fmt::print("  degree          mean {:.2f}, largest {}, {} without incoming edges\n",
             r["mean_degree"].get<double>(), r["largest_degree"].get<std::uint64_t>(),
             r["isolated"].get<std::uint64_t>());
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
  CLI::App* command =
      add_command(app, session, "info", "Show the contents of a graph file", [=, &session] {
        const json result = describe(read_graph(*path, session));
        session.json ? print_json(result) : print_text(result);
      });
  command->add_option("graph", *path, "Graph file")->required();
  add_examples(command, "  plait info cora.plait\n  plait info web.mtx --json");
}

}  // namespace plait::cli
