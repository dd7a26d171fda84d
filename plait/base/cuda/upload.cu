// Each thread of the host has a piece of pinned memory of its own, which it fills or empties while
// the GPU copies those of other threads: threads wait for nobody but the link.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "plait/base/cuda/upload.cuh"
#include "plait/base/gpu.h"
#include "plait/base/on_threads.h"

namespace plait {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kMostThreads = 16;
constexpr const char* kWhat = "copy between host and GPU";

std::mutex pieces_mutex;  // held by the copy that uses the pieces

// Returns one piece per thread, which the process keeps: pinning memory takes longer than a copy.
std::byte* pinned_pieces() {
  static std::byte* pieces = nullptr;
  if (pieces == nullptr)
    check_pinned(cudaHostAlloc(reinterpret_cast<void**>(&pieces), kMostThreads * kPiece,
                               cudaHostAllocPortable),
                 kMostThreads * kPiece, "host memory");
  return pieces;
}

// Calls move(piece, begin, size, copied) for each part of `bytes`; the event `copied` is the
// thread's own.
template <class Move>
void for_pieces(std::size_t bytes, Move move) {
  const std::lock_guard lock(pieces_mutex);
  std::byte* const pieces = pinned_pieces();
  const int gpu = current_gpu();
  std::atomic<std::size_t> next{0};
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  on_threads(kMostThreads, [&](std::size_t thread) {
    check_cuda(cudaSetDevice(gpu), kWhat);
    DeviceEvent copied;
    for (std::size_t begin; (begin = next.fetch_add(kPiece)) < bytes;)
      move(pieces + thread * kPiece, begin, std::min(kPiece, bytes - begin), copied);
  });
  check_cuda(cudaDeviceSynchronize(), kWhat);
}

void copy_piece(void* to, const void* from, std::size_t bytes, DeviceEvent& copied) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, nullptr), kWhat);
  copied.record(nullptr);
}

}  // namespace

void upload(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes < 4 * kPiece) return copy_to_gpu(to, from, bytes);
  for_pieces(
      bytes, [&](std::byte* piece, std::size_t begin, std::size_t size, DeviceEvent& copied) {
        check_cuda(cudaEventSynchronize(copied.get()), kWhat);  // not recorded at first: no wait
        std::memcpy(piece, static_cast<const std::byte*>(from) + begin, size);
        copy_piece(static_cast<std::byte*>(to) + begin, piece, size, copied);
      });
}

void download(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes < 4 * kPiece) return copy_to_host(to, from, bytes);
  for_pieces(bytes,
             [&](std::byte* piece, std::size_t begin, std::size_t size, DeviceEvent& copied) {
               copy_piece(piece, static_cast<const std::byte*>(from) + begin, size, copied);
               check_cuda(cudaEventSynchronize(copied.get()), kWhat);
               std::memcpy(static_cast<std::byte*>(to) + begin, piece, size);
             });
}

}  // namespace plait
