#include "plait/base/process_owned.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace plait {
namespace {

struct Counted {
  explicit Counted(int& deleted) : deleted_(deleted) {}
  ~Counted() { ++deleted_; }

 private:
  int& deleted_;
};

TEST(ProcessOwned, IsDeletedByTheProcessThatMadeIt) {
  int deleted = 0;
  ProcessOwned<Counted> object = process_owned(std::make_unique<Counted>(deleted));
  const pid_t child = ::fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    object.reset();
    ProcessOwned<Counted> own(new Counted(deleted));
    own.reset();
    ::_exit(deleted);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1) << "its own object, and not its parent's";
  EXPECT_EQ(deleted, 0);
  object.reset();
  EXPECT_EQ(deleted, 1);
}

}  // namespace
}  // namespace plait
