#include "plait/store/sharded/embedding_step.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

// The word that a rank brings to the barrier. From the highest bit: its bags are wrong; the step;
// the last 13 bits of the batch's number; the bytes that it needs.
constexpr unsigned kFailedBit = 63, kStepBit = 62, kNumberBit = 49;
constexpr std::uint64_t kBytes = (std::uint64_t{1} << kNumberBit) - 1;
constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kStepBit) - 1 - kBytes;
constexpr std::uint64_t kStepAndNumber = std::uint64_t{1} << kStepBit | kNumbers;

}  // namespace

std::uint64_t begin_embedding_step(World& world, SymmetricHeap& heap, const EmbeddingStepOf& mine) {
  const auto words = heap.barrier(std::uint64_t{!mine.failure.empty()} << kFailedBit |
                                  static_cast<std::uint64_t>(mine.step) << kStepBit |
                                  (mine.number << kNumberBit & kNumbers) | (mine.bytes & kBytes));
  if (std::ranges::any_of(words, [](std::uint64_t word) { return word >> kFailedBit != 0; }))
    throw UsageError(first_failure(world, mine.failure));
  std::uint64_t most = 0;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    require<UsageError>(((words[rank] ^ words[0]) & kStepAndNumber) == 0,
                        "ranks 0 and {} are not at the same step of the same batch of an embedding "
                        "table; all ranks must make the same calls in the same order",
                        rank);
    most = std::max(most, words[rank] & kBytes);
  }
  return most;
}

void StepUnderWay::require_ended() const {
  require(
      !under_way_,
      "an earlier step on these embedding tables failed half-way on this rank; end the program");
}

void require_room_for_numbers(const GivenBags& bags, int ranks) {
  const std::uint64_t most = kMaxVertices32 / static_cast<std::uint64_t>(ranks);
  require<UsageError>(std::max<std::uint64_t>(bags.ids.size(), bags.offsets.size()) < most,
                      "a batch has {} ids in {} bags; at most {} are supported on each of {} ranks",
                      bags.ids.size(), bags.count(), most - 1, ranks);
}

}  // namespace plait
