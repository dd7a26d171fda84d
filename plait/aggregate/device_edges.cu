#include "plait/aggregate/device_edges_cuda.h"
#include "plait/kernels/attention_cuda.h"
#include "plait/kernels/max_rows_cuda.h"

namespace plait {

namespace {

Results results(float* data, std::uint64_t rows, std::uint64_t width) {
  return {data, data == nullptr ? 0 : rows * width};
}

// The arrays that an operation writes, of `rows` own rows.
std::vector<Results> results_of(const AttentionForward& o, std::uint64_t rows) {
  const AttentionShape& shape = o.shape;
  return {results(o.y, rows, shape.width()), results(o.u, rows, shape.width()),
          results(o.b, rows, shape.heads), results(o.norm, rows, shape.heads)};
}
std::vector<Results> results_of(const AttentionBackward& o, std::uint64_t rows) {
  return {results(o.dh, rows, o.shape.width()), results(o.ds, rows, o.shape.heads)};
}
std::vector<Results> results_of(const MaxForward& o, std::uint64_t rows) {
  return {results(o.y, rows, o.width), results(o.ties, rows, o.width)};
}
std::vector<Results> results_of(const MaxBackward& o, std::uint64_t rows) {
  return {results(o.dx, rows, o.width)};
}

}  // namespace

template <class Operation, class Scratch, class Kernel>
void DeviceEdges::run(const Rows& rows, std::uint64_t width, Operation& operation,
                      const Scratch& scratch_floats, const Kernel& kernel) {
  const DeviceShard& shard = graph_.shard;
  require_known(groups_ != nullptr, width, rows.stream);
  if (!groups_)
    groups_ = std::make_unique<RowGroups>(shard.offsets.data(), shard.offsets.data() + 1, shard.own,
                                          RowGroupOptions{.most = graph_.group_edges(shard.edges()),
                                                          .clusters = graph_.clusters.data()},
                                          rows.stream);
  const std::uint64_t floats = scratch_floats(*groups_);
  require_known(floats <= scratch_.size(), width, rows.stream);
  require_movable(rows.recorded && floats > scratch_.size(), width);
  const auto enqueue = [&](const float* slots) {
    operation.edges = {.begin = {shard.offsets.data(), shard.own},
                       .end = {shard.offsets.data() + 1, shard.own},
                       .columns = shard.slots.data(),
                       .x = {slots, row_stride(width), static_cast<Slot>(shard.own)}};
    kernel(*groups_);
  };
  scratch_.reserve(floats);  // before anything of the step is enqueued
  rows.strategy.gather({nullptr, nullptr, false, rows.rows, nullptr, width, rows.stream},
                       {.enqueue = enqueue, .results = results_of(operation, shard.own)});
}

void DeviceEdges::attention(const Rows& rows, AttentionForward operation) {
  set_vertices(operation.dropout);
  run(
      rows, operation.shape.forward_width(), operation,
      [&](const RowGroups& groups) { return attention_scratch(groups, operation.shape); },
      [&](const RowGroups& groups) {
        plait::attention(operation, groups, scratch_.data(), rows.stream);
      });
}

void DeviceEdges::attention_backward(const Rows& rows, AttentionBackward operation) {
  set_vertices(operation.dropout);
  run(
      rows, operation.shape.backward_width(), operation,
      [&](const RowGroups& groups) {
        return attention_backward_scratch(groups, graph_.shard.own, operation.shape);
      },
      [&](const RowGroups& groups) {
        plait::attention_backward(operation, groups, scratch_.data(), rows.stream);
      });
}

void DeviceEdges::max_rows(const Rows& rows, MaxForward operation) {
  run(
      rows, operation.width, operation,
      [&](const RowGroups& groups) { return max_rows_scratch(groups, operation.width); },
      [&](const RowGroups& groups) {
        plait::max_rows(operation, groups, scratch_.data(), rows.stream);
      });
}

void DeviceEdges::max_rows_backward(const Rows& rows, MaxBackward operation) {
  run(
      rows, operation.row_width(), operation,
      [&](const RowGroups& groups) { return max_rows_scratch(groups, operation.width); },
      [&](const RowGroups& groups) {
        plait::max_rows_backward(operation, groups, scratch_.data(), rows.stream);
      });
}

void DeviceEdges::set_vertices(AttentionDropout& dropout) const {
  if (!dropout.step.active()) return;
  require<UsageError>(vertices_.size() == graph_.shard.slot_count(),
                      "attention is dropped by global ids, which the graph was placed without");
  dropout.row_vertex = dropout.slot_vertex = vertices_.data();
}

}  // namespace plait
