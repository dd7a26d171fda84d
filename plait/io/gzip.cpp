#include "plait/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

constexpr std::size_t kLargestRatio = 1032;                  // of deflate
constexpr std::size_t kWorthAsking = std::size_t{64} << 20;  // bytes
constexpr std::size_t kStep = std::size_t{1} << 30;          // bytes; zlib counts in 32 bits

[[noreturn]] void fail(const std::string& file, std::size_t place, const std::string& problem) {
  throw InputError(file, fmt::format("byte {}", place), problem, "copy the file again");
}

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {
    constexpr int kGzip = 16;  // and the largest window
    if (inflateInit2(&stream_, kGzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Buffer<std::byte> run() {
    reserve(std::min(promised() + 1, limit()));
    while (step()) {
    }
    out_.truncate(done_);
    return std::move(out_);
  }

 private:
  // The last four bytes are the size of the last member modulo 2^32, which is where to begin.
  std::size_t promised() const {
    std::uint32_t size = 0;
    if (bytes_.size() >= sizeof size)
      std::memcpy(&size, bytes_.data() + bytes_.size() - sizeof size, sizeof size);
    return size;
  }
  std::size_t limit() const { return bytes_.size() * kLargestRatio + 1; }

  void reserve(std::size_t size) {
    if (size >= kWorthAsking) require_memory(size, file_ + ": its content");
    Buffer<std::byte> larger(size);
    if (done_ > 0) std::memcpy(larger.data(), out_.data(), done_);
    out_ = std::move(larger);
  }

  // Unpacks some more. Returns false at the end.
  bool step() {
    if (done_ == limit()) fail(file_, read_, "it holds more than deflate can pack into it");
    if (done_ == out_.size()) reserve(std::min(out_.size() + out_.size() / 2 + 4096, limit()));
    const std::size_t left = bytes_.size() - read_, room = out_.size() - done_;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data() + read_));
    stream_.avail_in = static_cast<uInt>(std::min(left, kStep));
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + done_);
    stream_.avail_out = static_cast<uInt>(std::min(room, kStep));
    const std::size_t in = stream_.avail_in, space = stream_.avail_out;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    read_ += in - stream_.avail_in;
    done_ += space - stream_.avail_out;
    if (state == Z_STREAM_END) {
      if (read_ == bytes_.size()) return false;
      inflateReset(&stream_);  // to the next member; inflate() checks its header
      return true;
    }
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    if (state != Z_OK && state != Z_BUF_ERROR)
      fail(file_, read_,
           fmt::format("it is not valid gzip ({})", stream_.msg ? stream_.msg : "damaged"));
    if (read_ == bytes_.size() && stream_.avail_out > 0)
      fail(file_, read_, "it ends within its compressed content");
    return true;
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  z_stream stream_{};
  Buffer<std::byte> out_;
  std::size_t read_ = 0;  // of bytes_
  std::size_t done_ = 0;  // of out_
};

}  // namespace

Buffer<std::byte> gunzip(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.empty()) fail(file, 0, "it is empty, and gzip has a header");
  return Inflater(bytes, file).run();
}

}  // namespace plait
