// The rules of embedding tables: what a bag gives of its rows. They are the same on all ranks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plait/embedding/norm_limit.h"

namespace plait {

// The way in which the rows of a bag become one row.
enum class BagMode { sum, mean, max };
// Throws a UsageError that lists the names.
BagMode parse_bag_mode(std::string_view name);
std::string_view to_string(BagMode mode);

// Whether sums of gradients by row depend on how many ids name the row: these are counted, and
// perhaps sums are divided by their number.
enum class Frequency { ignored, counted, divided };

struct EmbeddingRules {
  std::vector<std::int64_t> padding;  // by table: the id that counts for nothing; or -1
  BagMode mode = BagMode::sum;
  // The gradient of a row is divided by the number of ids in the bags of all ranks that name it.
  bool by_frequency = false;
  // Norms of the rows that bags name are limited before they are read.
  NormLimit norm = {};

  Frequency frequency() const { return by_frequency ? Frequency::divided : Frequency::ignored; }
  bool mean() const { return mode == BagMode::mean; }
  bool max() const { return mode == BagMode::max; }
};

}  // namespace plait
