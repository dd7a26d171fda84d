// Graphs like crawls of the web (random_graphs.h), with features and labels that follow sites: the
// class of a page is the number of its site, of 64 pages, modulo the number of classes.
#pragma once

#include <span>
#include <string_view>

#include "plait/graph/class_data.h"
#include "plait/graph/dataset.h"
#include "plait/graph/random_graphs.h"

namespace plait {

// The parameters of one graph.
struct CrawlGraph {
  std::string_view name = "crawl";
  CrawlOptions links = {};
  ClassData data = {};          // 0 classes: no labels, features or splits
  std::string_view table = {};  // of a preset: the paper's table that has its counts
};

// Generates a graph; `seed` of the links is that of the data, too. Throws as generate_crawl().
Dataset generate_crawl_graph(const CrawlGraph& crawl);

// Returns the crawls of the papers' tables: it-2004 and uk-domain.
std::span<const CrawlGraph> crawl_presets();
// Returns the preset of this name with `scale` times its counts of pages and links, above 0 and at
// most 1; at least 2 pages. Throws a UsageError that lists all names.
CrawlGraph crawl_like(std::string_view name, double scale);

}  // namespace plait
