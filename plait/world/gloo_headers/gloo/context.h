// Stand-ins for Gloo's headers.
//
// libtorch's wheel holds Gloo as compiled code and c10d's header for it (ProcessGroupGloo.hpp), but
// not Gloo's own headers, which that header includes. It uses Gloo's types only through pointers,
// so their names suffice: these five files declare them. Nothing here is ever defined, constructed
// or called by Plait; c10d's compiled code does that with the real types. This folder is on the
// include path of the room `world` alone.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo
