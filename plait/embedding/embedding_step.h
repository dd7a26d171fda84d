// The beginning of a step on embedding tables, at which ranks meet: on the CPU and on GPUs.
#pragma once

#include <cstdint>
#include <string>

#include "plait/base/dtype.h"
#include "plait/embedding/bags.h"
#include "plait/symmetric/heap.h"

namespace plait {

enum class EmbeddingStep : std::uint64_t { forward, backward };

// The facts that a rank brings to the meeting.
struct EmbeddingStepOf {
  EmbeddingStep step = EmbeddingStep::forward;
  std::uint64_t number = 0;  // of the batch
  std::string failure = {};  // the error of this rank's bags; or empty
  std::uint64_t bytes = 0;   // that it needs; below 2^47
  // Forward: a step backward will follow. Backward: gradients of the weights of ids are wanted.
  bool wants = false;
  bool lacks_pieces = false;  // backward: without them, no rank gets gradients of weights
  DType type = DType::f32;    // forward: of the pieces; the same on all ranks

  bool wants_products() const { return wants && step == EmbeddingStep::backward; }
};

// Collective, at the heap's barrier. Returns the most bytes that any rank needs. Throws UsageError,
// the same on all ranks, if the bags of one are wrong, ranks are not at the same step of the same
// batch or have pieces of different types, a step backward will follow on some ranks only, or
// gradients of weights are wanted but pieces are not there.
std::uint64_t begin_embedding_step(World& world, SymmetricHeap& heap, const EmbeddingStepOf& mine);

// Tells whether a step is under way. A step that an exception ends between two meetings leaves
// other ranks waiting at the next, so they are told that this rank has failed (together(), with
// kInEmbeddingStep); and this rank may not meet them any more, or they would take its word for that
// of another meeting.
inline constexpr const char* kInEmbeddingStep = "in a step on embedding tables";
class StepUnderWay {
 public:
  // Called before a step begins. Throws Error if a step before has not come to its end.
  void require_ended() const;
  // Called when ranks have met, and at the end of the step.
  void begin() { under_way_ = true; }
  void end() { under_way_ = false; }

 private:
  bool under_way_ = false;
};

// Throws UsageError unless the ids of all ranks together can be numbered, if each has so many.
void require_room_for_numbers(const GivenBags& bags, int ranks);

}  // namespace plait
