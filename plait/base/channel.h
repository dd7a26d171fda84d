// A way between ranks for one thread of each besides the main thread, which calls World's
// functions.
#pragma once

#include <cstddef>
#include <span>

#include "plait/base/error.h"

namespace plait {

// A rank takes no part in an exchange any more. The main thread hands the text to World::explain(),
// which waits until the watch over ranks can name the rank.
class BrokenChannelError : public Error {
 public:
  using Error::Error;
};

// One thread at a time uses it. The watch over ranks does not count what goes through it: all ranks
// make the same number of calls, also when they stop early.
class Channel {
 public:
  virtual ~Channel() = default;
  // Collective. send[r] goes to rank r; received[r] comes from rank r. Both sides know the sizes;
  // all_to_all.h has exchanges in which they do not. Throws BrokenChannelError when a peer
  // vanishes, and once the watch has lost a rank.
  virtual void all_to_all(std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> received) = 0;
};

}  // namespace plait
