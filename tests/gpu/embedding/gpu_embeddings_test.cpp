// Embedding tables over ranks with a GPU each, against sums in plain loops. Ranks share GPUs where
// there are fewer.
#include "plait/embedding/cuda/gpu_embeddings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/embedding/cuda/bags.cuh"
#include "plait/embedding/cuda/update_rows.h"
#include "plait/embedding/row_numbers.h"
#include "tests/support/embedding_case.h"
#include "tests/support/embedding_faults.h"

namespace plait::test {
namespace {

using testing::HasSubstr;

template <class T>
DeviceArray<T> there(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}
template <class T>
std::span<const T> span_of(const DeviceArray<T>& array) {
  return {array.data(), array.size()};
}

// The bags of a rank in memory of the GPU.
struct BagsThere {
  DeviceArray<std::int64_t> ids, offsets;
  DeviceArray<float> weights;

  explicit BagsThere(const RankBags& bags)
      : ids(there(bags.ids)), offsets(there(bags.offsets)), weights(there(bags.weights)) {}
  GivenBags given(bool weighted) const {
    return {.ids = span_of(ids),
            .offsets = span_of(offsets),
            .weights = weighted ? weights.data() : nullptr};
  }
};

// Memory of the GPU that lives as long as this object.
struct Rooms {
  std::deque<DeviceArray<std::byte>> arrays;
  Embeddings::Room room() {
    return [this](std::uint64_t bytes) { return arrays.emplace_back(bytes).data(); };
  }
};

std::vector<Slot> rows_of(const RowGradients& gradients) {
  std::vector<std::int64_t> rows(gradients.count);
  if (!rows.empty()) copy_to_host(rows.data(), gradients.rows, rows.size() * sizeof(rows[0]));
  return {rows.begin(), rows.end()};
}
std::vector<float> values_of(const RowGradients& gradients, std::uint64_t columns) {
  std::vector<float> values(gradients.count * columns);
  if (!values.empty()) copy_to_host(values.data(), gradients.values, values.size() * sizeof(float));
  return values;
}

// `all`: the bags of each rank. `most`: as make_gpu_embeddings()'s.
void check_case(World& world, const EmbeddingCase& c, const std::vector<RankBags>& all,
                std::uint64_t most = kNoRow) {
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  const RankBags& mine = all[static_cast<std::size_t>(world.rank())];
  std::vector<DeviceArray<float>> pieces;
  std::vector<void*> at;
  for (const auto& piece : pieces_of(layout, world.rank())) {
    pieces.push_back(there(piece));
    at.push_back(pieces.back().data());
  }
  const auto embeddings = make_gpu_embeddings(world, layout, c.rules(), most);
  const BagsThere mine_there(mine);
  const GivenBags bags = mine_there.given(c.weighted);
  DeviceArray<float> out(mine.offsets.size() * c.width);
  DeviceArray<Slot> places(out.size());
  const std::uint64_t number =
      embeddings->forward(bags, {at}, {out.data(), places.data()}, nullptr);
  const std::vector<double> wanted = expected_sums(c, mine);
  const std::vector<float> sums = out.to_host();
  for (std::size_t i = 0; i < sums.size(); ++i) expect_near(sums[i], wanted[i], c.text() + "sum ");
  std::vector<float> gradient;
  for (std::size_t i = 0; i < sums.size(); ++i) gradient.push_back(gradient_value(world.rank(), i));
  const DeviceArray<float> gradient_there = there(gradient);
  std::vector<std::vector<float>> before;
  for (const bool another : {false, true}) {
    const RankBags more(c.as, 100, static_cast<unsigned>(world.rank()) + 9);
    const BagsThere more_there(more);
    DeviceArray<float> unused(more.offsets.size() * c.width);
    DeviceArray<Slot> unused_places(unused.size());
    if (another)
      embeddings->forward(more_there.given(false), {at}, {unused.data(), unused_places.data()},
                          nullptr);
    Rooms rooms;
    DeviceArray<float> weights(c.weighted ? mine.ids.size() : 0);
    const auto found =
        embeddings->backward(bags, number,
                             {.sums = gradient_there.data(),
                              .places = places.data(),
                              .weights = weights.size() > 0 ? weights.data() : nullptr,
                              .pieces = {at}},
                             rooms.room(), nullptr);
    check_cuda(cudaDeviceSynchronize(), "gradients");
    check_weights(c, mine, world.rank(), weights.to_host());
    for (std::size_t t = 0; t < c.tables.size(); ++t) {
      const std::string what = fmt::format("{}gradient of table {} ", c.text(), t);
      const auto values = values_of(found[t], layout.piece(t, world.rank()).columns);
      check_gradient(rows_of(found[t]), values.data(), layout, t, world.rank(),
                     expected_gradient(c, all, t), what);
      if (another) expect(values == before[t], what + "has other bits the second time");
      before.push_back(values);
    }
  }
}

const RankProgram kSums("gpu embeddings", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for_cases(world.size(),
            [&](const EmbeddingCase& c) { check_case(world, c, bags_of_ranks(c, world.size())); });
});

// Tables of all splits, whose pieces have different numbers of columns, one without ids, and bags
// that name a row up to 12,000 times on one rank, and 37,000 times on three: its sum is cut into
// few pieces, or into many.
void add_tables_of_many_ids(EmbeddingCase& c, int ranks) {
  c.add(3, EmbeddingSplit::replicated, 0);
  c.add(2, EmbeddingSplit::table, 0);
  c.add(30, EmbeddingSplit::columns, 0, 1);
  c.add(0, EmbeddingSplit::table, 0);
  c.add(700, EmbeddingSplit::rows, 0);
  c.add(1, EmbeddingSplit::rows, 0);
  c.add(5, EmbeddingSplit::replicated, 0, 2);
  c.add(40, EmbeddingSplit::table, ranks - 1);
}

// Returns the least `most` with which a rank's rows can be numbered. Several ranks then need more
// than one numbering, of which the first has two groups.
std::uint64_t least_numbering(const EmbeddingCase& c, const World& world) {
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  std::uint64_t most = 0;
  for (const RowNumbers& numbers : number_rows(layout, world.rank(), kNoRow))
    for (const TableGroup& group : numbers.groups)
      most = std::max<std::uint64_t>(
          most, numbers.bases[group.end] - numbers.bases[group.first] + std::uint64_t{1});
  const std::vector<RowNumbers> all = number_rows(layout, world.rank(), most);
  if (world.size() > 1)
    expect(all.size() > 1 && all[0].groups.size() == 2, "rows are numbered at once");
  return most;
}

const RankProgram kManyIds("gpu embeddings of many ids", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const auto check = [&](EmbeddingCase c, bool parted = false) {
    add_tables_of_many_ids(c, world.size());
    std::vector<RankBags> all;
    for (int rank = 0; rank < world.size(); ++rank)
      all.emplace_back(c.as, 4000 + 100 * rank, static_cast<unsigned>(rank) + 1);
    check_case(world, c, all, parted ? least_numbering(c, world) : kNoRow);
  };
  for (const std::uint64_t width : {9, 32}) {
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
      check({.width = width, .mode = mode, .weighted = mode == BagMode::sum});
    check({.width = width, .weighted = true, .by_frequency = true});
    check({.width = width, .weighted = true, .by_frequency = true}, true);
  }
});

TEST(GpuEmbeddings, AreThoseOfPlainLoops) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu embeddings", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuEmbeddings, OfManyIdsAreThoseOfPlainLoops) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu embeddings of many ids", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// Rank 1 gives a wrong id; all ranks say so, and the next batch is served.
const RankProgram kWrong("gpu embeddings with wrong bags", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const auto embeddings =
      Embeddings::create(world, EmbeddingLayout({{.rows = 10}, {.rows = 20}}, 4, world.size()),
                         {{-1, -1}}, Device::gpu);
  DeviceArray<float> rows = there(std::vector<float>(80));
  void* const pieces[] = {rows.data(), rows.data()};
  DeviceArray<float> out(16);
  const auto offsets = there(std::vector<std::int64_t>{0, 1, 2, 3});
  const auto forward = [&](const std::vector<std::int64_t>& ids) {
    const auto ids_there = there(ids);
    embeddings->forward({.ids = span_of(ids_there), .offsets = span_of(offsets)}, {pieces},
                        {out.data()}, nullptr);
    check_cuda(cudaDeviceSynchronize(), "sums");
  };
  const auto fault_of = [&](const std::vector<std::int64_t>& ids) -> std::string {
    try {
      forward(ids);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "right";
  };
  const bool last = world.rank() == 1;
  expect(fault_of({1, 9, 19, last ? 20 : 0}) == "rank 1: ids[3] is 20, outside 0..19 of table 1",
         "an id that is too large");
  expect(fault_of({last ? -1 : 0, 9, 19, 0}) == "rank 1: ids[0] is -1, outside 0..9 of table 0",
         "a negative id");
  expect(fault_of({0, 1, 2, 3}) == "right", "right ids");
});

TEST(GpuEmbeddings, FailOnAllRanks) {
  const Outcome outcome =
      run_job({.program = "gpu embeddings with wrong bags", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// Maxima of many bags that name few rows, whose edges are summed in pieces: all numbers are whole.
TEST(GpuEmbeddings, SumMaximaOfManyIds) {
  const auto world = World::alone();
  EmbeddingCase c{.width = 9, .mode = BagMode::max};
  c.add(4, EmbeddingSplit::table, 0, 2);
  RankBags bags(c.as, 30000, 1);
  const EmbeddingLayout layout(c.tables, c.width, 1);
  const auto embeddings = Embeddings::create(*world, layout, c.rules(), Device::gpu);
  const BagsThere bags_there(bags);
  auto rows = there(pieces_of(layout, 0)[0]);
  void* const pieces[] = {rows.data()};
  DeviceArray<float> out(30000 * c.width);
  DeviceArray<Slot> places(out.size());
  const GivenBags given = bags_there.given(false);
  const std::uint64_t number =
      embeddings->forward(given, {pieces}, {out.data(), places.data()}, nullptr);
  std::vector<float> gradient(out.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 5);
  const auto gradient_there = there(gradient);
  Rooms rooms;
  const auto found =
      embeddings->backward(given, number, {.sums = gradient_there.data(), .places = places.data()},
                           rooms.room(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "gradients");
  const auto values = values_of(found[0], c.width);
  std::vector<double> wanted(4 * c.width);
  for_ids(c, bags, 0, [&](std::size_t b, std::uint64_t id, auto weight) {
    for (std::size_t k = 0; k < c.width; ++k)
      wanted[id * c.width + k] += weight(k) * double{gradient[b * c.width + k]};
  });
  ASSERT_EQ(rows_of(found[0]), (std::vector<Slot>{0, 1, 3}));
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t k = 0; k < c.width; ++k)
      ASSERT_EQ(values[row * c.width + k], wanted[(row == 2 ? 3 : row) * c.width + k]);
}

// Rows that most ids name are summed in pieces.
TEST(GpuEmbeddings, SumRowsOfManyIds) {
  const auto world = World::alone();
  EmbeddingCase c{.width = 128};
  c.add(3, EmbeddingSplit::table, 0);
  RankBags bags(c.as, 20000, 1);
  const auto embeddings =
      Embeddings::create(*world, EmbeddingLayout(c.tables, 128, 1), {{-1}}, Device::gpu);
  const BagsThere bags_there(bags);
  auto rows = there(std::vector<float>(3 * 128, 1.0f));
  void* const pieces[] = {rows.data()};
  DeviceArray<float> out(20000 * 128);
  const GivenBags given = bags_there.given(false);
  const std::uint64_t number = embeddings->forward(given, {pieces}, {out.data()}, nullptr);
  const auto ones = there(std::vector<float>(20000 * 128, 1.0f));
  Rooms rooms;
  const auto found =
      embeddings->backward(given, number, {.sums = ones.data()}, rooms.room(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "gradients");
  const auto values = values_of(found[0], 128);
  ASSERT_EQ(rows_of(found[0]), (std::vector<Slot>{0, 1, 2}));
  for (std::int64_t row = 0; row < 3; ++row) {
    const auto count = static_cast<float>(std::ranges::count(bags.ids, row));
    for (std::size_t k = 0; k < 128; ++k)
      ASSERT_EQ(values[static_cast<std::size_t>(row) * 128 + k], count);
  }
}

TEST(GpuRows, AreChangedAndMadeAsOnTheCpu) {
  const std::vector<std::int64_t> rows{1, 4, 5, 900};
  std::vector<float> gradients(rows.size() * 7);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = table_value(i, 3) / 4;
  for (const RowRule rule : {RowRule::sgd, RowRule::adagrad, RowRule::adam}) {
    RowUpdate update{.rule = rule,
                     .count = rows.size(),
                     .width = 7,
                     .rate = 0.1f,
                     .epsilon = 1e-6f,
                     .a = 0.1f,
                     .b = 0.01f};
    std::vector<float> w(1000 * 7, 0.5f), s = w, m = w;
    auto w_there = there(w), s_there = there(s), m_there = there(m);
    const auto rows_there = there(rows);
    const auto gradients_there = there(gradients);
    update.rows = rows.data(), update.gradients = gradients.data();
    update.weights = w.data(), update.squares = s.data(), update.moments = m.data();
    update_rows(update);
    update.rows = rows_there.data(), update.gradients = gradients_there.data();
    update.weights = w_there.data(), update.squares = s_there.data();
    update.moments = m_there.data();
    gpu_update_rows(update, nullptr);
    const std::vector<float> found = w_there.to_host();
    for (std::size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(found[i], w[i], 1e-6f);
  }
  std::vector<float> first(rows.size() * 33);
  FirstWeights of{.ids = rows.data(),
                  .rows = rows.size(),
                  .first_column = 5,
                  .columns = 33,
                  .seed = 8,
                  .table = 2,
                  .weights = first.data()};
  fill_first_weights(of);
  const auto rows_there = there(rows);
  DeviceArray<float> first_there(first.size());
  of.ids = rows_there.data(), of.weights = first_there.data();
  gpu_fill_first_weights(of, nullptr);
  const std::vector<float> found = first_there.to_host();
  for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(found[i], first[i], 1e-6f);
}

// As on the CPU, a step that fails anywhere.
const RankProgram kFaults("gpu embedding step faults", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  EmbeddingCase c{.weighted = true};
  for (const EmbeddingSplit split : kSplits) c.add(20, split, 0);
  EmbeddingRules rules = c.rules();
  rules.norm.most = 2;
  const EmbeddingLayout layout(c.tables, c.width, world.size());
  const auto embeddings = Embeddings::create(world, layout, rules, Device::gpu);
  const RankBags bags(c.as, 7, static_cast<unsigned>(world.rank()) + 1);
  const BagsThere bags_there(bags);
  const GivenBags given = bags_there.given(true);
  std::vector<DeviceArray<float>> pieces;
  std::vector<void*> at;
  for (const auto& piece : pieces_of(layout, world.rank())) {
    pieces.push_back(there(piece));
    at.push_back(pieces.back().data());
  }
  DeviceArray<float> out(bags.offsets.size() * c.width), weights(bags.ids.size());
  Rooms rooms;
  run_with_fault(world, [&] {
    const std::uint64_t number = embeddings->forward(given, {at}, {.sums = out.data()}, nullptr);
    embeddings->backward(given, number,
                         {.sums = out.data(), .weights = weights.data(), .pieces = {at}},
                         rooms.room(), nullptr);
  });
});

TEST(GpuEmbeddingFaults, AreHeardByRanksThatWait) {
  expect_faults_are_heard("gpu embedding step faults");
}

}  // namespace
}  // namespace plait::test
