#include "plait/io/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/io/damage.h"
#include "tests/support/error_of.h"
#include "tests/support/memory_peak.h"

namespace plait {
namespace {

TensorFile small() {
  TensorFile file;
  file.metadata = {{"kind", "gcn"}, {"note", "a \"quoted\" word"}};
  file.tensors.push_back({"convs.0.lin.weight", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}});
  file.tensors.push_back({"convs.0.bias", {2}, std::vector<float>{-0.5f, NAN}});
  file.tensors.push_back({"none", {0, 4}, std::vector<float>{}});
  return file;
}

Buffer<std::byte> written(const TensorFile& file) {
  const std::string path = temporary_path("tensors.safetensors");
  write_safetensors(file, path);
  const auto map = MappedFile::open(path);
  Buffer<std::byte> bytes = first_bytes(map->bytes(), map->bytes().size());
  std::filesystem::remove(path);
  return bytes;
}

Buffer<std::byte> with_header(const std::string& header, std::size_t data = 0) {
  const std::uint64_t size = header.size();
  std::string text(reinterpret_cast<const char*>(&size), sizeof(size));
  return to_bytes(text + header + std::string(data, '\0'));
}

const auto parse = [](const Buffer<std::byte>& bytes) {
  parse_safetensors(bytes.span(), "file.safetensors");
};

TEST(Safetensors, ComesBackAsWritten) {
  const Buffer<std::byte> bytes = written(small());
  const TensorFile back = parse_safetensors(bytes.span(), "file");
  auto metadata = back.metadata;
  EXPECT_EQ(metadata.extract(kChecksumKey).mapped().size(), 16u);
  EXPECT_EQ(metadata, small().metadata);
  ASSERT_EQ(back.tensors.size(), 3u);
  const NamedTensor* weight = back.find("convs.0.lin.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(weight->values[5], 6);
  EXPECT_TRUE(std::isnan(back.find("convs.0.bias")->values[1]));
  EXPECT_EQ(back.find("none")->values.size(), 0u);
  EXPECT_EQ(back.find("other"), nullptr);
}

TEST(Safetensors, EveryTruncationAndEveryFlipIsRefused) {
  const Buffer<std::byte> bytes = written(small());
  expect_every_truncation_refused(bytes.span(), parse);
  // A flip in the name of the checksum makes a file without one.
  const auto parse_with_checksum = [](const Buffer<std::byte>& damaged) {
    const TensorFile file = parse_safetensors(damaged.span(), "file.safetensors");
    require(file.metadata.contains(kChecksumKey), "no checksum");
  };
  EXPECT_EQ(count_refused_flips(bytes.span(), parse_with_checksum), 8 * bytes.size());
}

TEST(Safetensors, SetsTheChecksumOfWhatItWrites) {
  TensorFile file = small();
  file.metadata[kChecksumKey] = "of something else";
  EXPECT_EQ(parse_safetensors(written(file).span(), "file").metadata,
            parse_safetensors(written(small()).span(), "file").metadata);
}

TEST(Safetensors, SaysWhatIsWrong) {
  const auto complaint = [](const Buffer<std::byte>& bytes) {
    return error_of([&] { parse(bytes); });
  };
  EXPECT_NE(complaint(with_header("[]")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(complaint(with_header(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8))
                .find("array 'a': is of type \"F64\", not F32"),
            std::string::npos);
  const std::string nested = std::string(300000, '[') + std::string(300000, ']');
  EXPECT_NE(
      complaint(
          with_header(R"({"a":{"dtype":)" + nested + R"(,"shape":[1],"data_offsets":[0,4]}})", 4))
          .find("array 'a': holds lists or objects where texts"),
      std::string::npos);
  EXPECT_NE(complaint(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4))
                .find("needs 2 numbers"),
            std::string::npos);
  EXPECT_NE(complaint(with_header(R"({"a":{"dtype":"F32","shape":[281474976710655,281474976710655],
                                      "data_offsets":[0,4]}})",
                                  4))
                .find("endless"),
            std::string::npos);
  EXPECT_NE(complaint(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                                      "b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                  4))
                .find("to no array, or to two"),
            std::string::npos);
  EXPECT_NE(complaint(with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4))
                .find("not lists of counts"),
            std::string::npos);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_NE(
      complaint(to_bytes({reinterpret_cast<const char*>(&huge), 8})).find("promises a header"),
      std::string::npos);
}

// Returns a header with one array for each of these fields.
std::string header_of(int arrays, const std::string& fields) {
  std::string header = "{";
  for (int i = 0; i < arrays; ++i) header += fmt::format("{}\"a{}\":{}", i ? "," : "", i, fields);
  return header + "}";
}

TEST(Safetensors, TakesLittleMemoryToRefuse) {
  constexpr std::uint64_t kTimes = 20;  // of the size of the file
  const auto refused = [](const Buffer<std::byte>& bytes, const char* problem) {
    const test::MemoryPeak peak;
    EXPECT_NE(error_of([&] { parse(bytes); }).find(problem), std::string::npos) << problem;
    EXPECT_LT(peak.bytes(), kTimes * bytes.size() + (16u << 20)) << problem;
  };
  constexpr const char* kArray = R"({"dtype":"F32","shape":[125000],"data_offsets":[0,500000]})";
  refused(with_header(header_of(8000, kArray), 500000), "belongs to no array, or to two");
  refused(with_header(header_of(8000, kArray), 499999), "of 499999 bytes");
  std::string lists = "[[]";
  for (int i = 0; i < 1000000; ++i) lists += ",[]";
  refused(with_header(R"({"a":)" + lists + "]}"), "array 'a': holds lists");
  refused(with_header(R"({"a":{"dtype":)" + lists + "]}}"), "array 'a': holds lists");
  refused(with_header(lists + "]"), "not a JSON object");
}

TEST(Safetensors, LimitsTheHeader) {
  const std::string header(kLargestHeader + 1, ' ');
  EXPECT_NE(error_of([&] { parse(with_header(header)); }).find("is longer than 100000000"),
            std::string::npos);
  TensorFile file = small();
  file.metadata["long"] = header;
  EXPECT_NE(error_of([&] {
              write_safetensors(file, temporary_path("long.safetensors"));
            }).find("cannot be written"),
            std::string::npos);
}

}  // namespace
}  // namespace plait
