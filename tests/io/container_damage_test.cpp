// The layout of .plait containers byte by byte, and files that are damaged or lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tests/io/container_data.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// --- fields by their place in the file, as the description of the format gives them ---

template <class T>
T field(const Buffer<std::byte>& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <class T>
void set_field(Buffer<std::byte>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr std::size_t section(std::size_t i) { return 80 + 32 * i; }

// Makes all checksums right again, so that the checks behind them are reached.
void repair(Buffer<std::byte>& bytes) {
  const auto count = field<U32>(bytes, 68);
  for (std::size_t i = 0; i < count && section(i + 1) <= bytes.size(); ++i) {
    const auto begin = field<U64>(bytes, section(i) + 8), size = field<U64>(bytes, section(i) + 16);
    if (begin <= bytes.size() && size <= bytes.size() - begin)
      set_field<U64>(bytes, section(i) + 24, XXH3_64bits(bytes.data() + begin, size));
  }
  set_field<U64>(bytes, 24, 0);
  if (field<U32>(bytes, 12) <= bytes.size())
    set_field<U64>(bytes, 24, XXH3_64bits(bytes.data(), field<U32>(bytes, 12)));
}

TEST(Container, LayoutIsAsDescribed) {
  Dataset data = with_parts(kWeights | kLabels | kSplits | kIds | kSymmetric);
  data.features = features_of(Form::sparse);
  auto bytes = written(data);
  EXPECT_EQ(std::memcmp(bytes.data(), "\x89PLAIT\r\n", 8), 0);
  EXPECT_EQ(field<U32>(bytes, 8), 1u);
  EXPECT_EQ(field<U32>(bytes, 12), 80 + 9 * 32 + 8u);
  EXPECT_EQ(field<U64>(bytes, 16), bytes.size());
  EXPECT_EQ(field<U64>(bytes, 32), 3u);
  EXPECT_EQ(field<U64>(bytes, 40), 4u);
  EXPECT_EQ(field<U64>(bytes, 48), 2u);
  EXPECT_EQ(field<U32>(bytes, 56), 6u);
  EXPECT_EQ(field<U32>(bytes, 60), 2u);
  EXPECT_EQ(field<U32>(bytes, 64), 1u);
  EXPECT_EQ(field<U32>(bytes, 68), 9u);
  EXPECT_EQ(field<U32>(bytes, 72), 8u);
  EXPECT_EQ(std::memcmp(bytes.data() + section(9), "triangle", 8), 0);
  const U32 kinds[] = {1, 2, 3, 5, 6, 7, 8, 9, 10};
  const U32 elements[] = {4, 3, 5, 4, 3, 5, 2, 1, 4};
  const U64 sizes[] = {32, 16, 16, 32, 12, 12, 12, 6, 24};
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(field<U32>(bytes, section(i)), kinds[i]);
    EXPECT_EQ(field<U32>(bytes, section(i) + 4), elements[i]);
    EXPECT_EQ(field<U64>(bytes, section(i) + 8) % 64, 0u);
    EXPECT_EQ(field<U64>(bytes, section(i) + 16), sizes[i]);
  }
  EXPECT_EQ(field<std::int32_t>(bytes, field<U64>(bytes, section(6) + 8) + 8), 4);  // a label
  EXPECT_EQ(field<U64>(bytes, section(8) + 8) + 24, bytes.size());
  // The checksums are those that the description leads to.
  const auto before = first_bytes(bytes.span(), bytes.size());
  repair(bytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), before.begin()));
}

TEST(ContainerDamage, EveryTruncationAndEveryFlipIsFound) {
  Dataset data = with_parts(kWeights | kLabels | kSplits | kIds);
  for (const Form form : {Form::f32, Form::sparse}) {
    data.features = features_of(form);
    const auto good = written(data);
    ASSERT_TRUE(reads(good, read));
    expect_every_truncation_refused(good.span(), read);
    EXPECT_EQ(count_refused_flips(good.span(), read), 8 * good.size());
    Buffer<std::byte> longer(good.size() + 1, std::byte{0});
    std::copy(good.begin(), good.end(), longer.begin());
    EXPECT_FALSE(reads(longer, read));
  }
}

// With right checksums, a flipped file is what a hostile writer could make: it may be read, but
// only as a valid dataset, and nothing but an Error may come of it.
TEST(ContainerDamage, EveryFlipWithRightChecksumsIsSafe) {
  for (const Form form : {Form::f32, Form::sparse}) {
    Dataset data = with_parts(kWeights | kLabels | kSplits | kIds);
    data.features = features_of(form);
    const auto good = written(data);
    std::size_t accepted = 0;
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto bytes = first_bytes(good.span(), good.size());
      bytes[bit / 8] ^= std::byte{static_cast<unsigned char>(1u << bit % 8)};
      repair(bytes);
      accepted += reads(bytes, read);
    }
    EXPECT_GT(accepted, 500u);  // flips in values, the name and such
  }
}

std::string error_with(const Dataset& data, const std::function<void(Buffer<std::byte>&)>& change) {
  auto bytes = written(data);
  change(bytes);
  repair(bytes);
  return error_of([&] { read(bytes); });
}

template <class T>
std::string error_with(std::size_t at, T value, int parts = 0, Form form = Form::none) {
  Dataset data = with_parts(parts);
  data.features = features_of(form);
  return error_with(data, [&](Buffer<std::byte>& bytes) { set_field<T>(bytes, at, value); });
}

TEST(ContainerHeader, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(error_with<U32>(8, 4),
            "x.plait: header: written by a newer Plait: version 4, this one reads 3; read it with "
            "that Plait");
  EXPECT_THAT(error_with<U32>(8, 0), HasSubstr("version 0"));
  EXPECT_THAT(error_with<char>(0, 'x'), HasSubstr("mark"));
  EXPECT_THAT(error_with<U32>(64, 2), HasSubstr("flags"));
  EXPECT_THAT(error_with<U32>(76, 1), HasSubstr("flags"));
  EXPECT_THAT(error_with<U32>(section(0), 11), HasSubstr("kind 11 is outside 1..10"));
  EXPECT_THAT(error_with<U32>(section(0), 0), HasSubstr("kind 0 is outside 1..10"));
  EXPECT_THAT(error_with<U32>(section(1), 1), HasSubstr("section offsets: it is there twice"));
  EXPECT_THAT(error_with<U32>(section(0), 10), HasSubstr("not in the order of kinds"));
  EXPECT_THAT(error_with<U32>(section(0) + 4, 3), HasSubstr("elements of u32 do not belong in it"));
  EXPECT_THAT(error_with<U32>(section(1) + 4, 9),
              HasSubstr("elements of a type that is not known do not belong"));
  EXPECT_THAT(error_with<U32>(68, 11), HasSubstr("its length"));
  EXPECT_THAT(error_with<U32>(68, 0xffffffff), HasSubstr("its length"));
  EXPECT_THAT(error_with<U32>(12, 0xffffffff), HasSubstr("its length"));
  EXPECT_THAT(error_with<U32>(72, 0xffffffff), HasSubstr("its length"));
  EXPECT_THAT(error_with<char>(section(2), '\n'), HasSubstr("control characters"));
  EXPECT_THAT(error_with<char>(section(2), '\xe9'), HasSubstr("not UTF-8"));
}

TEST(ContainerHeader, OfVersion2) {
  for (const Dataset& data : {with_label_sets(), set_of_graphs()}) {
    const auto good = written(data);
    EXPECT_EQ(field<U32>(good, 8), 2u);
    EXPECT_EQ(field<U32>(good, 76), data.graphs);
    expect_every_truncation_refused(good.span(), read);
    EXPECT_EQ(count_refused_flips(good.span(), read), 8 * good.size());
    // A reader of version 1 knows none of these parts.
    EXPECT_THAT(error_with(data, [](auto& bytes) { set_field<U32>(bytes, 8, 1); }),
                data.graphs > 0 ? HasSubstr("flags") : HasSubstr("kind 11 is outside 1..10"));
  }
  const auto graphs_with = [](std::size_t at, U32 value) {
    return error_with(set_of_graphs(), [=](auto& bytes) { set_field<U32>(bytes, at, value); });
  };
  for (const U32 graphs : {0u, 1u, 3u, 4u, 0xffffffffu})
    EXPECT_THAT(graphs_with(76, graphs), StartsWith("x.plait: ")) << graphs;
  EXPECT_THAT(
      error_with(set_of_graphs(), [](auto& bytes) { set_field<U32>(bytes, bytes.size() - 4, 2); }),
      HasSubstr("graph ids, entry 2: id 2 is outside 0..1"));
  EXPECT_THAT(
      error_with(with_label_sets(), [](auto& bytes) { bytes[bytes.size() - 3] = std::byte{2}; }),
      HasSubstr("label sets, vertex 1, class 1: value 2 is outside 0..1"));
  EXPECT_THAT(error_with(with_label_sets(), [](auto& bytes) { set_field<U32>(bytes, 56, 3); }),
              HasSubstr("instead of 9 elements"));
}

TEST(ContainerHeader, OfVersion3) {
  const auto good = written(renumbered_triangle());
  EXPECT_EQ(field<U32>(good, 8), 3u);
  expect_every_truncation_refused(good.span(), read);
  EXPECT_EQ(count_refused_flips(good.span(), read), 8 * good.size());
  for (const U32 version : {1u, 2u})
    EXPECT_THAT(
        error_with(renumbered_triangle(), [=](auto& bytes) { set_field<U32>(bytes, 8, version); }),
        HasSubstr(version == 1 ? "kind 13 is outside 1..10" : "kind 13 is outside 1..12"));
  const auto last_number = [](std::uint64_t value) {
    return error_with(renumbered_triangle(),
                      [=](auto& bytes) { set_field<U64>(bytes, bytes.size() - 8, value); });
  };
  EXPECT_THAT(last_number(3), HasSubstr("number of vertex 2 before renumbering: value 3 is outside "
                                        "0..2"));
  EXPECT_THAT(last_number(~U64{0}), HasSubstr("is outside 0..2"));
  EXPECT_THAT(last_number(0), HasSubstr("value 0 is also that of a vertex before it"));
}

TEST(ContainerHeader, RefusesCountsThatTheSectionsDoNotHold) {
  for (const U64 count : {U64{0}, U64{1}, U64{5}, U64{1} << 40, U64{1} << 61, ~U64{0}}) {
    EXPECT_THAT(error_with<U64>(32, count), StartsWith("x.plait: ")) << count;
    EXPECT_THAT(error_with<U64>(40, count), StartsWith("x.plait: ")) << count;
    EXPECT_THAT(error_with<U64>(48, count, 0, Form::f32), StartsWith("x.plait: ")) << count;
    EXPECT_THAT(error_with<U32>(60, static_cast<U32>(count), kSplits), StartsWith("x.plait: "));
  }
  EXPECT_THAT(error_with<U32>(56, 4, kLabels), HasSubstr("value 4 is outside -1..3"));
  EXPECT_THAT(error_with<U32>(56, 0x80000000u, kLabels), HasSubstr("classes are outside"));
  EXPECT_THAT(error_with<U64>(48, 7), HasSubstr("feature width of 7 with no features"));
  EXPECT_THAT(error_with<U64>(48, 0, 0, Form::sparse), HasSubstr("feature width of 0"));
  EXPECT_THAT(error_with<U64>(48, 1, 0, Form::sparse), HasSubstr("id 1 is outside 0..0"));
  EXPECT_THAT(error_with<U64>(48, U64{1} << 33, 0, Form::sparse), HasSubstr("width"));
  EXPECT_THAT(error_with<U32>(60, 0, kSplits), HasSubstr("0 splits and a section"));
  EXPECT_THAT(error_with<U32>(60, 2), HasSubstr("2 splits and no section"));
}

TEST(ContainerHeader, RefusesSectionsOutOfPlace) {
  const U64 first = field<U64>(written(with_parts(0)), section(0) + 8);
  for (const U64 begin : {U64{0}, first - 1, first + 1, first + 64, ~U64{0}, U64{1} << 63})
    EXPECT_THAT(error_with<U64>(section(0) + 8, begin), HasSubstr("it begins at byte"));
  EXPECT_THAT(error_with<U64>(section(1) + 8, first), HasSubstr("it begins at byte"));  // overlaps
  EXPECT_THAT(error_with<U64>(section(0) + 16, 33), HasSubstr("33 bytes instead of 4 elements"));
  for (const U64 size : {U64{1} << 40, ~U64{0}, ~U64{0} - first})
    EXPECT_THAT(error_with<U64>(section(0) + 16, size), HasSubstr("ends beyond"));
  EXPECT_THAT(error_with<U64>(section(1) + 16, 8), HasSubstr("the last section ends here"));
  EXPECT_THAT(error_with(with_parts(0), [&](auto& bytes) { bytes[first - 1] = std::byte{1}; }),
              HasSubstr("between sections and not zero"));
}

TEST(ContainerHeader, RefusesMissingSections) {
  // Offsets alone: the table ends after the first section, and so does the file.
  auto bytes = written(with_parts(0));
  const U64 begin = field<U64>(bytes, section(0) + 8);
  bytes.truncate(begin + 32);
  set_field<U32>(bytes, 68, 1);
  set_field<U32>(bytes, 72, 0);
  set_field<U32>(bytes, 12, section(1));
  set_field<U64>(bytes, 16, bytes.size());
  std::fill(bytes.begin() + section(1), bytes.begin() + begin, std::byte{0});
  set_field<U64>(bytes, section(0) + 8, 128);
  std::copy_n(bytes.begin() + begin, 32, bytes.begin() + 128);
  bytes.truncate(128 + 32);
  set_field<U64>(bytes, 16, bytes.size());
  repair(bytes);
  EXPECT_THAT(error_of([&] { read(bytes); }), HasSubstr("no section neighbours"));
}

TEST(ContainerContent, IsValidated) {
  const auto at = [](int parts, std::size_t i) {
    return field<U64>(written(with_parts(parts)), section(i) + 8);
  };
  EXPECT_THAT(error_with<U32>(at(0, 1) + 4, 3), HasSubstr("id 3 is outside 0..2"));
  EXPECT_THAT(error_with<U64>(at(kWide, 1), ~U64{0}, kWide), HasSubstr("outside 0..2"));
  EXPECT_THAT(error_with<U64>(at(0, 0), 1), HasSubstr("does not begin with 0"));
  EXPECT_THAT(error_with<U64>(at(0, 0) + 8, 4), HasSubstr("less than the one before"));
  EXPECT_THAT(error_with<U64>(at(0, 0) + 24, 5), HasSubstr("not the number of entries"));
  EXPECT_THAT(error_with<float>(at(kWeights, 2), NAN, kWeights), HasSubstr("not a finite number"));
  EXPECT_THAT(error_with<std::int32_t>(at(kLabels, 2), -2, kLabels), HasSubstr("outside -1..5"));
  EXPECT_THAT(error_with<std::uint8_t>(at(kSplits, 2), 4, kSplits), HasSubstr("outside 0..3"));
}

TEST(ContainerContent, IsAsItsWriterSays) {
  Dataset data = bare<std::uint32_t>();
  std::get<Csr32>(data.graph).neighbours = List<U32>{1, 2, 0, 1};
  EXPECT_THAT(error_with(data, [](auto&) {}), HasSubstr("entry 2: id 0 follows 2 in a row"));
  data = bare<std::uint32_t>();
  data.symmetric = true;
  EXPECT_TRUE(reads(written(data), read));
  std::get<Csr32>(data.graph).neighbours = List<U32>{1, 0, 2, 2};
  EXPECT_THAT(error_with(data, [](auto&) {}),
              HasSubstr("edge to vertex 2 (counted from 0) has no"));
  data = bare<std::uint32_t>();
  data.symmetric = true;
  std::get<Csr32>(data.graph).weights = List<float>{1, 1, 2, 3};
  EXPECT_THAT(error_with(data, [](auto&) {}), HasSubstr("has no reverse of the same weight"));
}

}  // namespace
}  // namespace plait
