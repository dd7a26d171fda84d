// The store that torchrun keeps: c10d's TCPStore. It answers every process that can connect to it.
#pragma once

#include <chrono>
#include <memory>

#include "plait/world/rendezvous.h"

namespace plait {

// As Rendezvous::connect().
std::unique_ptr<Rendezvous> connect_torch_store(const RendezvousAddress& address,
                                                std::chrono::milliseconds limit);

// Keeps c10d from logging a stack trace for every broken connection. Plait reports such errors
// itself, in one line; TORCH_CPP_LOG_LEVEL=INFO brings c10d's account back.
void quieten_torch();

}  // namespace plait
