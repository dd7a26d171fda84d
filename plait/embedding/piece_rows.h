// The numbers of a rank's pieces of embedding tables, in memory of the CPU or of a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/number.h"

namespace plait {

// A piece: rows of `columns` numbers without gaps. Nothing is owned.
struct PieceRows {
  void* at = nullptr;
  std::uint64_t columns = 0;
  DType type = DType::f32;
};

// All pieces of a rank, by table, of numbers of one type: null where a piece is empty.
struct TablePieces {
  std::span<void* const> at = {};
  DType type = DType::f32;

  PieceRows rows(std::size_t table, std::uint64_t columns) const {
    return {at[table], columns, type};
  }
};

}  // namespace plait
