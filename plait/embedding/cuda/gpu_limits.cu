#include "plait/base/fault.h"
#include "plait/embedding/cuda/gpu_limits.cuh"
#include "plait/embedding/cuda/row_norms.cuh"
#include "plait/embedding/row_norms.h"
#include "plait/world/watched_wait.h"

namespace plait {
namespace {

constexpr const char* kWhat = "norms of embedding tables";

}  // namespace

// A rank without columns of a shared table takes part in the meetings for it.
GpuNormLimits::GpuNormLimits(World& world, const EmbeddingLayout& layout,
                             const EmbeddingRules& rules)
    : world_(world), layout_(layout), rules_(rules) {
  std::vector<std::size_t> tables;
  for (std::size_t t = 0; t < layout.tables(); ++t)
    if (is_shared(t) || layout.piece(t, world.rank()).columns > 0) tables.push_back(t);
  numbers_ = number_rows(layout, world.rank(), std::move(tables), kNoRow);
  bases_ = DeviceArray<Slot>(std::span<const Slot>(numbers_.bases));
  readback_.reserve(numbers_);
}

void GpuNormLimits::limit_rows(const StepBags& step, const TablePieces& pieces) {
  StepEdges edges = edges_to_rows(step, numbers_);
  NamedRows named(std::move(edges.edges), numbers_, bases_.data(), readback_, step.stream);
  watch_while(world_, [&] { named.wait(); });
  DeviceArray<double> sums(named.before(numbers_.tables.size()),
                           FromPool{step.stream, step.stream});
  for (std::size_t place = 0; place < numbers_.tables.size(); ++place) {
    const std::size_t t = numbers_.tables[place];
    const std::uint64_t first = named.before(place), count = named.before(place + 1) - first;
    if (count == 0) continue;  // on all ranks that share the table
    const SomeRows rows{named.rows() + first, count, numbers_.bases[place],
                        pieces.rows(t, layout_.piece(t, world_.rank()).columns)};
    double* const of_rows = sums.data() + first;
    norm_sums(rules_.norm, rows, of_rows, step.stream);
    if (is_shared(t)) join({of_rows, count}, step.stream);
    limit_norms(rules_.norm, rows, of_rows, step.stream);
  }
}

// Collective. Joins sums of powers over ranks, through the host.
void GpuNormLimits::join(std::span<double> sums_there, cudaStream_t stream) const {
  std::vector<double> here(sums_there.size());
  watch_while(world_, [&] {  // the copy itself waits: `here` is not pinned
    check_cuda(cudaMemcpyAsync(here.data(), sums_there.data(), sums_there.size_bytes(),
                               cudaMemcpyDeviceToHost, stream),
               kWhat);
    check_cuda(cudaStreamSynchronize(stream), kWhat);
  });
  fault_point();
  join_norm_sums(rules_.norm, world_.all_gather(std::as_bytes(std::span(here))), here);
  check_cuda(cudaMemcpyAsync(sums_there.data(), here.data(), sums_there.size_bytes(),
                             cudaMemcpyHostToDevice, stream),
             kWhat);
  check_cuda(cudaStreamSynchronize(stream), kWhat);  // `here` goes
}

}  // namespace plait
