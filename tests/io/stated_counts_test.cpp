// The counts in headers of .plait files, against the datasets that are read from them.
#include "plait/io/stated_counts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/io/container_data.h"

namespace plait {
namespace {

// Returns the counts of a file with these bytes.
std::optional<GraphCounts> counts_in(std::span<const std::byte> bytes) {
  const std::string path = temporary_path("plait-stated-counts-test.plait");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto counts = stated_counts(path);
  std::filesystem::remove(path);
  return counts;
}

std::optional<GraphCounts> counts_of(const Dataset& data) {
  return counts_in(written(data).span());
}

TEST(StatedCounts, AreThoseOfTheDataset) {
  EXPECT_EQ(counts_of(bare<std::uint32_t>()), (GraphCounts{.vertices = 3, .edges = 4}));
  EXPECT_EQ(counts_of(with_parts(kWeights | kLabels | kWide | kSymmetric)),
            (GraphCounts{.vertices = 3,
                         .edges = 4,
                         .weighted = true,
                         .symmetric = true,
                         .wide_ids = true,
                         .classes = 6}));
  Dataset data = bare<std::uint32_t>();
  for (const Form form : {Form::f32, Form::bf16, Form::sparse}) {
    data.features = features_of(form);
    EXPECT_EQ(counts_of(data),
              (GraphCounts{.vertices = 3, .edges = 4, .width = 2, .sparse = form == Form::sparse}));
  }
  EXPECT_TRUE(counts_of(set_of_graphs())->set_of_graphs);
}

// Wrong files are the reader's to tell of.
TEST(StatedCounts, AreNotBelievedBeyondTheFile) {
  const Buffer<std::byte> bytes = written(with_parts(kLabels));
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_FALSE(counts_in(bytes.span().first(size)));
  for (const std::size_t count : {32, 40, 48}) {  // vertices, edges and width
    Buffer<std::byte> promising(bytes.size());
    std::ranges::copy(bytes, promising.begin());
    promising[count + 5] = std::byte{1};
    EXPECT_FALSE(counts_in(promising.span()));
  }
  EXPECT_FALSE(stated_counts("/dev/null"));
  EXPECT_FALSE(stated_counts("/no/such/file"));
}

}  // namespace
}  // namespace plait
