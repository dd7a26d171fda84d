// Values that ranks push to the owners of vertices, who merge them: the sparse way between ranks,
// where an exchange (exchange.h) brings values of owners to all who read them. Searches over a
// graph move their frontiers so (explicit data movement, in the scaling analysis of the HIVE
// applications, "Communication methods").
//
// Every rank has one value per slot (placement/shard.h). Its work may change values of halo slots,
// which are those of other ranks' vertices, and marks the slots that it has changed. push() sends
// marked values to their owners, merges what arrives into own slots, and marks the own slots that
// have changed by it. A vertex crosses once per rank and push, whatever number of edges lead to it.
//
// Ranks choose for each owner how values travel: with the number of each row, or, where most rows
// of an owner are marked, all its values without numbers. So values of halo slots that are not
// marked must be neutral: a merge of one that crosses nevertheless changes nothing. They are if
// they were sent before (min, max, bit_or and first), or are 0 (add: push() sets what it has sent
// to 0 again).
//
// On the push ride the number of slots that ranks have marked, by which a search ends, and a word
// of each rank, in which ranks agree on what else a round needs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plait/exchange/merge_rule.h"
#include "plait/world/reduction.h"

namespace plait {

// One value of 4 or 8 bytes per slot, in memory of the graph's device. Larger plain types go in
// several arrays, or are packed.
using SlotValues = ReducedValues;

// One bit per slot: bit s % 32 of word s / 32.
using SlotMarks = std::span<std::uint32_t>;
// Returns the number of words of so many slots' marks.
constexpr std::uint64_t mark_words(std::uint64_t slots) { return (slots + 31) / 32; }

// Throws UsageError unless there is one value and one bit of marks per slot, and values of their
// type can be merged so.
void require_messages(const SlotValues& values, SlotMarks marks, Merge how, std::uint64_t slots);

// The cost of pushes on this rank since they were made ready.
struct MessageCost {
  std::uint64_t pushes = 0;
  std::uint64_t values = 0;  // that went to other ranks
  std::uint64_t bytes = 0;   // of these values and their numbers
  double waiting = 0;        // s, for other ranks, on the CPU
};

// Returns the number of a call, by which ranks compare what they push.
inline std::uint64_t call_of(const SlotValues& values, Merge how) {
  return values.index() << 8 | static_cast<std::uint64_t>(how);
}
// The text of the UsageError that all ranks throw if they push differently.
inline constexpr const char* kDifferentPushes =
    "ranks push values of different types, or merge them in different ways; every rank must make "
    "the same calls in the same order";

// The facts that all ranks know after a push, the same on all.
struct Pushed {
  std::uint64_t marked = 0;          // slots that were marked before it, own and halo slots, of all
                                     // ranks: 0 if there was nothing left to do
  std::vector<std::uint64_t> words;  // by rank
};

// The messages along one direction of a graph that is placed on ranks, which it must not outlive.
// All ranks make the same calls, and destroy their messages, in the same order.
class Messages {
 public:
  virtual ~Messages() = default;

  // Collective. Sends the values of marked halo slots to their owners, takes these marks away, and
  // merges what comes into own slots, in the order of ranks: results are the same bits each time.
  // Own slots that change by it are marked; other marks of own slots stay. On a GPU it waits for
  // the stream of the exchange, which all of this is done on.
  //
  // Throws UsageError, on all ranks, if a rank does not give one value and one bit of marks per
  // slot, or merges floats by bit_or, and if ranks push values of different types or merge them in
  // different ways. The next push may be right. On the CPU values and marks are then as they were;
  // on GPUs marks of halo slots may be gone. Throws LostRankError, and Error if another rank has
  // given up a push on its GPU: on a GPU all bits of values and marks are then set, which in floats
  // is NaN.
  virtual Pushed push(const SlotValues& values, SlotMarks marks, Merge how,
                      std::uint64_t word = 0) = 0;

  virtual const MessageCost& cost() const = 0;
};

}  // namespace plait
