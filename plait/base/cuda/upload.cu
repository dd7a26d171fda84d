#include <algorithm>

#include "plait/base/copy_bytes.h"
#include "plait/base/cuda/upload.cuh"

namespace plait {
namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20;
constexpr const char* kWhat = "copy to the GPU";

// Pinned memory of the host, and the event behind the last copy from it.
struct Piece {
  std::byte* data = nullptr;
  DeviceEvent read;

  Piece() { check_cuda(cudaMallocHost(reinterpret_cast<void**>(&data), kPiece), "host memory"); }
  ~Piece() { cudaFreeHost(data); }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
};

}  // namespace

void upload(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes < 2 * kPiece) return copy_to_gpu(to, from, bytes);
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  Piece pieces[2];
  for (std::size_t begin = 0, i = 0; begin < bytes; begin += kPiece, ++i) {
    Piece& piece = pieces[i % 2];
    const std::size_t size = std::min(kPiece, bytes - begin);
    check_cuda(cudaEventSynchronize(piece.read.get()), kWhat);  // not recorded at first: no wait
    copy_bytes(piece.data, static_cast<const std::byte*>(from) + begin, size);
    check_cuda(cudaMemcpyAsync(static_cast<std::byte*>(to) + begin, piece.data, size,
                               cudaMemcpyHostToDevice, nullptr),
               kWhat);
    piece.read.record(nullptr);
  }
  check_cuda(cudaDeviceSynchronize(), kWhat);
}

}  // namespace plait
