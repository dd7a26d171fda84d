// The parts that registered operations share: errors as Python knows them, checks of tensors, and
// the world of this process.
#pragma once

#include <torch/custom_class.h>
#include <torch/library.h>
#include <torch/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/io/io.h"
#include "plait/kernels/dropout.h"
#include "plait/nn/operations/graph_handle.h"
#include "plait/partition/partition.h"
#include "plait/symmetric/agreement.h"
#include "python/edge_tensors.h"

namespace plait {

using OptionalTensor = std::optional<torch::Tensor>;

// The ranks that share this process's graphs, or this process alone (current_world.cpp). A world is
// never destroyed: handles that Python still holds when it exits refer to it. The end of the
// process leaves it. An operation reads this once: another thread may enter or leave plait.alone()
// meanwhile.
World& current_world();
// Returns the world of `what`, which an operation is to use. Throws Error if that has several ranks
// and this process works alone now: the others would not take part.
World& require_here(World& world, const char* what);
inline constexpr const char* kPlaced = "the graph was placed";  // for require_here()
// Tells whether this is a world of one in a process that has joined others.
bool is_beside_ranks(const World& world);
// Collective, at the first call for these ranks; under the lock of operations. Plans follow what
// `plait doctor --measure` measured of these GPUs. A process that works alone beside the ranks that
// it has joined takes nothing: all of them plan by one profile.
void take_measured_machine(World& world);
// Waits until a tensor on a GPU is there, under the watch over ranks (world/watched_wait.h). Call
// it before the host reads the tensor between two collectives: that read could wait without end.
void wait_for(const torch::Tensor& values);
void wait_for(const torch::Tensor& values, World& world);

// The state of a tensor at a time. The tensor is not kept alive.
class TensorState {
 public:
  explicit TensorState(const OptionalTensor& tensor);
  bool is(const OptionalTensor& tensor) const;

 private:
  bool given_ = false;
  std::optional<c10::weak_intrusive_ptr<c10::TensorImpl>> tensor_;  // unless it cannot be told
  std::uint32_t version_ = 0;
};

// The graph that was built of tensors of edges, kept for its next use.
struct BuiltGraph {
  TensorState index, weight;
  AnyCsr csr;
};

// The owner of each node, as Python holds it: torch.classes.plait.Partition.
struct PartitionHandle : torch::CustomClassHolder {
  PartitionHandle(World& w, Partition p, std::optional<BuiltGraph> b)
      : world(w), partition(std::move(p)), built(std::move(b)) {}
  World& world;  // of the ranks that own nodes
  const Partition partition;
  std::optional<BuiltGraph> built;  // the graph that the partition was made of, until one is placed
};
using PartitionRef = c10::intrusive_ptr<PartitionHandle>;

// Makes a GPU the current one until `guard` is destroyed; does nothing for the CPU. Throws
// UsageError for other devices.
void use_device(const torch::Device& device, c10::OptionalDeviceGuard& guard);

// A graph of edges that are tensors, and the owners of its nodes.
struct EdgesToPlace {
  World* world = nullptr;
  AnyCsr csr;  // nodes have the numbers that they have in the partition
  PartitionRef owners;
  bool symmetric = false;
};
// Collective, under the lock of operations. Without a partition, ranks own ranges of nodes with
// about as many edges.
EdgesToPlace edges_to_place(const EdgeTensors& edges, const std::optional<PartitionRef>& partition);

// Registers torch.classes.plait.Graph, once. Files that register operations on a graph call it
// first, because a library's files are initialised in no certain order.
void register_graph_class();
// Does the same for torch.classes.plait.Partition.
void register_partition_class();

// One operation on a graph, and one collective operation, at a time in a process: it uses all
// threads, and the graph's own rows in memory as its workspace; and exchanges of another one in its
// midst would pair differently on each rank. Python may call from many threads.
std::mutex& operation_mutex();

// Throws ValueError unless `t` is dense float32 on that device, where `what` is.
void check_dense(const torch::Tensor& t, const char* name, const torch::Device& device,
                 const char* what = "the graph");
// Throws ValueError unless x has one row for each of `rows` nodes.
void check_shape(const torch::Tensor& x, std::int64_t rows, const char* name = "x");

// The number of a step, which keys dropout: an int32 scalar. On a GPU it is read there, so that a
// captured step may find another number at each replay.
class Step {
 public:
  // 0 without a tensor. Throws ValueError unless it is an int32 scalar on that device.
  Step(const OptionalTensor& step, const torch::Device& device);
  // `dropout` outlives it, as this does.
  DropoutStep dropout_step(const Dropout& dropout, std::uint32_t layer) const;

 private:
  torch::Tensor step_;
};

// Throws ValueError for a path with a zero byte, at which the system would end it.
void check_path(const std::string& path);
// Returns how a file is read by the arguments of plait.Graph.load, with its warnings in `warnings`,
// which outlives the reading. Throws UsageError for an unknown word.
ReadOptions reading_options(std::int64_t vertices, bool directed, const std::string& first_line,
                            std::vector<std::string>& warnings);

// Turns errors into Python's: errors of arguments become a ValueError, memory that does not suffice
// a torch.OutOfMemoryError, which is a RuntimeError, and all others a RuntimeError, with the same
// line of text.
template <class Body>
auto with_python_errors(Body body) {
  try {
    return body();
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  } catch (const UsageError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  } catch (const DoesNotFitError& error) {
    C10_THROW_ERROR(OutOfMemoryError, error.what());
  } catch (const Error& error) {
    C10_THROW_ERROR(Error, error.what());
  }
}

// Returns parse(word). The error of a word that is not known begins with the argument: "wire='x':
// ".
template <class Parse>
auto parsed(std::string_view argument, const std::string& word, Parse parse) {
  try {
    return parse(word);
  } catch (const UsageError& error) {
    throw UsageError(setting(argument, word) + ": " + error.what());
  }
}

// Collective. Calls `work`, which is this rank's alone, before ranks meet: if it fails on one rank,
// all throw (on_all_or_none()); libtorch's errors of arguments and of memory keep their kinds.
template <class Work>
void prepare_on_all(World& world, Work work) {
  if (world.size() == 1) return work();
  on_all_or_none(world, [&] {
    try {
      work();
    } catch (const c10::ValueError& error) {
      throw UsageError(error.what_without_backtrace());
    } catch (const c10::OutOfMemoryError& error) {
      throw DoesNotFitError(error.what_without_backtrace());
    }
  });
}

}  // namespace plait
