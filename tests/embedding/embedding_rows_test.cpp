// Products, maxima and norms of rows of embedding tables, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plait/embedding/bag_maxima.h"
#include "plait/embedding/id_weights.h"
#include "plait/embedding/row_norms.h"
#include "plait/embedding/row_update.h"

namespace plait {
namespace {

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 9) - 4;  // with ties
  return values;
}

// The same numbers, which narrow types have, as bytes of a type.
std::vector<std::byte> stored(const std::vector<float>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  with_number(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i)
      reinterpret_cast<T*>(bytes.data())[i] = rounded<T>(values[i]);
  });
  return bytes;
}
constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

// Bags of 0 to 6 ids of rows 0 to 10.
struct SomeBags {
  std::vector<EdgeOffset> offsets{0};
  std::vector<Slot> ids;

  explicit SomeBags(std::size_t count) {
    std::mt19937 random(3);
    for (std::size_t bag = 0; bag < count; ++bag) {
      for (unsigned k = random() % 7; k > 0; --k) ids.push_back(random() % 11);
      offsets.push_back(ids.size());
    }
  }
};

TEST(BagMaxima, AreThoseOfPlainLoops) {
  const SomeBags bags(200);
  for (const DType type : kTypes)
    for (const std::uint64_t width : {1, 7, 33}) {
      const auto x = numbers(11 * width, 1);
      const auto x_bytes = stored(x, type);
      std::vector<float> y(200 * width, -9);
      std::vector<Slot> places(y.size());
      const std::span<const EdgeOffset> offsets(bags.offsets);
      take_maxima({.begin = offsets.first(200),
                   .end = offsets.subspan(1),
                   .columns = bags.ids.data(),
                   .x = {.base = reinterpret_cast<const float*>(x_bytes.data()), .stride = width},
                   .x_type = type,
                   .width = width,
                   .y = y.data(),
                   .y_stride = width},
                  nullptr, places.data());
      for (std::size_t b = 0; b < 200; ++b)
        for (std::size_t c = 0; c < width; ++c) {
          Slot place = kNoPlace;
          for (EdgeOffset e = offsets[b]; e < offsets[b + 1]; ++e)
            if (place == kNoPlace ||
                x[bags.ids[e] * width + c] > x[bags.ids[offsets[b] + place] * width + c])
              place = static_cast<Slot>(e - offsets[b]);
          const bool empty = place == kNoPlace;
          ASSERT_EQ(places[b * width + c], place);
          ASSERT_EQ(y[b * width + c], empty ? 0 : x[bags.ids[offsets[b] + place] * width + c]);
        }
    }
}

// Numbers and places of any owners, in any order.
TEST(BagMaxima, AreJoined) {
  const float nan = std::nanf("");
  const std::vector<Placed> all{{1, 5}, {2, 4}, {2, 7}, {-INFINITY, 0}, {nan, 6}, {nan, 9}};
  for (std::size_t count = 1; count <= all.size(); ++count)
    for (const bool backwards : {false, true}) {
      Placed most;
      for (std::size_t i = 0; i < count; ++i) most.take(all[backwards ? count - 1 - i : i]);
      const Slot place = count == 1 ? 5 : count <= 4 ? 4 : 6;
      EXPECT_EQ(most.place, place) << count;
    }
}

TEST(IdWeights, HaveGradientsOfPlainLoops) {
  const SomeBags bags(150);
  for (const DType type : kTypes)
    for (const std::uint64_t width : {1, 16, 37}) {
      const auto x = numbers(11 * width, 1), gradients = numbers(150 * (width + 2), 2);
      auto x_bytes = stored(x, type);
      std::vector<float> out(bags.ids.size(), -7);
      multiply_rows({.bags = {bags.offsets.data(), bags.ids.data(), nullptr, 150},
                     .piece = {x_bytes.data(), width, type},
                     .gradients = gradients.data(),
                     .stride = width + 2,
                     .out = out.data()});
      for (std::size_t b = 0; b < 150; ++b)
        for (EdgeOffset e = bags.offsets[b]; e < bags.offsets[b + 1]; ++e) {
          float product = 0;
          for (std::size_t c = 0; c < width; ++c)
            product += x[bags.ids[e] * width + c] * gradients[b * (width + 2) + c];
          ASSERT_EQ(out[e], product);  // whole numbers
        }
    }
}

TEST(RowNorms, AreLimited) {
  for (const double type : {0.5, 1.0, 2.0, 3.0, double{INFINITY}})
    for (const std::uint64_t width : {1, 5, 40}) {
      const NormLimit limit{.most = 2.5, .type = type};
      const auto before = numbers(9 * width, 4);
      std::vector<float> x = before;
      const std::vector<Slot> rows{0, 2, 3, 8};
      // Two ranks with the halves of all numbers have the sums of powers of the whole.
      auto sums = norm_sums(limit, rows, {x.data(), width});
      const auto bytes = std::as_bytes(std::span(sums));
      std::vector<double> joined = sums;
      join_norm_sums(limit, std::vector<std::vector<std::byte>>(2, {bytes.begin(), bytes.end()}),
                     joined);
      for (std::size_t k = 0; k < rows.size(); ++k)
        EXPECT_DOUBLE_EQ(joined[k], std::isinf(type) ? sums[k] : 2 * sums[k]);
      limit_norms(limit, rows, sums, {x.data(), width});
      for (Slot row = 0; row < 9; ++row) {
        double norm = 0;
        for (std::size_t c = 0; c < width; ++c) {
          const double size = std::abs(double{before[row * width + c]});
          norm = std::isinf(type) ? std::max(norm, size) : norm + std::pow(size, type);
        }
        norm = std::isinf(type) ? norm : std::pow(norm, 1 / type);
        const bool named = row == 0 || row == 2 || row == 3 || row == 8;
        const double factor = named && norm > 2.5 ? 2.5 / norm : 1;
        for (std::size_t c = 0; c < width; ++c)
          EXPECT_NEAR(x[row * width + c], factor * before[row * width + c], 1e-5);
      }
    }
}

// Narrow rows become the rounded results of float ones.
TEST(RowNorms, OfNarrowRowsAreLimited) {
  const std::vector<Slot> rows{0, 4, 8};
  for (const DType type : kTypes) {
    std::vector<float> wide = numbers(9 * 6, 4);
    auto bytes = stored(wide, type);
    const PieceRows piece{bytes.data(), 6, type};
    const NormLimit limit{.most = 2.5};
    const auto sums = norm_sums(limit, rows, piece);
    EXPECT_EQ(sums, norm_sums(limit, rows, {wide.data(), 6}));
    limit_norms(limit, rows, sums, piece);
    limit_norms(limit, rows, sums, {wide.data(), 6});
    EXPECT_EQ(bytes, stored(wide, type));
  }
}

TEST(RowUpdates, OfNarrowRowsAreRounded) {
  const std::vector<std::int64_t> rows{1, 4, 5};
  std::vector<float> gradients = numbers(rows.size() * 7, 2);
  for (const DType type : {DType::bf16, DType::f16})
    for (const RowRule rule : {RowRule::sgd, RowRule::adagrad, RowRule::adam}) {
      std::vector<float> wide = numbers(9 * 7, 3), s(wide.size(), 0.5f), m = s;
      auto bytes = stored(wide, type);
      std::vector<float> narrow_s = s, narrow_m = m;
      RowUpdate update{.rule = rule,
                       .rows = rows.data(),
                       .count = rows.size(),
                       .width = 7,
                       .gradients = gradients.data(),
                       .weights = wide.data(),
                       .squares = s.data(),
                       .moments = m.data(),
                       .rate = 0.1f,
                       .epsilon = 1e-6f,
                       .a = 0.1f,
                       .b = 0.01f};
      update_rows(update);
      update.weights = bytes.data(), update.type = type;
      update.squares = narrow_s.data(), update.moments = narrow_m.data();
      update_rows(update);
      EXPECT_EQ(bytes, stored(wide, type));
      EXPECT_EQ(s, narrow_s);
      EXPECT_EQ(m, narrow_m);
    }
}

}  // namespace
}  // namespace plait
