#include "plait/aggregate/sample_counts.h"

#include <algorithm>

namespace plait {
namespace {

std::uint64_t round_up(std::uint64_t count, std::uint64_t step) {
  return (count + step - 1) / step * step;
}

std::uint64_t rows_for(std::uint64_t most) {
  return round_up(std::max<std::uint64_t>(most + most / 50, 1), 64);
}

// Rooms of samples without cut rows have none: then no launch is needed that adds their sums.
std::uint32_t cut_for(std::uint32_t most, std::uint32_t more) {
  return most == 0 ? 0 : most + most / 4 + more;
}

// The groups besides one for each row.
std::uint32_t of_cut_rows(const GroupCounts& counts, std::uint64_t rows) {
  return static_cast<std::uint32_t>(counts.groups - std::min<std::uint64_t>(counts.groups, rows));
}

// The largest counts of one direction.
struct Largest {
  GroupCounts of;
  std::uint32_t of_cut_rows = 0;
  bool all_long = true;  // no sample has short groups: other kernels sum them

  void add(const GroupCounts& counts, std::uint64_t rows) {
    all_long = all_long && counts.long_groups == counts.groups;
    of.long_groups = std::max(of.long_groups, counts.long_groups);
    of.few = std::max(of.few, counts.few);
    of.hubs = std::max(of.hubs, counts.hubs);
    of.partial_sums = std::max(of.partial_sums, counts.partial_sums);
    of_cut_rows = std::max(of_cut_rows, plait::of_cut_rows(counts, rows));
  }
  // `rows`, `edges`: of the room.
  GroupCounts room(std::uint64_t rows, EdgeOffset edges) const {
    const auto groups = static_cast<std::uint32_t>(rows) + cut_for(of_cut_rows, 256);
    return {.groups = groups,
            .long_groups = all_long ? groups
                                    : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                          groups, rows_for(of.long_groups))),
            .few = cut_for(of.few, 64),
            .hubs = cut_for(of.hubs, 16),
            .partial_sums = cut_for(of.partial_sums, 256),
            .edges = edges};
  }
};

bool groups_fit(const GroupCounts& sample, std::uint64_t rows, const GroupCounts& room,
                std::uint64_t room_rows) {
  return sample.long_groups <= room.long_groups && sample.few <= room.few &&
         sample.hubs <= room.hubs && sample.partial_sums <= room.partial_sums &&
         of_cut_rows(sample, rows) <= of_cut_rows(room, room_rows);
}

}  // namespace

SampleCounts room_for(std::span<const SampleCounts> seen) {
  SampleCounts room;
  Largest along, against;
  bool gradients = false;
  for (const SampleCounts& sample : seen) {
    room.own = std::max(room.own, rows_for(sample.own));
    room.inputs = std::max(room.inputs, rows_for(sample.inputs));
    room.edges = std::max(room.edges, round_up(sample.edges + sample.edges / 20, 256));
    room.weighted |= sample.weighted;
    room.has_vertices |= sample.has_vertices;
    along.add(sample.along, sample.own);
    if (sample.against) against.add(*sample.against, sample.inputs), gradients = true;
  }
  room.along = along.room(room.own, room.edges);
  if (gradients) room.against = against.room(room.inputs, room.edges);
  return room;
}

bool fits(const SampleCounts& sample, const SampleCounts& room) {
  return sample.own <= room.own && sample.inputs <= room.inputs && sample.edges <= room.edges &&
         sample.weighted == room.weighted && sample.has_vertices == room.has_vertices &&
         sample.against.has_value() == room.against.has_value() &&
         groups_fit(sample.along, sample.own, room.along, room.own) &&
         (!room.against || groups_fit(*sample.against, sample.inputs, *room.against, room.inputs));
}

}  // namespace plait
