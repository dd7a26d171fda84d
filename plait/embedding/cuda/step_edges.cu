#include "plait/embedding/cuda/step_edges.cuh"

namespace plait {
namespace {

// Edges in the order of readers, so that the edges of a row are in it, too.
class Plan {
 public:
  Plan(const StepBags& step, const RowNumbers& numbers) : step_(step), numbers_(numbers) {
    tables_.resize(step.batches.size() * step.pieces.tables);
    for (const TableGroup& group : numbers.groups) {
      std::uint64_t bags =
          reads_in_place(group) ? step.own().sizes.per_table * step.pieces.tables : 0;
      if (!reads_in_place(group))
        for (const DeviceBatch& batch : step.batches)
          bags += batch.sizes.per_table * (group.end - group.first);
      rows_.push_back(bags);
      firsts_.push_back(gathered_);
      constexpr std::uint64_t kAlign = 64;  // numbers
      if (!reads_in_place(group))
        gathered_ += (bags * group.columns + kAlign - 1) / kAlign * kAlign;
    }
  }

  // The edges of a reader's bags of the table at a place of the numbering. They read nothing.
  EdgeTable& add(std::size_t reader, std::size_t place) {
    const std::size_t t = numbers_.tables[place];
    EdgeTable& table = tables_[reader * step_.pieces.tables + t];
    table = {.edge = edges_, .row = numbers_.bases[place], .wanted = true};
    edges_ += step_.batches[reader].ids_of(t);
    weighted_ = weighted_ || step_.batches[reader].sizes.weighted != 0;
    return table;
  }
  // Adds the edges of a reader's bags of a group of tables.
  void add_group(std::size_t reader, std::size_t g, std::uint64_t& rows_before) {
    const TableGroup& group = numbers_.groups[g];
    const bool in_place = reads_in_place(group);
    if (in_place && reader != static_cast<std::size_t>(step_.pieces.rank)) return;
    for (std::size_t place = group.first; place < group.end; ++place) {
      EdgeTable& table = add(reader, place);
      if (in_place) {
        table.from = static_cast<Slot>(numbers_.tables[place]);
        table.from_step = static_cast<Slot>(step_.pieces.tables);
        continue;
      }
      table.gathers = true;
      table.from = static_cast<Slot>(rows_before);
      table.gathered = firsts_[g] + rows_before * group.columns;
      rows_before += step_.batches[reader].sizes.per_table;
    }
  }

  // Enqueues the edges.
  StepEdges write(bool with_gradients) {
    const FromPool pool{step_.stream, step_.stream};
    const bool weights = weighted_ || step_.pieces.mode == BagMode::mean;
    const bool places = step_.pieces.mode == BagMode::max;
    StepEdges found{OwnedEdges(edges_,
                               {.from = with_gradients,
                                .weights = with_gradients && weights,
                                .places = with_gradients && places},
                               pool),
                    DeviceArray<EdgeTable>(tables_.size(), pool)};
    check_cuda(
        cudaMemcpyAsync(found.tables.data(), tables_.data(), tables_.size() * sizeof(EdgeTable),
                        cudaMemcpyHostToDevice, step_.stream),
        "edges of bags");
    write_edges(step_.pieces, step_.readers, found.tables.data(), found.edges, step_.stream);
    found.rows = rows_, found.firsts = firsts_, found.gathered = gathered_;
    return found;
  }

 private:
  bool reads_in_place(const TableGroup& group) const {
    return group.replicated || step_.batches.size() == 1;
  }

  const StepBags& step_;
  const RowNumbers& numbers_;
  std::vector<EdgeTable> tables_;
  std::vector<std::uint64_t> rows_, firsts_;  // as StepEdges'
  std::uint64_t gathered_ = 0, edges_ = 0;
  bool weighted_ = false;
};

}  // namespace

StepEdges edges_to_rows(const StepBags& step, const RowNumbers& numbers) {
  Plan plan(step, numbers);
  for (std::size_t reader = 0; reader < step.batches.size(); ++reader)
    for (std::size_t place = 0; place < numbers.tables.size(); ++place) plan.add(reader, place);
  return plan.write(false);
}

StepEdges edges_to_gradients(const StepBags& step, const RowNumbers& numbers) {
  Plan plan(step, numbers);
  std::vector<std::uint64_t> rows_before(numbers.groups.size());
  for (std::size_t reader = 0; reader < step.batches.size(); ++reader)
    for (std::size_t g = 0; g < numbers.groups.size(); ++g)
      plan.add_group(reader, g, rows_before[g]);
  return plan.write(true);
}

}  // namespace plait
