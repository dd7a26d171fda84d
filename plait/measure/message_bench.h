// A search for connected components whose labels move as messages (exchange/messages.h), to time
// rounds of a search over a graph. Each vertex ends with the least number of a vertex that it is
// connected with. Vertices have the numbers from before renumbering.
//
// In a round, every row whose label has changed offers it to the rows at its edges; labels of halo
// slots go to their owners. The search ends when no label has changed on any rank. It needs at
// most as many rounds as the longest of the shortest paths to a least vertex has edges, and two
// more.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plait/exchange/exchange.h"

namespace plait {

class ComponentSearch {
 public:
  virtual ~ComponentSearch() = default;
  // Collective. Searches from the beginning, and returns the number of rounds. Throws as
  // Messages::push().
  std::uint64_t run();
  // Returns the labels of own rows, on the host.
  virtual std::vector<std::uint32_t> labels() const = 0;
  const MessageCost& cost() const { return messages_->cost(); }

 protected:
  explicit ComponentSearch(std::unique_ptr<Messages> messages) : messages_(std::move(messages)) {}
  // Gives each slot the number of its vertex, and marks own slots alone.
  virtual void begin() = 0;
  // Offers the labels of marked own slots to the slots at their edges. Those that take one are
  // marked after it, and no others.
  virtual void offer() = 0;
  // One label, and one mark, per slot.
  virtual std::span<std::uint32_t> slots() = 0;
  virtual SlotMarks marks() = 0;

 private:
  std::unique_ptr<Messages> messages_;
};

// Collective. The exchange, which outlives the search, is on the CPU and of a graph that is its own
// transpose, with fewer than 2^32 vertices, and has slot_vertices. `own`: own rows.
std::unique_ptr<ComponentSearch> make_cpu_search(Exchange& exchange, std::uint64_t own);

}  // namespace plait
