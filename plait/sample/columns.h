// A sample as columns of numbers of 64 bits, its hops one after the other: the form of PyTorch
// Geometric's samplers.
#pragma once

#include "plait/sample/neighbours.h"

namespace plait {

struct SampleColumns {
  // One number per edge: the numbers of its source and of its target, and its place in the CSR.
  std::int64_t *row = nullptr, *col = nullptr, *edge = nullptr;
  std::int64_t* node = nullptr;  // one id per vertex
  std::int64_t* tree = nullptr;  // one number of a seed per vertex; null unless wanted
};

// Writes all columns, with all threads.
void write_columns(const Sample& sample, const SampleColumns& to);

}  // namespace plait
