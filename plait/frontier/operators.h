// The operators with which analytics apps are written, for either device: CpuOperators
// (cpu/operators.h) and GpuOperators (cuda/operators.cuh) have the members below. An app is a
// template over them (apps/), compiled by the host's compiler and by nvcc. Its functors are lambdas
// marked PLAIT_HOST_DEVICE that copy pointers and numbers; they read and change values that other
// threads may change through shared_value.h.
//
//   view()                      the edges of own rows (graph.h), for functors
//   world(), graph()            the ranks, and the graph
//   slots<T>(value)             one value of T per slot, T of 4 or 8 bytes, in the device's memory;
//                               a Values<T> has data() and size()
//   array<T>(size, value)       so many values
//   array(span)                 copies of these, which stand on the host
//   first(values, count)        the first values, copied to the host
//   fill(values, value)         gives all of them this value
//   set(values, i, value)       changes one value
//   get(values, i)              returns one value
//   for_rows(count, f)          f(i) for every i below `count`
//   sum(count, f)               the sum of f(i), of std::uint64_t; on this rank
//   greatest(count, f)          the greatest f(i), or 0 if there is none
//   wait()                      returns when the work so far is done; throws LostRankError if a
//                               rank is lost whose values it has used
//   sum_edges<T>(edges, f, g)   for every own row the sum s, of type T, of f(row, slot, e) over the
//                               given edges of it, and then g(row, s), which returns a TwoSums.
//                               Returns the sums of these; on this rank. Edges are added in the
//                               order of edge_sums.h: s has the same bits on any number of ranks
//   keep(edges, p, kept)        takes the given edges of own rows for which p(row, slot, e), in
//                               their order, into Kept (below)
//   pull(values)                collective: halo slots take the values of their owners
//   push(values, how)           collective: owners merge the values of halo slots into their own,
//                               as Merge `how` does; sums leave 0 in halo slots
//   lend(values, use)           collective: calls use(rank, data) for each rank, in any order, with
//                               the values of that rank where this one can read them meanwhile
//   intersect(lists, lent, f)   for every own row and every entry v of its list whose own list is
//                               lent: finds the entries that both lists have (lists.h). Calls
//                               f(slot, times) for the row, for v and for these entries, so that
//                               all times of a slot add up to the number of findings that it has
//                               been in. There are about two calls per entry, not per finding
//   frontier(edges)             an empty frontier, whose rows have these edges
//   Communities                 the work of communities/ on this device (communities/on_cpu.h)
//
// A frontier is a set of own rows. It has
//
//   clear()                     takes all rows out, and begins at step 0
//   add(row)                    puts in one row that is not in it
//   fill(p)                     takes the own rows for which p(row), and no others; p is called
//                               once for each
//   fill(frontier, p)           takes only rows of that frontier, which may be this one
//   totals()                    collective: the rows of all ranks, and the edges that they have
//   step()                      the number of steps since clear()
//   for_edges(f)                f(row, slot, e) for every edge of the rows
//   advance(f, values, how)     collective: calls f for every edge of the rows. f changes
//                               values[slot] as Merge `how` would, and tells whether it did; values
//                               of halo slots are merged by their owners. The rows whose values
//                               have changed are the new frontier. As long as one rank has few
//                               rows, an advance may make several steps: f must not depend on their
//                               number
//   meet(edges, p, take)        collective: looks for the first of the given edges of each own row
//                               with p(row) whose other end is in the frontier of its owner, and
//                               calls take(row, slot, e) for it. The rows that have one are the new
//                               frontier. One step
//
// All are balanced by edges: a row of any length keeps no others waiting. Members of one rank's
// device throw as its memory and kernels do, and collective ones as Exchange and Messages.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/frontier/graph.h"

namespace plait {

// The rows of the frontiers of all ranks, and their edges.
struct FrontierTotals {
  std::uint64_t rows = 0, edges = 0;
};

// Two sums of unsigned integers, in which work on rows tells of its result.
struct TwoSums {
  std::uint64_t first = 0, second = 0;

  PLAIT_HOST_DEVICE void add(const TwoSums& more) {
    first += more.first;
    second += more.second;
  }
};

// Edges that were kept: those of row i are slots[begin[i]] .. slots[begin[i + 1] - 1].
template <class Operators>
struct Kept {
  typename Operators::template Values<std::uint64_t> begin;  // own rows + 1
  typename Operators::template Values<Slot> slots;
};

// Returns the bits of a word of marks (exchange/messages.h) that are of halo slots.
PLAIT_HOST_DEVICE inline std::uint32_t halo_bits(const GraphView& view, std::uint64_t word) {
  const std::uint64_t first = word * 32;
  std::uint32_t bits = ~std::uint32_t{0};
  if (first + 32 <= view.own) return 0;
  if (first < view.own) bits <<= view.own - first;
  if (view.slots - first < 32) bits &= (std::uint32_t{1} << (view.slots - first)) - 1;
  return bits;
}

// Below so many edges and rows, work is not worth being spread over threads.
inline constexpr std::uint64_t kFewEdges = 4096, kFewRows = 1024;
// Rows with more edges are divided.
inline constexpr std::uint64_t kLongRow = 4096;

}  // namespace plait
