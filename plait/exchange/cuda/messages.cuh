// Messages between GPUs, one per rank (messages.h).
//
// A push in time, all on one stream: [count marked slots by owner] [write values to the owners'
// inboxes over the link] signal, wait for the signals of others [merge, rank after rank] end of the
// step. A rank has one inbox, with a section for each sender that has room for all slots that the
// sender may push; senders write when the last step has ended everywhere. Sections begin with a
// header. The bytes that cross are those of messages.h: 4 more per value than the value, or the
// values of a whole block; a push that moves little takes as long as its kernels in a row: seven,
// and one more for each other rank.
#pragma once

#include <memory>

#include "plait/exchange/cuda/graph.cuh"
#include "plait/exchange/messages.h"

namespace plait {

// Collective. The graph and the world outlive the messages; all work is done on the stream. The
// graph's halo must come as rows. GPUs that do not reach each other meet in the host's memory in
// place of DeviceTransport::vmm. Throws DoesNotFitError on all ranks.
std::unique_ptr<Messages> make_gpu_messages(World& world, const DeviceGraph& graph,
                                            DeviceTransport transport, cudaStream_t stream);

}  // namespace plait
