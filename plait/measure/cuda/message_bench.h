// The search of message_bench.h on GPUs. This header needs no header of CUDA.
#pragma once

#include "plait/measure/message_bench.h"

namespace plait {

// Collective. As make_cpu_search(), for an exchange on GPUs whose stream is the default one.
std::unique_ptr<ComponentSearch> make_gpu_search(Exchange& exchange, std::uint64_t own);

}  // namespace plait
