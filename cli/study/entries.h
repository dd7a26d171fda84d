// The studies of each paper, and the entries that they are made of.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/study/table.h"

namespace plait::cli {

using StudyEntries = std::vector<StudyEntry>;

// Each is the table of the studies of one paper, in its file.
std::span<const Study> studies_of_mgg();
std::span<const Study> studies_of_gnnadvisor();
std::span<const Study> studies_of_wholegraph();

// Returns an entry of this strategy, which times a step. Throws UsageError for a route that cannot
// be.
StudyEntry study_entry(std::string name, const StudyInput& in, Strategy strategy);
// Returns the same, named after its strategy.
StudyEntry study_by(const StudyInput& in, Strategy strategy);
// Returns an entry of the strategy that is chosen by itself, which times this part.
StudyEntry study_part(std::string name, const StudyInput& in, StudyPart part);
// Returns an entry of strategy get, whose tuning `set` changes.
template <class Set>
StudyEntry study_get(std::string name, const StudyInput& in, const Set& set) {
  StudyEntry made = study_entry(std::move(name), in, Strategy::get);
  set(made.options.route.get);
  return made;
}
// Returns the entry with the paper's ratio.
StudyEntry claimed(StudyEntry made, double claim);

}  // namespace plait::cli
