// Lists of vertices, and refusals of other files.
#include "plait/io/vertex_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "plait/base/file.h"
#include "plait/io/npy.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using Numbers = std::vector<std::uint64_t>;

class VertexLists : public testing::Test {
 protected:
  std::string text_file(const std::string& text) {
    const std::string path = name_ + ".txt";
    AtomicFile file(path);
    file.write(text);
    file.commit();
    return path;
  }
  template <class T>
  std::string array_file(const std::vector<std::uint64_t>& shape, const std::vector<T>& values) {
    const std::string path = name_ + ".npy";
    AtomicFile file(path);
    write_npy<T>(file, shape, values);
    file.commit();
    return path;
  }
  void TearDown() override {
    for (const char* ending : {".txt", ".npy"}) std::filesystem::remove(name_ + ending);
  }
  // Returns the error without the name of the file.
  std::string refusal(const std::string& path) {
    const std::string text = error_of([&] { read_vertex_list(path, 10); });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  }

 private:
  const std::string name_ = testing::TempDir() + "plait_list_" + std::to_string(getpid());
};

TEST_F(VertexLists, AreReadFromTexts) {
  EXPECT_EQ(read_vertex_list(text_file("3\n3\n0\n9"), 10), (Numbers{3, 3, 0, 9}));
  EXPECT_EQ(read_vertex_list(text_file("# starts\r\n\r\n  7 \r\n#8\n2\n\n"), 10), (Numbers{7, 2}));
}

TEST_F(VertexLists, AreReadFromArrays) {
  EXPECT_EQ(read_vertex_list(array_file<std::int32_t>({3}, {4, 0, 9}), 10), (Numbers{4, 0, 9}));
  EXPECT_EQ(read_vertex_list(array_file<std::uint64_t>({1}, {5}), 10), (Numbers{5}));
}

TEST_F(VertexLists, HoldNothingElse) {
  EXPECT_EQ(refusal(text_file("1\n10\n")),
            ": line 2: the vertex '10' is outside 0..9; correct the line");
  EXPECT_EQ(refusal(text_file("1 2\n")),
            ": line 1: there is more than one number in the line; write one vertex per line");
  EXPECT_EQ(refusal(text_file("# none\n\n")),
            ": the whole file: no vertex is listed; give one vertex or more");
  EXPECT_EQ(refusal(array_file<std::int64_t>({0}, {})),
            ": the whole file: no vertex is listed; give one vertex or more");
  EXPECT_EQ(refusal(array_file<float>({1}, {1})),
            ": header: an array of type f4 and shape (1,) is no list of vertices; save their "
            "numbers as integers, in one dimension");
  for (const char* text : {"one\n", "-1\n", "1.5\n", "1,2\n"})
    EXPECT_FALSE(refusal(text_file(text)).empty()) << text;
  EXPECT_FALSE(refusal(array_file<std::int64_t>({2}, {1, -1})).empty());
  EXPECT_FALSE(refusal(array_file<std::int64_t>({1, 2}, {1, 2})).empty());
}

}  // namespace
}  // namespace plait
