#include "plait/measure/copy_rate.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plait/base/array.h"
#include "plait/base/parallel.h"
#include "plait/base/timer.h"

namespace plait {

double measure_copy_rate(World& world) {
  constexpr std::size_t kBytes = std::size_t{32} << 20, kPiece = std::size_t{1} << 18;
  constexpr double kSeconds = 0.1;
  Buffer<std::byte> from(kBytes), to(kBytes);
  const auto copy = [&] {
    parallel_blocks(kBytes, kPiece, [&](std::size_t begin, std::size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, end - begin);
    });
  };
  std::ranges::fill(from, std::byte{1});
  copy();  // takes the pages
  world.barrier();
  const Stopwatch watch;
  double copied = 0;
  do {
    copy();
    copied += kBytes;
  } while (watch.seconds() < kSeconds);
  std::array<double, 2> sums{copied, watch.seconds()};
  world.all_reduce_sum(sums);
  return sums[0] / sums[1];
}

}  // namespace plait
