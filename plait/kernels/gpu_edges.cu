#include <algorithm>

#include "plait/kernels/attention_cuda.h"
#include "plait/kernels/gpu_edges.h"
#include "plait/kernels/max_rows_cuda.h"
#include "plait/kernels/row_cut.h"

namespace plait {
namespace {

EdgeOffset last_end(std::span<const EdgeOffset> end) {
  return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
}

EdgeOffset edge_count(const EdgeRows& edges) {
  EdgeOffset count = 0;
  for (std::size_t i = 0; i < edges.begin.size(); ++i) count += edges.end[i] - edges.begin[i];
  return count;
}

}  // namespace

struct GpuEdges::Arrays {
  explicit Arrays(const EdgeRows& edges)
      : begin(edges.begin),
        end(edges.end),
        columns(std::span(edges.columns, last_end(edges.end))),
        groups(begin.data(), end.data(), begin.size(),
               {.most = group_size(edge_count(edges), begin.size())}, nullptr) {}

  // The same for arguments of every kind.
  template <class Args>
  Args on_gpu(Args args) const {
    args.edges.begin = {begin.data(), begin.size()};
    args.edges.end = {end.data(), end.size()};
    args.edges.columns = columns.data();
    return args;
  }

  DeviceArray<EdgeOffset> begin, end;
  DeviceArray<Slot> columns;
  RowGroups groups;
};

GpuEdges::GpuEdges(const EdgeRows& edges) : arrays_(std::make_unique<const Arrays>(edges)) {}
GpuEdges::~GpuEdges() = default;

std::uint64_t GpuEdges::rows() const { return arrays_->begin.size(); }

std::uint64_t GpuEdges::attention_scratch(const AttentionShape& shape) const {
  return attention_backward_scratch(arrays_->groups, rows(), shape);
}
void GpuEdges::attention(AttentionForward args, float* scratch, void* stream) const {
  plait::attention(arrays_->on_gpu(args), arrays_->groups, scratch,
                   static_cast<cudaStream_t>(stream));
}
void GpuEdges::attention_backward(AttentionBackward args, float* scratch, void* stream) const {
  plait::attention_backward(arrays_->on_gpu(args), arrays_->groups, scratch,
                            static_cast<cudaStream_t>(stream));
}

std::uint64_t GpuEdges::max_scratch(std::uint64_t width) const {
  return max_rows_scratch(arrays_->groups, width);
}
void GpuEdges::max_rows(MaxForward args, float* scratch, void* stream) const {
  plait::max_rows(arrays_->on_gpu(args), arrays_->groups, scratch,
                  static_cast<cudaStream_t>(stream));
}
void GpuEdges::max_rows_backward(MaxBackward args, float* scratch, void* stream) const {
  plait::max_rows_backward(arrays_->on_gpu(args), arrays_->groups, scratch,
                           static_cast<cudaStream_t>(stream));
}

}  // namespace plait
