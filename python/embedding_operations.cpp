// Embedding tables as Python sees them: torch.classes.plait.Embeddings.
//
// Tensors are where the tables are, on the CPU or a GPU. Python has checked and converted them, or
// gives the text of what is wrong with them (`fault`), which all ranks then throw.
#include <map>
#include <memory>

#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/process_owned.h"
#include "plait/base/raw_vector.h"
#include "plait/base/saturating.h"
#include "plait/embedding/embeddings.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/difference.h"
#include "plait/world/launch.h"
#include "python/number_type.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

std::span<const std::int64_t> numbers_of(const Tensor& t) {
  return {t.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(t.numel())};
}

// The pieces of tables, which are tensors of one type. The tensors outlive this object.
class Pieces {
 public:
  explicit Pieces(const std::vector<Tensor>& pieces) {
    for (const Tensor& piece : pieces) at_.push_back(piece.mutable_data_ptr());
    if (!pieces.empty()) type_ = number_type(pieces[0]);
  }
  TablePieces view() const { return {at_, type_}; }

 private:
  std::vector<void*> at_;
  DType type_ = DType::f32;
};

// By table: rows, split, owner and the id of padding, or -1.
using GivenTables = std::vector<std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>>;
std::string shape_text(const Tensor& t) {
  return fmt::format("({})", fmt::join(t.sizes().begin(), t.sizes().end(), ", "));
}

// The members of EmbeddingRules but padding, in their order, with those of NormLimit.
using GivenRules = std::tuple<std::string, bool, double, double>;

// Ranks must not divide tables differently.
void require_equal_tables(World& world, const EmbeddingLayout& layout,
                          const EmbeddingRules& rules) {
  Facts facts{
      {"the number of tables", std::to_string(layout.tables())},
      {"the width", std::to_string(layout.width())},
      {"the set of rules",
       fmt::format("mode {}, scale_grad_by_freq {}, max_norm {}, norm_type {}",
                   to_string(rules.mode), rules.by_frequency, rules.norm.most, rules.norm.type)}};
  for (std::size_t t = 0; t < layout.tables(); ++t) {
    const EmbeddingTable& table = layout.table(t);
    facts.emplace_back(fmt::format("table {}", t),
                       fmt::format("{} rows, split {}, owner {}, padding {}", table.rows,
                                   to_string(table.split), table.owner, rules.padding[t]));
  }
  require_equal<UsageError>(world, "ranks make different embedding tables", facts);
}

// The memory of the gradients of a step. An array lives as long as a tensor of it.
class GradientMemory {
 public:
  explicit GradientMemory(const torch::Device& device) : device_(device) {}

  void* take(std::uint64_t bytes) {
    if (device_.is_cpu()) {
      const auto array = std::make_shared<RawVector<std::byte>>(bytes);
      arrays_[array->data()] = array;
      return array->data();
    }
    const auto array = std::make_shared<Tensor>(torch::empty(
        {static_cast<std::int64_t>(bytes)}, torch::device(device_).dtype(torch::kUInt8)));
    arrays_[array->mutable_data_ptr()] = array;
    return array->mutable_data_ptr();
  }
  // Returns the tensor of numbers at this place of an array. Null: the tensor has none.
  Tensor tensor(const void* at, at::IntArrayRef shape, torch::ScalarType type) const {
    const auto options = torch::device(device_).dtype(type);
    if (at == nullptr) return torch::empty(shape, options);
    const std::shared_ptr<void> array = std::prev(arrays_.upper_bound(at))->second;
    // The device is named, because PyTorch would ask CUDA for that of each address.
    return at::from_blob(
        const_cast<void*>(at), shape, [array](void*) {}, options, device_);
  }

 private:
  const torch::Device device_;
  std::map<const void*, std::shared_ptr<void>> arrays_;  // by their first byte
};

constexpr const char* kMade = "the embedding tables were made";  // for require_here()

// Tables of one width over the ranks of a world.
class EmbeddingsHandle : public torch::CustomClassHolder {
 public:
  EmbeddingsHandle(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules,
                   const torch::Device& device)
      : world_(world), max_(rules.max()), device_(device) {
    const OnGpuOf gpu(device_);
    embeddings_ =
        process_owned(Embeddings::create(world_, layout, rules, device_of(device.is_cuda())));
  }

  const EmbeddingLayout& layout() const { return embeddings_->layout(); }

  // Returns [rows, first column, columns] of this rank's piece of a table.
  std::vector<std::int64_t> piece(std::int64_t t) const {
    const EmbeddingPiece piece = layout().piece(checked(t), world_.rank());
    return {static_cast<std::int64_t>(piece.rows), static_cast<std::int64_t>(piece.first_column),
            static_cast<std::int64_t>(piece.columns)};
  }
  // Returns the ids of the rows of that piece, on the CPU.
  Tensor ids(std::int64_t t) const { return ids_of_rank(checked(t), world_.rank()); }

  // Returns the sums, samples x tables x width, in mode max likewise the places of the maxima, else
  // nothing, and the number of the batch. `wants`: a step backward will follow.
  std::tuple<Tensor, Tensor, std::int64_t> forward(const std::vector<Tensor>& bags, bool with_end,
                                                   const std::string& fault,
                                                   const std::vector<Tensor>& pieces, bool wants) {
    const GivenBags given = given_of(bags, with_end, fault);
    const auto tables = static_cast<std::int64_t>(layout().tables());
    const auto bags_of_table = static_cast<std::int64_t>(given.count()) / tables;
    const Tensor out =
        torch::empty({bags_of_table, tables, static_cast<std::int64_t>(layout().width())},
                     torch::device(device_).dtype(torch::kFloat32));
    const Tensor places = torch::empty(max_ ? out.sizes() : at::IntArrayRef{0},
                                       torch::device(device_).dtype(torch::kInt32));
    const auto number = with_python_errors([&] {
      const std::lock_guard lock(operation_mutex());
      require_here(world_, kMade);
      const ThreadCount threads(thread_share());
      const OnGpuOf gpu(device_);
      return embeddings_->forward(given, Pieces(pieces).view(),
                                  {out.mutable_data_ptr<float>(), places_at(places), wants},
                                  current_stream(device_));
    });
    return {out, places, static_cast<std::int64_t>(number)};
  }

  // Returns by table the gradient of this rank's piece: sparse, coalesced, of the rows that have
  // one, or dense. `gradients`: of the sums, the places that forward() has returned, and perhaps
  // where gradients of weights are written.
  // `pieces`: none, or as forward() has read them.
  std::vector<Tensor> backward(const std::vector<Tensor>& bags, bool with_end,
                               const std::string& fault, std::int64_t number,
                               const std::vector<Tensor>& gradients,
                               const std::vector<Tensor>& pieces, bool sparse) {
    const GivenBags given = given_of(bags, with_end, fault);
    const Pieces read(pieces);
    const BagGradients of_bags{
        .sums = gradients[0].const_data_ptr<float>(),
        .places = places_at(gradients[1]),
        .weights = gradients.size() > 2 ? gradients[2].mutable_data_ptr<float>() : nullptr,
        .pieces = read.view()};
    GradientMemory memory(device_);
    const auto found = with_python_errors([&] {
      const std::lock_guard lock(operation_mutex());
      require_here(world_, kMade);
      const ThreadCount threads(thread_share());
      const OnGpuOf gpu(device_);
      return embeddings_->backward(
          given, static_cast<std::uint64_t>(number), of_bags,
          [&](std::uint64_t bytes) { return memory.take(bytes); }, current_stream(device_));
    });
    // The tensors of many small tables take longer to make than the sums.
    const at::AutoDispatchBelowAutograd without_autograd;
    std::vector<Tensor> of_tables;
    of_tables.reserve(found.size());
    for (const RowGradients& of : found) {
      const auto shape = piece(static_cast<std::int64_t>(of_tables.size()));
      const auto count = static_cast<std::int64_t>(of.count);
      of_tables.push_back(gradient_tensor(
          memory.tensor(of.rows, {1, count}, torch::kInt64),
          memory.tensor(of.values, {count, shape[2]}, torch::kFloat32), shape[0], sparse));
    }
    return of_tables;
  }

  // Collective. Returns the whole of a table, rows x width, of everyone's pieces, on the CPU.
  Tensor whole(std::int64_t table, const Tensor& piece) {
    const std::size_t t = checked(table);
    return with_python_errors([&] {
      const std::lock_guard lock(operation_mutex());
      require_here(world_, kMade);
      agree(world_,
            fmt::format("the whole of embedding table {} as {}", t, to_string(number_type(piece))));
      const auto rows = layout().table(t).rows, width = layout().width();
      const EmbeddingPiece own = layout().piece(t, world_.rank());
      on_all_or_none(world_, [&] {
        require<UsageError>(
            piece.dim() == 2 && static_cast<std::uint64_t>(piece.size(0)) == own.rows &&
                static_cast<std::uint64_t>(piece.size(1)) == own.columns,
            "the weight of embedding table {} has shape {}, but this rank's piece is "
            "({}, {})",
            t, shape_text(piece), own.rows, own.columns);
      });
      wait_for(piece, world_);
      if (layout().table(t).split == EmbeddingSplit::replicated || world_.size() == 1) {
        on_all_or_none(world_, [&] {
          const auto ranks = static_cast<std::uint64_t>(world_.ranks_of_host().size());
          require_memory((Bytes(piece.nbytes()) * ranks).value, "the whole table on each rank");
        });
        return piece.to(torch::kCPU, false, true).contiguous();  // no rank waits any more
      }
      on_all_or_none(world_, [&] {  // the pieces, and the table that is made of them, on each rank
        const auto ranks = static_cast<std::uint64_t>(world_.ranks_of_host().size());
        require_memory((Bytes(rows) * width * piece.element_size() * 2 * ranks).value,
                       "the whole table on each rank");
      });
      const auto parts = together(world_, "while gathering an embedding table", [&] {
        const Tensor here = piece.cpu().contiguous();
        return world_.all_gather(
            {static_cast<const std::byte*>(here.const_data_ptr()), here.nbytes()});
      });
      const Tensor all =
          torch::empty({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)},
                       torch::device(torch::kCPU).dtype(piece.scalar_type()));
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
  static Slot* places_at(const Tensor& places) {
    return reinterpret_cast<Slot*>(places.mutable_data_ptr<std::int32_t>());
  }
  // `bags`: ids, offsets and perhaps weights.
  static GivenBags given_of(const std::vector<Tensor>& bags, bool with_end,
                            const std::string& fault) {
    return {.ids = numbers_of(bags[0]),
            .offsets = numbers_of(bags[1]),
            .with_end = with_end,
            .weights = bags.size() > 2 ? bags[2].const_data_ptr<float>() : nullptr,
            .fault = fault};
  }
  static Tensor gradient_tensor(const Tensor& at, const Tensor& values, std::int64_t rows,
                                bool sparse) {
    const std::int64_t columns = values.size(1);
    if (!sparse)
      return torch::zeros({rows, columns}, values.options()).index_copy_(0, at.view({-1}), values);
    return at::_sparse_coo_tensor_with_dims_and_tensors(
        1, 1, {rows, columns}, at, values, values.options().layout(torch::kSparse), true);
  }
  void put(const Tensor& all, std::size_t t, int rank,
           const std::vector<std::vector<std::byte>>& parts) const {
    const EmbeddingPiece piece = layout().piece(t, rank);
    const auto columns = static_cast<std::int64_t>(piece.columns);
    if (piece.rows == 0 || columns == 0) return;
    auto* const bytes = const_cast<std::byte*>(parts[static_cast<std::size_t>(rank)].data());
    const Tensor rows =
        torch::from_blob(bytes, {static_cast<std::int64_t>(piece.rows), columns}, all.options());
    all.narrow(1, static_cast<std::int64_t>(piece.first_column), columns)
        .index_copy_(0, ids_of_rank(t, rank), rows);
  }

  World& world_;
  const bool max_;
  const torch::Device device_;
  ProcessOwned<Embeddings> embeddings_;
};

c10::intrusive_ptr<EmbeddingsHandle> make_embeddings(const GivenTables& given, std::int64_t width,
                                                     const GivenRules& of_all,
                                                     const torch::Device& device) {
  return with_python_errors([&] {
    const std::lock_guard lock(operation_mutex());
    World& world = current_world();
    std::optional<EmbeddingLayout> layout;
    EmbeddingRules rules;
    const std::string failure = failure_of([&] {
      rules = {.mode = parse_bag_mode(std::get<0>(of_all)),
               .by_frequency = std::get<1>(of_all),
               .norm = {std::get<2>(of_all), std::get<3>(of_all)}};
      std::vector<EmbeddingTable> tables;
      for (const auto& [rows, split, owner, padding] : given) {
        tables.push_back({static_cast<std::uint64_t>(rows), parse_embedding_split(split),
                          static_cast<int>(owner)});
        rules.padding.push_back(padding);
      }
      layout.emplace(tables, static_cast<std::uint64_t>(width), world.size());
    });
    const std::string first = first_failure(world, failure);
    require_on_all<UsageError>(first.empty(), "{}", first);
    if (world.size() > 1) require_equal_tables(world, *layout, rules);
    return c10::make_intrusive<EmbeddingsHandle>(world, *layout, rules, device);
  });
}

using EmbeddingsRef = c10::intrusive_ptr<EmbeddingsHandle>;

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("require_memory(int bytes, str what) -> ()",
        [](std::int64_t bytes, const std::string& what) {
          with_python_errors([&] { require_memory(static_cast<std::uint64_t>(bytes), what); });
        });
  m.class_<EmbeddingsHandle>("Embeddings")
      .def(torch::init(&make_embeddings))
      .def("piece", [](const EmbeddingsRef& e, std::int64_t t) { return e->piece(t); })
      .def("ids", [](const EmbeddingsRef& e, std::int64_t t) { return e->ids(t); })
      .def("whole", [](const EmbeddingsRef& e, std::int64_t t,
                       const Tensor& piece) { return e->whole(t, piece); })
      .def("forward", [](const EmbeddingsRef& e, const std::vector<Tensor>& bags, bool with_end,
                         const std::string& fault, const std::vector<Tensor>& pieces,
                         bool wants) { return e->forward(bags, with_end, fault, pieces, wants); })
      .def("backward",
           [](const EmbeddingsRef& e, const std::vector<Tensor>& bags, bool with_end,
              const std::string& fault, std::int64_t number, const std::vector<Tensor>& gradients,
              const std::vector<Tensor>& pieces, bool sparse) {
             return e->backward(bags, with_end, fault, number, gradients, pieces, sparse);
           });
}

}  // namespace
}  // namespace plait
