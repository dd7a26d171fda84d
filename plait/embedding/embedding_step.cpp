#include "plait/embedding/embedding_step.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

// The word that a rank brings to the barrier. From the highest bit: its bags are wrong; the step;
// it wants gradients; it lacks pieces; the type of its pieces, two bits; the last 11 bits of the
// batch's number; the bytes that it needs.
constexpr unsigned kFailedBit = 63, kStepBit = 62, kWantsBit = 61, kLacksBit = 60, kTypeBit = 58,
                   kNumberBit = 47;
constexpr std::uint64_t kBytes = (std::uint64_t{1} << kNumberBit) - 1;
constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kTypeBit) - 1 - kBytes;
constexpr std::uint64_t kStepAndNumber = std::uint64_t{1} << kStepBit | kNumbers;

std::uint64_t word_of(const EmbeddingStepOf& s) {
  return std::uint64_t{!s.failure.empty()} << kFailedBit |
         static_cast<std::uint64_t>(s.step) << kStepBit | std::uint64_t{s.wants} << kWantsBit |
         std::uint64_t{s.lacks_pieces} << kLacksBit |
         static_cast<std::uint64_t>(s.type) << kTypeBit | (s.number << kNumberBit & kNumbers) |
         (s.bytes & kBytes);
}

DType type_of(std::uint64_t word) { return static_cast<DType>(word >> kTypeBit & 3); }

// Returns the first rank whose word has the bit, or has it not; or the number of ranks.
std::size_t first_rank(std::span<const std::uint64_t> words, unsigned bit, bool has) {
  const auto is = [&](std::uint64_t word) { return (word >> bit & 1) == std::uint64_t{has}; };
  return static_cast<std::size_t>(std::ranges::find_if(words, is) - words.begin());
}

void require_gradients_for_all(std::span<const std::uint64_t> words, EmbeddingStep step) {
  const std::size_t wants = first_rank(words, kWantsBit, true);
  if (wants == words.size()) return;
  if (step == EmbeddingStep::forward) {
    const std::size_t not_so = first_rank(words, kWantsBit, false);
    require_on_all<UsageError>(
        not_so == words.size(),
        "a step backward will follow on rank {}, but not on rank {}: tables or "
        "per_sample_weights must want gradients on all ranks or on none",
        wants, not_so);
    return;
  }
  const std::size_t lacks = first_rank(words, kLacksBit, true);
  require_on_all<UsageError>(
      lacks == words.size(),
      "rank {} wants gradients of per_sample_weights, which need the tables as they "
      "were in forward(), but those of rank {} have changed since, or are inference "
      "tensors",
      wants, lacks);
}

}  // namespace

std::uint64_t begin_embedding_step(World& world, SymmetricHeap& heap, const EmbeddingStepOf& mine) {
  const auto words = heap.barrier(word_of(mine));
  if (first_rank(words, kFailedBit, true) < words.size())
    throw OnAllRanks<UsageError>(first_failure(world, mine.failure));
  std::uint64_t most = 0;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    require_on_all<UsageError>(
        ((words[rank] ^ words[0]) & kStepAndNumber) == 0,
        "ranks 0 and {} are not at the same step of the same batch of an embedding "
        "table; all ranks must make the same calls in the same order",
        rank);
    require_on_all<UsageError>(
        type_of(words[rank]) == type_of(words[0]),
        "embedding tables are {} on rank 0, but {} on rank {}; convert them on all "
        "ranks or on none",
        to_string(type_of(words[0])), to_string(type_of(words[rank])), rank);
    most = std::max(most, words[rank] & kBytes);
  }
  require_gradients_for_all(words, mine.step);
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
