// .npy: headers as NumPy writes them, every type, and every way in which a file can be wrong.
#include "plait/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/io/damage.h"
#include "tests/io/npy_file.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string parse_error(const std::string& text) {
  const auto bytes = to_bytes(text);
  return error_of([&] { parse_npy(bytes.span(), "x.npy"); });
}

// numpy.save wrote this from numpy.array([[0, 1, 2], [1, 2, 0]], numpy.int32), version 2.
const std::string kFromNumpy =
    "\x93NUMPY\x01\0v\0{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"s +
    std::string(58, ' ') + "\n" + "\0\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0"s;

TEST(Npy, ReadsWhatNumpyWrote) {
  const auto bytes = to_bytes(kFromNumpy);
  const NpyArray array = parse_npy(bytes.span(), "x.npy");
  EXPECT_EQ(array.type, (NpyType{'i', 4}));
  EXPECT_FALSE(array.fortran_order);
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  EXPECT_EQ(array.data.data(), bytes.data() + 128);  // not a copy
  const auto values = npy_integers<std::int32_t>(array, NpyRange{});
  EXPECT_THAT(values.span(), ElementsAre(0, 1, 2, 1, 2, 0));
}

TEST(Npy, WritesWhatNumpyWrites) {
  const std::string path = temporary_path("plait-npy-test.npy");
  AtomicFile file(path);
  const std::uint64_t shape[] = {2, 3};
  const std::vector<std::int32_t> values{0, 1, 2, 1, 2, 0};
  write_npy(file, shape, std::span(values));
  EXPECT_THROW(write_npy(file, shape, std::span(values).first(5)), Error);
  file.commit();
  EXPECT_EQ(MappedFile::open(path)->text(), kFromNumpy);
  std::filesystem::remove(path);
  const std::uint64_t one[] = {7};
  EXPECT_THAT(npy_header({'u', 1}, one), HasSubstr("{'descr': '|u1', 'fortran_order': False, "
                                                   "'shape': (7,), }"));
  EXPECT_THAT(npy_header({'f', 8}, {}), HasSubstr("'<f8', 'fortran_order': False, 'shape': (), }"));
  EXPECT_EQ(npy_header({'f', 8}, one).size() % 64, 0u);
}

template <class T>
void expect_type(const std::string& descr) {
  const T low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  const auto bytes = to_bytes(file_of<T>(descr, "(3,)", {low, T{1}, high}));
  const NpyArray array = parse_npy(bytes.span(), "x");
  visit_npy(array, [&](auto load) {
    using Value = typename decltype(load)::Value;
    EXPECT_TRUE((std::is_same_v<Value, T>)) << descr;
    EXPECT_EQ(static_cast<T>(load(0)), low) << descr;
    EXPECT_EQ(static_cast<T>(load(1)), T{1}) << descr;
    EXPECT_EQ(static_cast<T>(load(2)), high) << descr;
  });
}

TEST(Npy, EveryTypeOfNumber) {
  expect_type<std::int8_t>("|i1");
  expect_type<std::int8_t>("<i1");
  expect_type<std::int16_t>("<i2");
  expect_type<std::int32_t>("<i4");
  expect_type<std::int64_t>("<i8");
  expect_type<std::uint8_t>("|u1");
  expect_type<std::uint8_t>("|b1");
  expect_type<std::uint16_t>("<u2");
  expect_type<std::uint32_t>("<u4");
  expect_type<std::uint64_t>("<u8");
  expect_type<float>("<f4");
  expect_type<double>("<f8");
}

TEST(Npy, VersionsAndSpellings) {
  const std::string data = bytes_of<float>({1, 2});
  for (const std::string& dict : {dictionary("<f4", "(2,)"), dictionary("<f4", "( 2 , )"),
                                  dictionary("<f4", "(1, 2)"), dictionary("<f4", "(1, 2,)"),
                                  "{\"shape\": (2,), \"descr\": \"<f4\", \"fortran_order\": True}"s,
                                  "{'descr':'<f4','fortran_order':False,'shape':(2,)}    \n  "s})
    for (const int version : {1, 2, 3}) {
      const auto bytes = to_bytes(file_of(dict, data, version));
      EXPECT_EQ(parse_npy(bytes.span(), "x").size(), 2u) << dict;
    }
  const auto scalar = to_bytes(file_of("|S3", "()", std::vector<char>{'c', 's', 'r'}));
  EXPECT_EQ(parse_npy(scalar.span(), "x").rank(), 0u);
  EXPECT_EQ(parse_npy(scalar.span(), "x").size(), 1u);
  const auto empty = to_bytes(file_of<float>("<f4", "(0, 18446744073709551615)", {}));
  EXPECT_EQ(parse_npy(empty.span(), "x").size(), 0u);
}

TEST(Npy, RefusesTypesThatAreNotNumbers) {
  const auto error = [](const std::string& descr) {
    return parse_error(file_of(dictionary(descr, "(1,)"), std::string(16, 'x')));
  };
  EXPECT_EQ(error("|O"),
            "x.npy: header: it holds Python objects, which would need a pickle; save with "
            "allow_pickle=False");
  EXPECT_THAT(error(">i4"), HasSubstr("big-endian ('>i4')"));
  EXPECT_THAT(error(">f8"), HasSubstr("big-endian"));
  for (const char* descr : {"<f2", "<c8", "<U4", "<M8[s]", "|V8", "<i3", "|i4", "=i4", "i4", "<b8",
                            "<f16", "", "<", "<i", "<i-4", "<i4 ", "<i99999999999999999999"})
    EXPECT_THAT(error(descr), HasSubstr("are not supported")) << descr;
  const std::string structure =
      "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }";
  EXPECT_THAT(parse_error(file_of(structure, "abcd")), HasSubstr("structures"));
}

TEST(Npy, RefusesOtherHeaders) {
  const std::string data = bytes_of<float>({1, 2});
  for (const std::string& dict :
       {""s,
        "{}"s,
        "{'descr': '<f4'}"s,
        "{'descr': '<f4', 'shape': (2,)}"s,
        dictionary("<f4", "2"),
        dictionary("<f4", "(2)"),
        dictionary("<f4", "(2 1)"),
        dictionary("<f4", "(,)"),
        dictionary("<f4", "(-2,)"),
        dictionary("<f4", "(2.0,)"),
        dictionary("<f4", "(0x2,)"),
        dictionary("<f4", "[2]"),
        dictionary("<f4", "(2,"),
        dictionary("<f4", "(18446744073709551616,)"),
        dictionary("<f4", "(2,)", "0"),
        dictionary("<f4", "(2,)", "'False'"),
        dictionary("<f4", "(2,)") + "{}",
        dictionary("<f4", "(2,)") + "\0"s,
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"s,
        "{'descr': '<f4', 'fortran_order': __import__('os'), 'shape': (2,)}"s,
        "{'descr': '<f4"s})
    EXPECT_THAT(parse_error(file_of(dict, data)), StartsWith("x.npy: header: it holds ")) << dict;
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_THAT(parse_error(file_of(dictionary("<f8", many + ")"), data)),
              HasSubstr("64 dimensions"));
  EXPECT_THAT(parse_error(file_of(dictionary("<f4", "(2,)"), data, 4)),
              HasSubstr("version 4.0 is outside 1.0..3.0"));
  EXPECT_THAT(parse_error("hello, world"), HasSubstr("NumPy's mark"));
  EXPECT_THAT(parse_error("\x93NUMPY\x02\0\xff\xff\xff\xff{"s), HasSubstr("ends within it"));
}

TEST(Npy, RefusesShapesThatTheFileDoesNotHold) {
  const std::string data = bytes_of<float>({1, 2});
  for (const char* shape :
       {"(1,)", "(3,)", "()", "(0,)", "(1099511627776,)", "(4294967296, 4294967296)",
        "(4611686018427387906,)", "(18446744073709551615, 2)"})
    EXPECT_THAT(parse_error(file_of(dictionary("<f4", shape), data)),
                HasSubstr(shape == "(18446744073709551615, 2)"s ? "promises over 2^64 bytes"
                                                                : "where 8 follow"))
        << shape;
}

TEST(Npy, IntegersInRangeAndBySlice) {
  const auto bytes = to_bytes(file_of<std::int16_t>("<i2", "(2, 3)", {5, -1, 7, 8, 9, 300}));
  const NpyArray array = parse_npy(bytes.span(), "x.npy");
  EXPECT_THAT(
      npy_integers<std::int32_t>(array, {.first = 1, .count = 3, .stride = 2}, {-1, 300}).span(),
      ElementsAre(-1, 8, 300));
  EXPECT_THAT(error_of([&] {
                npy_integers<std::int32_t>(array, NpyRange{-1, 299});
              }),
              StartsWith("x.npy: element (1, 2): value 300 is outside -1..299; "));
  EXPECT_THAT(error_of([&] { npy_integers<std::uint64_t>(array, NpyRange{}); }),
              StartsWith("x.npy: element (0, 1): value -1 is negative; "));
  EXPECT_THAT(error_of([&] { npy_largest_id(array); }), HasSubstr("value -1 is negative"));

  const auto large = to_bytes(
      file_of<std::uint64_t>("<u8", "(2,)", {3, std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_EQ(npy_largest_id(parse_npy(large.span(), "x")),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_THAT(error_of([&] {
                npy_integers<std::int32_t>(parse_npy(large.span(), "x"), NpyRange{-1, 100});
              }),
              HasSubstr("value 18446744073709551615 is outside -1..100"));
  const auto floats = to_bytes(file_of<float>("<f4", "(1,)", {1}));
  EXPECT_THAT(error_of([&] { npy_largest_id(parse_npy(floats.span(), "x")); }),
              HasSubstr("f4 where integers belong"));
}

// Reads any file of f4 or f8, through parse_npy.
NpyMatrix matrix_of(const std::string& text, std::size_t shift = 0) {
  // `shift` moves the bytes away from their alignment.
  auto bytes = std::make_shared<const Buffer<std::byte>>(to_bytes(std::string(shift, ' ') + text));
  return npy_matrix(parse_npy(bytes->span().subspan(shift), "x.npy"), bytes);
}

TEST(NpyMatrix, OrdersAndWidths) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<double> doubles{1, 2, 3, 4, 5, 6};
  for (const std::size_t shift : {0, 1, 2, 3}) {
    for (const NpyMatrix& matrix : {matrix_of(file_of("<f4", "(3, 2)", values), shift),
                                    matrix_of(file_of("<f8", "(3, 2)", doubles), shift)}) {
      EXPECT_EQ(matrix.rows, 3u);
      EXPECT_EQ(matrix.width, 2u);
      EXPECT_THAT(matrix.values.span(), ElementsAre(1, 2, 3, 4, 5, 6));
    }
    const NpyMatrix turned =
        matrix_of(file_of(dictionary("<f4", "(3, 2)", "True"), bytes_of(values)), shift);
    EXPECT_THAT(turned.values.span(), ElementsAre(1, 4, 2, 5, 3, 6));
  }
  const NpyMatrix vector = matrix_of(file_of("<f4", "(6,)", values));
  EXPECT_EQ(vector.rows, 6u);
  EXPECT_EQ(vector.width, 1u);
  EXPECT_TRUE(matrix_of(file_of<float>("<f4", "(0, 5)", {})).values.empty());
}

TEST(NpyMatrix, AlignedSinglesAreNotCopied) {
  const auto bytes = std::make_shared<const Buffer<std::byte>>(
      to_bytes(npy_header({'f', 4}, std::vector<std::uint64_t>{2, 1}) + bytes_of<float>({1, 2})));
  const NpyArray array = parse_npy(bytes->span(), "x");
  EXPECT_EQ(static_cast<const void*>(npy_matrix(array, bytes).values.data()), array.data.data());
}

TEST(NpyMatrix, RefusesWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(error_of([&] {
                matrix_of(file_of<double>("<f8", "(2, 2)", {0, 1, 1e300, 2}));
              }),
              StartsWith("x.npy: element (1, 0): value 1e+300 is not a finite"));
  for (const double bad : {inf, -inf, std::nan("")}) {
    EXPECT_THROW(matrix_of(file_of<double>("<f8", "(1,)", {bad})), InputError);
    EXPECT_THROW(matrix_of(file_of<float>("<f4", "(1,)", {static_cast<float>(bad)})), InputError);
  }
  EXPECT_THROW(matrix_of(file_of<std::int32_t>("<i4", "(1,)", {1})), InputError);
  EXPECT_THROW(matrix_of(file_of<float>("<f4", "()", {1})), InputError);
  EXPECT_THROW(matrix_of(file_of<float>("<f4", "(1, 1, 1)", {1})), InputError);
}

TEST(NpyMatrix, NamesElementsOfFortranOrder) {
  const std::string text =
      file_of(dictionary("<f4", "(2, 3)", "True"), bytes_of<float>({0, 1, 2, std::nanf(""), 4, 5}));
  EXPECT_THAT(error_of([&] { matrix_of(text); }), HasSubstr("element (1, 1): value nan"));
}

template <class T>
AnyEdgeList edges_of(const std::string& descr, const std::string& shape,
                     const std::vector<T>& values, std::uint64_t vertices = 0) {
  const auto bytes = to_bytes(file_of(descr, shape, values));
  return npy_edges(parse_npy(bytes.span(), "x.npy"), vertices);
}

TEST(NpyEdges, RowsAreSourcesAndTargets) {
  const auto check = [](const AnyEdgeList& any) {
    const auto& edges = std::get<EdgeList<std::uint32_t>>(any);
    EXPECT_EQ(edges.vertices, 10u);
    EXPECT_THAT(edges.source.span(), ElementsAre(0, 1, 2));
    EXPECT_THAT(edges.target.span(), ElementsAre(9, 0, 3));
    EXPECT_TRUE(edges.weight.empty());
  };
  check(edges_of<std::int64_t>("<i8", "(2, 3)", {0, 1, 2, 9, 0, 3}));
  check(edges_of<std::uint16_t>("<u2", "(2, 3)", {0, 1, 2, 9, 0, 3}));
  const auto fortran = to_bytes(
      file_of(dictionary("<i4", "(2, 3)", "True"), bytes_of<std::int32_t>({0, 9, 1, 0, 2, 3})));
  check(npy_edges(parse_npy(fortran.span(), "x")));
}

TEST(NpyEdges, IdsAreAsWideAsTheyMustBe) {
  const auto edges = edges_of<std::uint64_t>("<u8", "(2, 1)", {5, (1ull << 32) - 1}, 1ull << 32);
  EXPECT_EQ(std::get<EdgeList<std::uint64_t>>(edges).target[0], (1ull << 32) - 1);
  const auto narrow =
      edges_of<std::uint64_t>("<u8", "(2, 1)", {5, (1ull << 32) - 2}, (1ull << 32) - 1);
  EXPECT_EQ(std::get<EdgeList<std::uint32_t>>(narrow).target[0], 0xfffffffeu);
}

TEST(NpyEdges, RefusesOtherArraysAndIds) {
  EXPECT_THAT(error_of([] {
                edges_of<std::int32_t>("<i4", "(3, 2)", {0, 1, 2, 3, 4, 5});
              }),
              HasSubstr("shape (3, 2) where (2, number of edges) belongs"));
  EXPECT_THROW(edges_of<std::int32_t>("<i4", "(2,)", {0, 1}), InputError);
  EXPECT_THROW(edges_of<float>("<f4", "(2, 1)", {0, 1}), InputError);
  EXPECT_THAT(error_of([] {
                edges_of<std::int32_t>("<i4", "(2, 2)", {0, 1, -4, 1});
              }),
              HasSubstr("element (1, 0): value -4 is negative"));
  EXPECT_THAT(error_of([] {
                edges_of<std::int32_t>("<i4", "(2, 2)", {0, 1, 7, 1}, 7);
              }),
              HasSubstr("element (1, 0): value 7 is outside 0..6"));
  // A few bytes must not make a graph of billions of vertices.
  for (const std::uint64_t id : {std::uint64_t{1} << 31, std::uint64_t{1} << 40, ~std::uint64_t{0}})
    EXPECT_THAT(error_of([&] {
                  edges_of<std::uint64_t>("<u8", "(2, 1)", {0, id});
                }),
                HasSubstr("1 edges touch at most 2 vertices"));
}

TEST(NpyEdges, EmptyIsAGraphWithoutVertices) {
  std::visit([](const auto& edges) { EXPECT_EQ(edges.vertices + edges.edges(), 0u); },
             edges_of<std::int32_t>("<i4", "(2, 0)", {}));
}

TEST(NpyDamage, EveryTruncationAndEveryFlip) {
  const auto edges = [](const Buffer<std::byte>& bytes) {
    npy_edges(parse_npy(bytes.span(), "x.npy"));
  };
  const auto good = to_bytes(kFromNumpy);
  EXPECT_TRUE(reads(good, edges));
  expect_every_truncation_refused(good.span(), edges);
  EXPECT_GT(count_refused_flips(good.span(), edges), 8u * 60);

  const auto matrix = [](const Buffer<std::byte>& bytes) {
    npy_matrix(parse_npy(bytes.span(), "x.npy"), nullptr);
  };
  const auto floats = to_bytes(file_of<float>("<f4", "(2, 2)", {1, 2, 3, 4}));
  EXPECT_TRUE(reads(floats, matrix));
  expect_every_truncation_refused(floats.span(), matrix);
  EXPECT_GT(count_refused_flips(floats.span(), matrix), 8u * 40);
}

}  // namespace
}  // namespace plait
