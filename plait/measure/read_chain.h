// The latency of memory (WholeGraph, table I): one thread reads words. Each word tells where the
// next word is, so that no read can begin before the read before it has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plait/base/host_device.h"
#include "plait/world/world.h"

namespace plait {

// The memory that is read.
enum class ChainMemory {
  own,      // of rank 0, which reads
  ranks,    // equal parts on all ranks, which rank 0 reads by plain addresses
  managed,  // on GPUs: unified memory; each GPU has written an equal part of it
};

struct ChainQuestion {
  ChainMemory memory = ChainMemory::own;
  std::uint64_t bytes = 0;  // of all parts together; parts have the next power of two
  bool gpus = false;
  int repetitions = 1;
};

// Collective. Rank 0 reads while the others wait; before each repetition, GPUs write their parts of
// managed memory anew, which brings its pages back to them. Returns on all ranks the ms of 1,000
// reads, ascending. Throws MismatchError if reads end elsewhere than the words that were written
// tell, UsageError for managed memory without GPUs, DoesNotFitError before memory is taken, and
// Error if rank 0's process does not see the GPUs of all ranks.
std::vector<double> time_read_chain(World& world, const ChainQuestion& question);

// The parts have 1 << shift words each.
struct ChainShape {
  unsigned shift = 0;
  std::uint64_t parts = 1;

  PLAIT_HOST_DEVICE constexpr std::uint64_t words() const { return parts << shift; }
};
// Returns the shape of at least so many bytes.
ChainShape chain_shape(std::uint64_t bytes, std::uint64_t parts);
// Returns the number of reads of one repetition, and the place of the first one.
std::uint64_t chain_reads(ChainMemory memory);
std::uint64_t chain_begin(int repetition, const ChainShape& shape);

// Returns the word that stands at a place of all parts.
PLAIT_HOST_DEVICE constexpr std::uint64_t chain_word(std::uint64_t place) {
  std::uint64_t word = (place + 1) * 0x9E3779B97F4A7C15u;
  word = (word ^ word >> 32) * 0xD1342543DE82EF95u;
  return word ^ word >> 29;
}
// Follows the chain for so many reads. word_at(place) reads. Returns the place at the end. The
// number of the read takes part, so that no chain runs in a circle.
template <class WordAt>
PLAIT_HOST_DEVICE std::uint64_t follow_chain(std::uint64_t place, std::uint64_t reads,
                                             std::uint64_t words, const WordAt& word_at) {
  for (std::uint64_t k = 0; k < reads; ++k) {
    const std::uint64_t word = (word_at(place) + k) * 0x9E3779B97F4A7C15u;
    place = static_cast<std::uint64_t>(static_cast<unsigned __int128>(word) * words >> 64);
  }
  return place;
}
// Collective. For each repetition, all ranks call `prepare`, and then rank 0 calls
// `follow(repetition)`, which returns the ms of 1,000 reads. The first repetition, -1, warms up.
// Returns all others' times on all ranks, ascending. An error of `follow` is thrown on all ranks.
std::vector<double> time_repetitions(World& world, int repetitions,
                                     const std::function<void()>& prepare,
                                     const std::function<double(int repetition)>& follow);
// Throws MismatchError unless a chain from `begin` ends here.
void check_chain(std::uint64_t begin, std::uint64_t reads, const ChainShape& shape,
                 std::uint64_t end);

}  // namespace plait
