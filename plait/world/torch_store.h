// The store that torchrun keeps: c10d's TCPStore. It answers everybody who can connect to it.
#pragma once

#include <chrono>
#include <memory>

#include "plait/world/store.h"

namespace plait {

// As Store::connect().
std::unique_ptr<Store> connect_torch_store(const StoreAddress& address,
                                           std::chrono::milliseconds limit);

// c10d logs every broken connection with a stack trace. Plait says such things itself, in one line;
// TORCH_CPP_LOG_LEVEL=INFO brings c10d's account back.
void quieten_torch();

}  // namespace plait
