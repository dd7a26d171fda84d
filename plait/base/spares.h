// Objects that are expensive to make. One thread at a time uses each of them.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plait {

// Keeps objects that are not in use. Threads may share it.
template <class T>
class Spares {
 public:
  // An object in use, which goes back to the spares, in whatever state it is.
  class Loan {
   public:
    Loan(Spares& spares, std::unique_ptr<T> object)
        : spares_(&spares), object_(std::move(object)) {}
    Loan(Loan&&) noexcept = default;
    ~Loan() {
      if (object_) spares_->give_back(std::move(object_));
    }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    Spares* spares_;
    std::unique_ptr<T> object_;
  };

  // Returns an object that is not in use or, if all are in use, the one that make() returns.
  template <class Make>
  Loan borrow(Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> object = std::move(free_.back());
        free_.pop_back();
        return Loan(*this, std::move(object));
      }
      free_.reserve(++objects_);  // so that giving back cannot fail
    }
    return Loan(*this, make());
  }

 private:
  void give_back(std::unique_ptr<T> object) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(object));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
  std::size_t objects_ = 0;
};

}  // namespace plait
