// Rows of embedding tables as Python sees them: the choice of the split of tables, their first
// weights, and optimisers of rows. None is collective.
#include "plait/base/parallel.h"
#include "plait/embedding/cuda/update_rows.h"
#include "plait/embedding/embedding_choice.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/world/launch.h"
#include "python/number_type.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

EmbeddingQuestion question_of(const std::vector<std::int64_t>& rows, std::int64_t width,
                              const std::vector<double>& ids, std::int64_t samples,
                              std::int64_t ranks) {
  require<UsageError>(rows.size() == ids.size(), "{} embedding tables have {} numbers of ids",
                      rows.size(), ids.size());
  EmbeddingQuestion question{.width = static_cast<std::uint64_t>(width),
                             .ranks = static_cast<int>(ranks),
                             .samples = static_cast<std::uint64_t>(samples)};
  for (std::size_t t = 0; t < rows.size(); ++t)
    question.tables.push_back({static_cast<std::uint64_t>(rows[t]), ids[t]});
  return question;
}

// Returns the splits and the owners that are chosen.
std::tuple<std::vector<std::string>, std::vector<std::int64_t>> choose_embedding_splits(
    const std::vector<std::int64_t>& rows, std::int64_t width, const std::vector<double>& ids,
    std::int64_t samples, std::int64_t ranks) {
  return with_python_errors([&] {
    std::tuple<std::vector<std::string>, std::vector<std::int64_t>> chosen;
    for (const EmbeddingTable& table :
         choose_splits(question_of(rows, width, ids, samples, ranks))) {
      std::get<0>(chosen).emplace_back(to_string(table.split));
      std::get<1>(chosen).push_back(table.owner);
    }
    return chosen;
  });
}

// Fills a piece with its first weights. `ids`: of its rows, where the piece is.
void fill_normal(const Tensor& piece, const Tensor& ids, std::int64_t seed, std::int64_t table,
                 std::int64_t first_column) {
  const FirstWeights weights{.ids = ids.const_data_ptr<std::int64_t>(),
                             .rows = static_cast<std::uint64_t>(ids.numel()),
                             .first_column = static_cast<std::uint64_t>(first_column),
                             .columns = static_cast<std::uint64_t>(piece.size(1)),
                             .seed = static_cast<std::uint64_t>(seed),
                             .table = static_cast<std::uint64_t>(table),
                             .weights = piece.mutable_data_ptr(),
                             .type = number_type(piece)};
  with_python_errors([&] {
    const OnGpuOf gpu(piece.device());
    const ThreadCount threads(thread_share());
    piece.is_cuda() ? gpu_fill_first_weights(weights, current_stream(piece.device()))
                    : fill_first_weights(weights);
  });
}

// Changes rows of `weights`; see RowUpdate. `state`: squares, then moments, as the rule has them.
// `numbers`: rate, epsilon, a, b.
void update_weight_rows(const Tensor& weights, const std::vector<Tensor>& state, const Tensor& rows,
                        const Tensor& gradients, const std::string& rule,
                        const std::vector<double>& numbers) {
  for (const Tensor& t : state)
    TORCH_CHECK_VALUE(t.is_contiguous() && t.sizes() == weights.sizes() &&
                          t.device() == weights.device() && t.scalar_type() == torch::kFloat32,
                      "the state of an optimiser of rows has another shape or device than the "
                      "weights, or is not float32");
  TORCH_CHECK_VALUE((weights.is_cpu() || weights.is_cuda()) && weights.is_contiguous() &&
                        gradients.is_contiguous() && gradients.device() == weights.device() &&
                        gradients.scalar_type() == torch::kFloat32 && numbers.size() == 4,
                    "optimisers of rows take contiguous weights on the CPU or a GPU, and float32 "
                    "gradients there");
  const auto of_state = [&](std::size_t i) {
    return i < state.size() ? state[i].mutable_data_ptr<float>() : nullptr;
  };
  const auto number = [&](std::size_t i) { return static_cast<float>(numbers[i]); };
  with_python_errors([&] {
    const RowUpdate update{.rule = parse_row_rule(rule),
                           .rows = rows.const_data_ptr<std::int64_t>(),
                           .count = static_cast<std::uint64_t>(rows.numel()),
                           .width = static_cast<std::uint64_t>(weights.size(1)),
                           .gradients = gradients.const_data_ptr<float>(),
                           .weights = weights.mutable_data_ptr(),
                           .type = number_type(weights),
                           .squares = of_state(0),
                           .moments = of_state(1),
                           .rate = number(0),
                           .epsilon = number(1),
                           .a = number(2),
                           .b = number(3)};
    const OnGpuOf gpu(weights.device());
    const ThreadCount threads(thread_share());
    weights.is_cuda() ? gpu_update_rows(update, current_stream(weights.device()))
                      : update_rows(update);
  });
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("choose_embedding_splits", &choose_embedding_splits);
  m.def("fill_normal_(Tensor(a!) piece, Tensor ids, int seed, int table, int first_column) -> ()",
        &fill_normal);
  m.def(
      "update_rows_(Tensor(a!) weights, Tensor(b!)[] state, Tensor rows, Tensor gradients, str "
      "rule, "
      "float[] numbers) -> ()",
      &update_weight_rows);
}

}  // namespace
}  // namespace plait
