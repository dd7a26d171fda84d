// Objects that only the process that made them deletes.
//
// A forked process, such as a worker of a loader, may destroy copies of its parent's objects:
// Python collects them there. What belongs to a GPU or to other ranks cannot be given back from
// there: CUDA does not work in it, so that destructors would throw, and locks may be held by
// threads that it lacks. It keeps such objects until it ends.
#pragma once

#include <unistd.h>

#include <memory>

namespace plait {

template <class T>
class DeleteInOwnProcess {
 public:
  void operator()(T* object) const {
    if (::getpid() == process_) delete object;
  }

 private:
  pid_t process_ = ::getpid();
};

template <class T>
using ProcessOwned = std::unique_ptr<T, DeleteInOwnProcess<T>>;

// Returns the object for this process to own.
template <class T>
ProcessOwned<T> process_owned(std::unique_ptr<T> object) {
  return ProcessOwned<T>(object.release());
}

}  // namespace plait
