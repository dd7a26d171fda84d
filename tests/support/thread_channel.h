// Ranks that are threads of one process, with channels between them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "plait/base/channel.h"

namespace plait::test {

// A place where threads exchange numbers. One that fails lets the others fail, too.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks) : ranks_(static_cast<std::size_t>(ranks)), given_(ranks_) {}

  // Runs body(rank, channel) on a thread for each rank. Rethrows the exception that came first.
  template <class Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([this, rank, &body] {
        try {
          Place place(*this, rank);
          body(static_cast<int>(rank), place);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          changed_.notify_all();
        }
      });
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Parts = std::span<const std::span<const std::byte>>;

  class Place : public Channel {
   public:
    Place(ThreadRanks& ranks, std::size_t rank) : ranks_(ranks), rank_(rank) {}
    void all_to_all(std::span<const std::span<const std::byte>> send,
                    std::span<const std::span<std::byte>> received) override {
      ranks_.exchange(rank_, send, received);
    }

   private:
    ThreadRanks& ranks_;
    const std::size_t rank_;
  };

  void exchange(std::size_t rank, Parts send, std::span<const std::span<std::byte>> received) {
    std::unique_lock lock(mutex_);
    given_[rank].clear();
    for (const auto part : send) given_[rank].emplace_back(part.begin(), part.end());
    meet(lock);
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (given_[r][rank].size() != received[r].size()) throw BrokenChannelError("sizes differ");
      std::ranges::copy(given_[r][rank], received[r].begin());
    }
    meet(lock);
  }

  void meet(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t meeting = meetings_;
    if (++here_ == ranks_) {
      here_ = 0;
      ++meetings_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return meetings_ != meeting || error_; });
    if (meetings_ == meeting) throw BrokenChannelError("another rank has failed");
  }

  const std::size_t ranks_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::vector<std::vector<std::byte>>> given_;
  std::size_t here_ = 0;
  std::uint64_t meetings_ = 0;
  std::exception_ptr error_;
};

}  // namespace plait::test
