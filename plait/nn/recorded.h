// Work on a GPU that is done again and again, recorded once and replayed (CUDA graphs): the host
// then enqueues a step of training at once, where it would take longer over its hundred kernels
// than the GPU does.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "plait/nn/graph_handle.h"

namespace plait {

// While it lives, what this thread gives libtorch to do on the GPU goes to a stream of its own:
// the default stream cannot be recorded. Does nothing on the CPU.
class OwnStream {
 public:
  explicit OwnStream(const torch::Device& device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  c10::Stream before_;
};

class Recorded {
 public:
  // Of work with a graph, which outlives this. If the graph's operations cannot be recorded, all
  // calls just do the work.
  explicit Recorded(GraphHandle& graph);
  ~Recorded();
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  // Does the work; the third call records it, and later ones replay what was recorded, so it must
  // be the same each time, read what changes from the GPU's memory, and take and give back no
  // memory but libtorch's. The first two may do what is done once. Tensors that it keeps are
  // overwritten by each replay. All calls come from one thread, under one OwnStream.
  void run(const std::function<void()>& work);

 private:
  struct Graph;
  GraphHandle& handle_;
  int calls_ = 0;
  std::uint32_t steps_ = 0;  // between ranks, in a replay
  std::unique_ptr<Graph> graph_;
};

}  // namespace plait
