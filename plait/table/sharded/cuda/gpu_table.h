// Tables on GPUs, as Table::create() makes them. This header needs no header of CUDA.
#pragma once

#include "plait/table/sharded/table.h"

namespace plait {

// Collective. Rows come in blocks that are converted on the GPU.
std::unique_ptr<Table> make_gpu_table(World& world, const TableSettings& settings,
                                      const TableSource& source);

}  // namespace plait
