// Embedding tables as Python sees them: torch.classes.plait.Embeddings, their first weights, and
// optimisers of rows.
//
// Tensors are on the CPU. Python has checked and converted them, or gives the text of what is wrong
// with them (`fault`), which all ranks then throw.
#include <cmath>

#include "plait/base/names.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/store/embedding_choice.h"
#include "plait/store/row_update.h"
#include "plait/store/sharded/embeddings.h"
#include "plait/world/difference.h"
#include "plait/world/launch.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

constexpr Names<RowRule, 3> kRowRules{"rule", {"sgd", "adagrad", "adam"}};

std::span<const std::int64_t> numbers_of(const Tensor& t) {
  return {t.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(t.numel())};
}

std::vector<EmbeddingTable> tables_of(const std::vector<std::int64_t>& rows,
                                      const std::vector<std::string>& splits,
                                      const std::vector<std::int64_t>& owners) {
  require<UsageError>(rows.size() == splits.size() && rows.size() == owners.size(),
                      "{} embedding tables have {} splits and {} owners", rows.size(),
                      splits.size(), owners.size());
  std::vector<EmbeddingTable> tables;
  for (std::size_t t = 0; t < rows.size(); ++t)
    tables.push_back({static_cast<std::uint64_t>(rows[t]), parse_embedding_split(splits[t]),
                      static_cast<int>(owners[t])});
  return tables;
}

// Ranks must not divide tables differently.
void require_equal_tables(World& world, const EmbeddingLayout& layout,
                          const std::vector<std::int64_t>& padding) {
  Facts facts{{"the number of tables", std::to_string(layout.tables())},
              {"the width", std::to_string(layout.width())}};
  for (std::size_t t = 0; t < layout.tables(); ++t) {
    const EmbeddingTable& table = layout.table(t);
    facts.emplace_back(fmt::format("table {}", t),
                       fmt::format("{} rows, split {}, owner {}, padding {}", table.rows,
                                   to_string(table.split), table.owner, padding[t]));
  }
  require_equal<UsageError>(world, "ranks make different embedding tables", facts);
}

// Tables of one width over the ranks of this process's world.
class EmbeddingsHandle : public torch::CustomClassHolder {
 public:
  EmbeddingsHandle(const EmbeddingLayout& layout, const std::vector<std::int64_t>& padding)
      : world_(current_world()), embeddings_(world_, layout, padding) {}

  const EmbeddingLayout& layout() const { return embeddings_.layout(); }

  // Returns [rows, first column, columns] of this rank's piece of a table.
  std::vector<std::int64_t> piece(std::int64_t t) const {
    const EmbeddingPiece piece = layout().piece(checked(t), world_.rank());
    return {static_cast<std::int64_t>(piece.rows), static_cast<std::int64_t>(piece.first_column),
            static_cast<std::int64_t>(piece.columns)};
  }
  // Returns the ids of the rows of that piece.
  Tensor ids(std::int64_t t) const { return ids_of_rank(checked(t), world_.rank()); }

  // Returns the sums, samples x tables x width, and the number of the batch.
  std::tuple<Tensor, std::int64_t> forward(const std::vector<Tensor>& bags, bool with_end,
                                           bool mean, const std::string& fault,
                                           const std::vector<Tensor>& pieces) {
    const EmbeddingBatch batch = batch_of(bags, with_end, mean, fault);
    const auto tables = static_cast<std::int64_t>(layout().tables());
    std::vector<const float*> at;
    for (const Tensor& piece : pieces) at.push_back(piece.const_data_ptr<float>());
    const auto bags_of_table = static_cast<std::int64_t>(batch.bags.count()) / tables;
    const Tensor out =
        torch::empty({bags_of_table, tables, static_cast<std::int64_t>(layout().width())});
    const auto number = with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const std::lock_guard lock(operation_mutex());
      return embeddings_.forward(batch, at, out.mutable_data_ptr<float>());
    });
    return {out, static_cast<std::int64_t>(number)};
  }

  // Returns by table the gradient of this rank's piece: sparse, coalesced, of the rows that have
  // one, or dense.
  std::vector<Tensor> backward(const std::vector<Tensor>& bags, bool with_end, bool mean,
                               std::int64_t number, const Tensor& gradient, bool sparse) {
    const EmbeddingBatch batch = batch_of(bags, with_end, mean, {});
    auto found = with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const std::lock_guard lock(operation_mutex());
      return embeddings_.backward(batch, static_cast<std::uint64_t>(number),
                                  gradient.const_data_ptr<float>());
    });
    std::vector<Tensor> tensors;
    for (std::size_t t = 0; t < found.size(); ++t) {
      const auto shape = piece(static_cast<std::int64_t>(t));
      tensors.push_back(gradient_tensor(std::move(found[t]), shape[0], shape[2], sparse));
    }
    return tensors;
  }

  // Collective. Returns the whole of a table, rows x width, of everyone's pieces.
  Tensor whole(std::int64_t table, const Tensor& piece) {
    const std::size_t t = checked(table);
    return with_python_errors([&] {
      const std::lock_guard lock(operation_mutex());
      agree(world_, fmt::format("the whole of embedding table {}", t));
      const auto parts = world_.all_gather(
          {static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
      const Tensor all = torch::empty({static_cast<std::int64_t>(layout().table(t).rows),
                                       static_cast<std::int64_t>(layout().width())});
      for (int rank = 0; rank < world_.size(); ++rank) put(all, t, rank, parts);
      return all;
    });
  }

 private:
  std::size_t checked(std::int64_t t) const {
    TORCH_CHECK_INDEX(t >= 0 && t < static_cast<std::int64_t>(layout().tables()),
                      "there is no embedding table ", t);
    return static_cast<std::size_t>(t);
  }
  Tensor ids_of_rank(std::size_t t, int rank) const {
    const EmbeddingPiece piece = layout().piece(t, rank);
    const Tensor ids = torch::empty({static_cast<std::int64_t>(piece.rows)}, torch::kInt64);
    layout().ids(t, rank, 0,
                 {reinterpret_cast<std::uint64_t*>(ids.mutable_data_ptr()), piece.rows});
    return ids;
  }
  // `bags`: ids, offsets and perhaps weights.
  static EmbeddingBatch batch_of(const std::vector<Tensor>& bags, bool with_end, bool mean,
                                 const std::string& fault) {
    return {{.ids = numbers_of(bags[0]),
             .offsets = numbers_of(bags[1]),
             .with_end = with_end,
             .weights = bags.size() > 2 ? bags[2].const_data_ptr<float>() : nullptr,
             .fault = fault},
            mean};
  }
  static Tensor gradient_tensor(RowGradients gradients, std::int64_t rows, std::int64_t columns,
                                bool sparse) {
    auto* const keep = new RowGradients(std::move(gradients));
    const auto count = static_cast<std::int64_t>(keep->rows.size());
    const Tensor values = torch::from_blob(
        keep->values.data(), {count, columns}, [keep](void*) { delete keep; }, torch::kFloat32);
    const Tensor at = torch::empty({count}, torch::kInt64);
    std::ranges::copy(keep->rows, at.mutable_data_ptr<std::int64_t>());
    if (!sparse) return torch::zeros({rows, columns}).index_copy_(0, at, values);
    return at::_sparse_coo_tensor_unsafe(at.unsqueeze(0), values, {rows, columns},
                                         values.options().layout(torch::kSparse), true);
  }
  void put(const Tensor& all, std::size_t t, int rank,
           const std::vector<std::vector<std::byte>>& parts) const {
    const EmbeddingPiece piece = layout().piece(t, rank);
    const auto columns = static_cast<std::int64_t>(piece.columns);
    if (piece.rows == 0 || columns == 0) return;
    auto* const bytes = const_cast<std::byte*>(parts[static_cast<std::size_t>(rank)].data());
    const Tensor rows = torch::from_blob(bytes, {static_cast<std::int64_t>(piece.rows), columns});
    all.narrow(1, static_cast<std::int64_t>(piece.first_column), columns)
        .index_copy_(0, ids_of_rank(t, rank), rows);
  }

  World& world_;
  Embeddings embeddings_;
};

c10::intrusive_ptr<EmbeddingsHandle> make_embeddings(const std::vector<std::int64_t>& rows,
                                                     std::int64_t width,
                                                     const std::vector<std::string>& splits,
                                                     const std::vector<std::int64_t>& owners,
                                                     const std::vector<std::int64_t>& padding) {
  return with_python_errors([&] {
    World& world = current_world();
    const EmbeddingLayout layout(tables_of(rows, splits, owners), static_cast<std::uint64_t>(width),
                                 world.size());
    if (world.size() > 1) require_equal_tables(world, layout, padding);
    return c10::make_intrusive<EmbeddingsHandle>(layout, padding);
  });
}

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

// Fills a piece with normal numbers, each by (seed, table, row, column) alone: the method of Box
// and Muller, whose cosines and sines serve two columns each. `ids`: of the piece's rows.
void fill_normal(const Tensor& piece, const Tensor& ids, std::int64_t seed, std::int64_t table,
                 std::int64_t first_column) {
  const Philox draw(static_cast<std::uint64_t>(seed));
  const auto id = numbers_of(ids);
  const auto columns = static_cast<std::size_t>(piece.size(1));
  float* const to = piece.mutable_data_ptr<float>();
  const ThreadCount threads(thread_share());
  parallel_blocks(id.size(), 256, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t k = 0; k < columns; ++k) {
        const auto column = static_cast<std::uint64_t>(first_column) + k;
        const auto words = draw(static_cast<std::uint64_t>(id[row]),
                                static_cast<std::uint64_t>(table) << 32 | column / 2);
        const double radius = std::sqrt(-2 * std::log1p(-uniform_double(words[0], words[1])));
        const double angle = 2 * 3.141592653589793 * uniform_double(words[2], words[3]);
        to[row * columns + k] =
            static_cast<float>(radius * (column % 2 == 0 ? std::cos(angle) : std::sin(angle)));
      }
  });
}

// Changes rows of `weights`; see RowUpdate. `state`: squares, then moments, as the rule has them.
// `numbers`: rate, epsilon, a, b.
void update_weight_rows(const Tensor& weights, const std::vector<Tensor>& state, const Tensor& rows,
                        const Tensor& gradients, const std::string& rule,
                        const std::vector<double>& numbers) {
  for (const Tensor& t : state)
    TORCH_CHECK_VALUE(t.is_contiguous() && t.sizes() == weights.sizes(),
                      "the state of an optimiser of rows has another shape than the weights");
  TORCH_CHECK_VALUE(weights.is_cpu() && weights.is_contiguous() && gradients.is_contiguous() &&
                        weights.scalar_type() == torch::kFloat32 && numbers.size() == 4,
                    "optimisers of rows take contiguous float32 weights on the CPU");
  const auto of_state = [&](std::size_t i) {
    return i < state.size() ? state[i].mutable_data_ptr<float>() : nullptr;
  };
  const auto number = [&](std::size_t i) { return static_cast<float>(numbers[i]); };
  with_python_errors([&] {
    const ThreadCount threads(thread_share());
    update_rows({.rule = kRowRules.parse(rule),
                 .rows = rows.const_data_ptr<std::int64_t>(),
                 .count = static_cast<std::uint64_t>(rows.numel()),
                 .width = static_cast<std::uint64_t>(weights.size(1)),
                 .gradients = gradients.const_data_ptr<float>(),
                 .weights = weights.mutable_data_ptr<float>(),
                 .squares = of_state(0),
                 .moments = of_state(1),
                 .rate = number(0),
                 .epsilon = number(1),
                 .a = number(2),
                 .b = number(3)});
  });
}

using EmbeddingsRef = c10::intrusive_ptr<EmbeddingsHandle>;

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<EmbeddingsHandle>("Embeddings")
      .def(torch::init(&make_embeddings))
      .def("piece", [](const EmbeddingsRef& e, std::int64_t t) { return e->piece(t); })
      .def("ids", [](const EmbeddingsRef& e, std::int64_t t) { return e->ids(t); })
      .def("whole", [](const EmbeddingsRef& e, std::int64_t t,
                       const Tensor& piece) { return e->whole(t, piece); })
      .def("forward",
           [](const EmbeddingsRef& e, const std::vector<Tensor>& bags, bool with_end, bool mean,
              const std::string& fault, const std::vector<Tensor>& pieces) {
             return e->forward(bags, with_end, mean, fault, pieces);
           })
      .def("backward", [](const EmbeddingsRef& e, const std::vector<Tensor>& bags, bool with_end,
                          bool mean, std::int64_t number, const Tensor& gradient, bool sparse) {
        return e->backward(bags, with_end, mean, number, gradient, sparse);
      });
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
