// For a build without CUDA: work is always done as it is.
#include "plait/nn/recorded.h"

namespace plait {

OwnStream::OwnStream(const torch::Device& device) : before_(c10::Stream::DEFAULT, device) {}

OwnStream::~OwnStream() = default;

struct Recorded::Graph {};

Recorded::Recorded(GraphHandle& graph) : handle_(graph) {}

Recorded::~Recorded() = default;

void Recorded::run(const std::function<void()>& work) { work(); }

}  // namespace plait
