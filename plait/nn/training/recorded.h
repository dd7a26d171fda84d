// Work on a GPU that is done again and again, recorded once and replayed (CUDA graphs): the host
// then enqueues a step of training at once, where it would take longer over its hundred kernels
// than the GPU does.
#pragma once

#include <torch/types.h>

#include <array>
#include <functional>
#include <memory>

#include "plait/nn/operations/graph_handle.h"

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

// Pieces of work that follow each other and work on the same memory: each overwrites what the one
// before has left there, except tensors that are kept.
class Recorder {
 public:
  enum Piece { step, evaluation };
  static constexpr std::size_t kPieces = 2;
  static constexpr int kCallsBefore = 2;  // that a piece is not recorded yet

  // Makes a recorder of work with a graph, which outlives this. If that is not wanted, or phases
  // are being timed (base/profile.h), all calls just do the work. Work that is collective can be
  // recorded if GraphHandle::recordable().
  Recorder(GraphHandle& graph, bool wanted);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Does the work; the third call of a piece records it, and later ones replay what was recorded,
  // so it must be the same each time, read what changes from the GPU's memory, and take and give
  // back no memory but libtorch's. The first two may do what is done once. Tensors that it keeps
  // are overwritten by each replay. All calls come from one thread, under one OwnStream. The first
  // three of a piece come on all ranks in the same order, later ones too if the work is collective.
  //
  // Where a recording does not fit into the GPU's memory on some rank, no rank records any piece
  // from then on, and a warning on stderr says so; the work that the recording had begun with is
  // then done anew.
  void run(Piece piece, const std::function<void()>& work);
  // Tells whether a piece is replayed.
  bool replays(Piece piece) const { return pieces_[piece].graph != nullptr; }

 private:
  struct Graph;
  struct Recorded {
    int calls = 0;
    std::unique_ptr<Graph> graph;
    std::uint32_t steps = 0;  // between ranks, in a replay
  };
  void record(Recorded& piece, const std::function<void()>& work);

  GraphHandle& handle_;
  bool possible_;
  std::uint64_t pool_ = 0;  // the number of the memory that all pieces work on
  std::array<Recorded, kPieces> pieces_;
};

// Collective. Tells whether work that a rank is about to record fits into its GPU's memory on all
// ranks; `fits`: on this one. If not, a warning on stderr says so.
bool all_can_record(World& world, bool fits);

}  // namespace plait
