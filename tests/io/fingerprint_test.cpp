// Fingerprints are equal for equal content, wherever it comes from, and tell which content differs.
#include "plait/io/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "plait/io/io.h"

namespace plait {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

class Fingerprint : public testing::Test {
 protected:
  Dataset written(const std::string& ending) {
    const std::string path = testing::TempDir() + "fingerprint" + ending;
    write_dataset(made_, path);
    Dataset read = read_dataset(path);
    std::filesystem::remove(path);
    return read;
  }
  static Dataset make() {
    Dataset dataset;
    Csr32 ring;
    ring.offsets = std::vector<EdgeOffset>{0, 2, 4, 6, 8};
    ring.neighbours = std::vector<std::uint32_t>{1, 3, 0, 2, 1, 3, 0, 2};
    dataset.graph = std::move(ring);
    dataset.symmetric = true;
    dataset.features.rows = 4;
    dataset.features.width = 2;
    dataset.features.f32 = std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8};
    dataset.labels = std::vector<std::int32_t>{0, 1, 0, 1};
    dataset.classes = 2;
    return dataset;
  }
  const Dataset made_ = make();
};

// Returns the keys of the facts that differ.
std::vector<std::string> differing(const Facts& a, const Facts& b) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b.at(i)) keys.push_back(a[i].first);
  return keys;
}

TEST_F(Fingerprint, IsThatOfTheContent) {
  Dataset container = written(".plait");
  EXPECT_EQ(container.checked.size(), 4u);
  EXPECT_EQ(fingerprint(container), fingerprint(made_));
  EXPECT_EQ(fingerprint(written(".npz")), fingerprint(made_));
  container.name = "another";
  EXPECT_EQ(fingerprint(container), fingerprint(made_));
}

TEST_F(Fingerprint, TellsWhatDiffers) {
  using Keys = std::vector<std::string>;
  Dataset other = make();
  std::get<Csr32>(other.graph).neighbours = std::vector<std::uint32_t>{1, 3, 0, 2, 1, 3, 0, 3};
  EXPECT_EQ(differing(fingerprint(made_), fingerprint(other)),
            Keys{"the checksum of its neighbours"});
  other = make();
  other.labels = std::vector<std::int32_t>{0, 1, 0, 0};
  EXPECT_EQ(differing(fingerprint(made_), fingerprint(other)), Keys{"the checksum of its labels"});
  other = make();
  other.symmetric = false;
  EXPECT_EQ(differing(fingerprint(made_), fingerprint(other)), Keys{"being symmetric"});
}

// Arrays of a container are not read again; arrays that have taken their place are.
TEST_F(Fingerprint, TakesTheChecksumsOfAContainer) {
  Dataset container = written(".plait");
  const Facts right = fingerprint(container);
  for (CheckedArray& array : container.checked) ++array.checksum;
  EXPECT_EQ(differing(right, fingerprint(container)).size(), 4u);
  std::get<Csr32>(container.graph).neighbours = std::vector<std::uint32_t>{1, 3, 0, 2, 1, 3, 0, 2};
  EXPECT_EQ(differing(right, fingerprint(container)).size(), 3u);
}

}  // namespace
}  // namespace plait
