#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/embedding/cuda/gpu_gradients.cuh"
#include "plait/world/watched_wait.h"

namespace plait {
namespace {

bool is_replicated(const EmbeddingLayout& layout) {
  for (std::size_t t = 0; t < layout.tables(); ++t)
    if (layout.table(t).split == EmbeddingSplit::replicated) return true;
  return false;
}

// Tells whether the columns of all pieces that gather gradients are multiples of four.
bool gathers_in_vectors(const EmbeddingLayout& layout, const RowNumbers& numbers, int rank) {
  return layout.width() % 4 == 0 && std::ranges::all_of(numbers.tables, [&](std::size_t t) {
           const EmbeddingPiece piece = layout.piece(t, rank);
           return piece.first_column % 4 == 0 && piece.columns % 4 == 0;
         });
}

// The gradients that the edges of a step read.
class Gathered {
 public:
  // Makes room, and enqueues the gathering.
  Gathered(const BackwardStep& step, const StepEdges& edges, bool in_vectors) {
    const StepBags& bags = step.bags;
    memory_.add(to_.sums, edges.gathered);
    memory_.add(to_.places, bags.pieces.mode == BagMode::max ? edges.gathered : 0);
    memory_.allocate(FromPool{bags.stream, bags.stream});
    to_.in_vectors = in_vectors;
    if (edges.gathered > 0)
      gather_gradients(bags.pieces, bags.readers, edges.tables.data(), to_, bags.stream);
  }
  // Returns the rows of a group of tables, which begin at number `first`.
  GradientRows rows(std::uint64_t first, std::uint64_t count, std::uint64_t columns) const {
    return {to_.sums + first, count, columns, columns,
            to_.places != nullptr ? to_.places + first : nullptr};
  }

 private:
  GatheredGradients to_;
  DeviceArrays memory_;
};

// Makes room for the gradients of a group of tables, and notes the place of each table's.
SumOfGroup sum_in_room(const BackwardStep& step, const NamedRows& rows, const RowNumbers& numbers,
                       const TableGroup& group, std::vector<RowGradients>& found) {
  const std::uint64_t count = rows.rows_of(group);
  SumOfGroup sum;
  if (count == 0) return sum;
  sum.values = static_cast<float*>(step.room(count * group.columns * sizeof(float)));
  sum.rows = static_cast<std::int64_t*>(step.room(count * sizeof(std::int64_t)));
  for (std::size_t place = group.first; place < group.end; ++place) {
    const std::uint64_t first = rows.before(place) - rows.before(group.first);
    const std::uint64_t of_table = rows.before(place + 1) - rows.before(place);
    if (of_table > 0)
      found[numbers.tables[place]] = {sum.rows + first, sum.values + first * group.columns,
                                      of_table};
  }
  return sum;
}

}  // namespace

GpuGradients::GpuGradients(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules,
                           std::uint64_t most)
    : world_(world), layout_(layout), rules_(rules), joins_(is_replicated(layout)) {
  for (RowNumbers& numbers : number_rows(layout, world.rank(), most)) {
    readback_.reserve(numbers);
    DeviceArray<Slot> bases{std::span<const Slot>(numbers.bases)};
    passes_.push_back({std::move(numbers), std::move(bases)});
  }
}

std::vector<RowGradients> GpuGradients::sum(const BackwardStep& step, SymmetricHeap& heap) {
  std::vector<RowGradients> found(layout_.tables());
  for (const Pass& pass : passes_) sum_pass(step, pass, found);
  if (joins_) join(step, heap, found);
  return found;
}

// Sorts the edges to all tables of the pass at once. While the host waits for the numbers of rows,
// the GPU gathers gradients.
void GpuGradients::sum_pass(const BackwardStep& step, const Pass& pass,
                            std::vector<RowGradients>& found) {
  const RowNumbers& numbers = pass.numbers;
  StepEdges edges = edges_to_gradients(step.bags, numbers);
  NamedRows rows(std::move(edges.edges), numbers, pass.bases.data(), readback_, step.bags.stream);
  const Gathered gathered(step, edges, gathers_in_vectors(layout_, numbers, world_.rank()));
  watch_while(world_, [&] { rows.wait(); });
  std::vector<SumOfGroup> sums;
  for (std::size_t g = 0; g < numbers.groups.size(); ++g) {
    const TableGroup& group = numbers.groups[g];
    SumOfGroup sum = group.replicated ? shared_sum(step, rows, group)
                                      : sum_in_room(step, rows, numbers, group, found);
    sum.divided = rules_.by_frequency && !group.replicated;  // join() divides
    sum.gradients = group.replicated || layout_.ranks() == 1
                        ? GradientRows{step.own.sums, edges.rows[g], group.columns, layout_.width(),
                                       step.own.places}
                        : gathered.rows(edges.firsts[g], edges.rows[g], group.columns);
    sums.push_back(sum);
  }
  sum_by_row(rows, sums, step.bags.stream);
}

// The sums of replicated tables go where other ranks read them.
SumOfGroup GpuGradients::shared_sum(const BackwardStep& step, const NamedRows& rows,
                                    const TableGroup& group) {
  const DevicePart& mine = step.parts[static_cast<std::size_t>(world_.rank())];
  shared_rows_ = rows.rows_of(group);
  return {.gradients = {},
          .values = mine.shared_values,
          .numbers = mine.shared_rows,
          .ids = rules_.by_frequency ? mine.shared_counts : nullptr,
          .done = &shared_};
}

// Adds the sums of all ranks in the order of ranks. There are several ranks (EmbeddingLayout).
// Sums of other tables, which were enqueued behind the sums of replicated ones, go on meanwhile.
void GpuGradients::join(const BackwardStep& step, SymmetricHeap& heap,
                        std::vector<RowGradients>& found) {
  watch_while(world_, [&] {
    check_cuda(cudaEventSynchronize(shared_.get()), "sums of replicated tables");
  });
  fault_point();
  const std::vector<std::uint64_t> counts = heap.barrier(shared_rows_);
  fault_point();
  const std::uint64_t width = layout_.width();
  const FromPool pool{step.bags.stream, step.bags.stream};
  JoinedRows shared{.at = {}, .count = layout_.ranks()};
  std::uint64_t all = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const DevicePart& of = step.parts[rank];
    shared.at[rank] = {.rows = of.shared_rows,
                       .counts = rules_.by_frequency ? of.shared_counts : nullptr,
                       .values = of.shared_values,
                       .count = counts[rank],
                       .first = all};
    all += counts[rank];
  }
  const Pass& pass = passes_.front();
  const TableGroup& group = pass.numbers.groups.front();
  const auto tables = static_cast<std::ptrdiff_t>(group.end);
  const RowNumbers numbers{
      .tables = {pass.numbers.tables.begin(), pass.numbers.tables.begin() + tables},
      .bases = {pass.numbers.bases.begin(), pass.numbers.bases.begin() + tables + 1},
      .groups = {group}};
  OwnedEdges edges(all, {.counts = rules_.by_frequency}, pool);
  const DeviceArray<float> values(all * width, pool);
  gather_shared(shared, width, edges, const_cast<float*>(values.data()), step.bags.stream);
  NamedRows rows(std::move(edges), numbers, pass.bases.data(), readback_, step.bags.stream);
  watch_while(world_, [&] { rows.wait(); });
  SumOfGroup sum = sum_in_room(step, rows, numbers, group, found);
  sum.gradients = {values.data(), all, width, width};
  sum.divided = rules_.by_frequency;
  sum_by_row(rows, {&sum, 1}, step.bags.stream);
}

}  // namespace plait
