// Replaces nn/training/cuda in a build without CUDA: work is never recorded, but done each time.
#include "plait/nn/training/recorded.h"

namespace plait {

OwnStream::OwnStream(const torch::Device& device) : before_(c10::Stream::DEFAULT, device) {}

OwnStream::~OwnStream() = default;

struct Recorder::Graph {};

Recorder::Recorder(GraphHandle& graph, bool) : handle_(graph), possible_(false) {}

Recorder::~Recorder() = default;

void Recorder::run(Piece, const std::function<void()>& work) { work(); }

bool all_can_record(World&, bool fits) { return fits; }

}  // namespace plait
