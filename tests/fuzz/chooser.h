// Choices made from a fuzzer's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace plait {

// Takes numbers from the front of the bytes, 0 when there are no more.
class Chooser {
 public:
  Chooser(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::uint8_t next() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }
  bool more() const { return at_ < size_; }
  // Returns a number below `bound`, which is at most 256.
  std::uint8_t below(std::uint64_t bound) { return static_cast<std::uint8_t>(next() % bound); }
  bool one_in(std::uint64_t times) { return next() % times == times - 1; }
  template <class Range>
  auto of(const Range& range) {
    return *(std::begin(range) + below(std::size(range)));
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace plait
