// Messages between processes on CPUs (messages.h).
//
// A push in time: [write to the own outbox] barrier [read the outboxes of others, merge]. Each rank
// has two outboxes and takes them in turn: while peers may still read one, it writes to the other,
// and each is used again only after another barrier, at which its readers have been. So a push
// takes one barrier. Outboxes are bounded: a halo slot is in one at most once.
//
// Ranks of one host read outboxes in shared memory. If ranks are on several hosts, the same content
// travels by World::all_to_all().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/exchange/messages.h"
#include "plait/placement/shard.h"
#include "plait/symmetric/heap.h"

namespace plait {

// Places of the parts of a rank's outboxes, in bytes from their beginning.
class OutboxLayout {
 public:
  OutboxLayout(std::uint64_t ranks, std::uint64_t halo) : ranks_(ranks), halo_(halo) {}

  // A push's call, word and marked slots, then by rank the number of values that go there.
  std::uint64_t header(std::size_t turn) const { return turn * header_bytes(); }
  // The row numbers of the whole halo, which never change.
  std::uint64_t all_rows() const { return header(2); }
  // By halo slot: row numbers, and values of up to 8 bytes. Those for a rank begin at its first
  // halo slot.
  std::uint64_t rows(std::size_t turn) const { return all_rows() + (1 + turn) * rows_bytes(); }
  std::uint64_t values(std::size_t turn) const { return rows(2) + turn * 8 * halo_; }
  std::uint64_t bytes() const { return values(2); }

 private:
  static constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::uint64_t header_bytes() const { return padded((3 + ranks_) * sizeof(std::uint64_t)); }
  std::uint64_t rows_bytes() const { return padded(halo_ * sizeof(std::uint32_t)); }

  std::uint64_t ranks_, halo_;
};

class CpuMessages : public Messages {
 public:
  // Collective. The shard and the world outlive this. Throws DoesNotFitError on all ranks.
  CpuMessages(World& world, const Shard& shard);

  Pushed push(const SlotValues& values, SlotMarks marks, Merge how, std::uint64_t word) override;
  const MessageCost& cost() const override { return cost_; }

 private:
  // The values that one rank sends in a push, and its call.
  struct Arrived {
    std::uint64_t call, word, marked;
    std::uint64_t count;        // of values
    const std::uint32_t* rows;  // their row numbers on this rank
    const std::byte* values;
  };

  std::byte* outbox() { return heap_ ? heap_->part(world_.rank()).data() : private_.data(); }
  std::uint64_t* header_of(std::byte* outbox) const;
  template <class T>
  void write(std::span<const T> values, SlotMarks marks);
  template <class T>
  void reset_sent(std::span<T> values, SlotMarks marks, Merge how) const;
  std::vector<Arrived> exchange(std::uint64_t value_bytes);
  std::vector<Arrived> read_outboxes(std::uint64_t value_bytes);
  std::vector<Arrived> receive(std::uint64_t value_bytes);
  static bool alike(const std::vector<Arrived>& arrived);
  void require_alike(const std::vector<Arrived>& arrived, const std::optional<Error>& failure);
  std::uint64_t count_own(SlotMarks marks) const;
  template <class T>
  Pushed merge_arrived(std::span<T> values, SlotMarks marks, Merge how,
                       const std::vector<Arrived>& arrived);
  void make_private();
  std::uint32_t halo_bits(std::uint64_t word) const;
  template <class Visit>
  void for_words(std::size_t block, const Visit& visit) const;
  template <class Visit>
  void for_marked(SlotMarks marks, std::size_t block, const Visit& visit) const;
  std::size_t blocks() const;

  World& world_;
  const Shard& shard_;
  const std::size_t ranks_;
  std::vector<std::uint64_t> come_most_;  // by rank: the values that may come from it
  std::vector<OutboxLayout> layouts_;     // by rank
  std::vector<std::uint64_t> begins_;     // by rank: the first of its halo slots that is an own row
  std::unique_ptr<SymmetricHeap> heap_;   // on one host
  Buffer<std::byte> private_;             // else: the own outboxes
  // On several hosts, by rank: the own rows that are in its halo, and what came last.
  std::vector<std::vector<std::uint32_t>> all_rows_, rows_;
  std::vector<std::vector<std::uint64_t>> values_;
  std::size_t turn_ = 0;
  std::vector<std::uint64_t> marked_;  // by block of marks and rank; then where each block writes
  MessageCost cost_;
};

}  // namespace plait
