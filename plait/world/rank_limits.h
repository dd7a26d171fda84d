// The most ranks that this host can take.
#pragma once

namespace plait {

// Throws UsageError if this host's processors are too few for `ranks` ranks, DoesNotFitError if its
// memory is.
void require_room_for_ranks(int ranks);

}  // namespace plait
