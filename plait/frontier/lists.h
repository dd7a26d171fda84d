// Lists of vertices that own rows keep, which ranks lend each other and intersect (operators.h).
//
// The entries of all lists of all ranks are numbered through, rank after rank and row after row. An
// entry is known twice: by its slot on the rank that keeps it, and by a number below kNoVertex that
// is the same vertex on every rank.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

// The number of no vertex.
inline constexpr std::uint32_t kNoVertex = ~std::uint32_t{0};

// The entries of one list: how many, in the lower 24 bits, and the first of them, above.
class ListPlace {
 public:
  ListPlace() = default;
  PLAIT_HOST_DEVICE ListPlace(std::uint64_t first, std::uint64_t size)
      : bits_(first << kSizeBits | size) {}

  PLAIT_HOST_DEVICE std::uint64_t first() const { return bits_ >> kSizeBits; }
  PLAIT_HOST_DEVICE std::uint32_t size() const {
    return static_cast<std::uint32_t>(bits_) & ((1u << kSizeBits) - 1);
  }

 private:
  static constexpr int kSizeBits = 24;
  std::uint64_t bits_ = 0;
};

// The lists of a rank, in memory of its device.
struct SlotLists {
  const ListPlace* places = nullptr;  // by slot: of own rows, and of rows of other ranks
  std::uint64_t first = 0;            // the first entry of own rows
  const Slot* slots = nullptr;        // of each entry of own rows
  const std::uint32_t* numbers = nullptr;
};

// The entries of the lists of one rank, where another reads them.
struct LentEntries {
  std::uint64_t first = 0, size = 0;
  const std::uint32_t* numbers = nullptr;

  // Tells whether the list has entries, and they are among these.
  PLAIT_HOST_DEVICE bool have(ListPlace list) const {
    return list.size() > 0 && list.first() - first < size;
  }
  PLAIT_HOST_DEVICE const std::uint32_t* of(ListPlace list) const {
    return numbers + (list.first() - first);
  }
};

}  // namespace plait
