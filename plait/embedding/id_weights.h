// Gradients of the weights of ids. The gradient of an id's weight is the product of its row and of
// the gradient of its bag.
//
// Owners of rows or columns write these products, or their shares of them, for each reader's bags;
// the reader adds the shares in the order of ranks.
#pragma once

#include "plait/embedding/bags.h"
#include "plait/embedding/piece_rows.h"
#include "plait/table/stored_rows.h"

namespace plait {

// Arguments of multiply_rows(): table t of some bags, and a rank's piece of it.
struct RowProducts {
  Bags bags;
  std::size_t t = 0;
  PieceRows piece;                     // without columns, products are 0
  const StoredRows* places = nullptr;  // of a table that is divided by rows; else null
  int rank = 0;                        // that has the piece
  const float* gradients = nullptr;    // of the piece's columns: bag b of the table at b * stride
  std::uint64_t stride = 0;
  float* out = nullptr;  // one per id of `bags`, written for the ids that the piece has
};
// Does this by all threads. The bits of a product depend on the numbers that are multiplied alone.
void multiply_rows(const RowProducts& products);

// Arguments of collect_products(): the products of the ids of bags as they were given.
struct GivenProducts {
  const GivenBags& given;
  const BagTables& tables;
  Bags bags;                        // the same without padding
  const float* products = nullptr;  // `shares` arrays of one per id of `bags`, `size` floats apart
  std::uint64_t size = 0;
  std::vector<std::uint64_t> shares;  // by table
};
// Writes one sum of shares per given id, 0 for padding, by all threads.
void collect_products(const GivenProducts& products, float* out);

}  // namespace plait
