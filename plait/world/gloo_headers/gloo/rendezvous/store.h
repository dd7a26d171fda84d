// See ../context.h.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {

class Store {
 public:
  using Keys = std::vector<std::string>;
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const Keys& keys) = 0;
  virtual void wait(const Keys& keys, const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace gloo::rendezvous
