// Anonymous memory that processes share through its descriptor (memfd). It has no name in any file
// system, is closed by exec, and goes away with the last process that maps it. Its size is sealed:
// no process can shrink it under another's feet.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace plait {

// An open file descriptor, which this object owns and closes; -1 for none.
class Descriptor {
 public:
  // Takes the descriptor, which it closes; -1: none.
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  // Closes it now.
  void reset();

 private:
  int number_;
};

// A mapping of such memory, which this object owns.
class SharedMemory {
 public:
  SharedMemory() = default;
  // Makes zeroed memory of a size above 0, whose pages exist: if the machine cannot give them, this
  // call fails and no later access does. Throws DoesNotFitError, SystemLimitError if there are no
  // descriptors left, and Error if the kernel refuses.
  static std::pair<SharedMemory, Descriptor> create(std::size_t bytes);
  // Maps memory that another process has made. Throws Error if it is not sealed memory of this
  // size.
  static SharedMemory map(const Descriptor& descriptor, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  SharedMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace plait
