#include <algorithm>
#include <cstring>
#include <optional>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/embedding/cuda/gpu_embeddings.h"
#include "plait/embedding/cuda/gpu_gradients.cuh"
#include "plait/embedding/cuda/gpu_limits.cuh"
#include "plait/embedding/cuda/id_weights.cuh"
#include "plait/embedding/embedding_part.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"
#include "plait/world/watched_wait.h"

namespace plait {
namespace {

constexpr const char* kWhat = "embedding tables";
constexpr std::size_t kLeastBytes = 4096;  // of a part

std::vector<std::int64_t> copied(std::span<const std::int64_t> there) {
  std::vector<std::int64_t> here(there.size());
  if (!here.empty()) copy_to_host(here.data(), there.data(), there.size_bytes());
  return here;
}

GivenDeviceBags given_of(const GivenBags& bags) {
  return {.ids = bags.ids.data(),
          .id_count = bags.ids.size(),
          .offsets = bags.offsets.data(),
          .offset_count = bags.offsets.size(),
          .with_end = bags.with_end,
          .weights = bags.weights};
}

void copy_there(void* to, const void* from, std::uint64_t bytes, cudaStream_t stream) {
  if (bytes > 0) check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), kWhat);
}

class GpuEmbeddings : public Embeddings {
 public:
  GpuEmbeddings(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules,
                std::uint64_t most_numbered)
      : Embeddings(world, layout, rules) {
    require_on_all<UsageError>(world.size() <= kMostGpus,
                               "{} ranks are more than the {} that GPUs serve", world.size(),
                               kMostGpus);
    heap_ = SymmetricHeap::create(world, sizeof(DeviceSizes) + (layout_.tables() + 1) * 8);
    data_ = DeviceHeap::create(world, kLeastBytes, DeviceTransport::vmm);
    on_all_or_none(world, [&] {
      rows_there_ = DeviceArray<std::uint64_t>(std::span<const std::uint64_t>(tables_.rows));
      padding_there_ = DeviceArray<std::int64_t>(std::span<const std::int64_t>(rules_.padding));
      pieces_there_ = DeviceArray<DevicePiece>(layout_.tables());
      works_there_ =
          DeviceArray<BagWork>(layout_.tables() * static_cast<std::size_t>(world.size()));
      found_there_ = DeviceArray<std::uint64_t>(layout_.tables() + 2);
      if (rules_.norm.limits()) limits_.emplace(world_, layout_, rules_);
      gradients_.emplace(world_, layout_, rules_, most_numbered);
    });
  }
  ~GpuEmbeddings() override { cudaDeviceSynchronize(); }

 protected:
  bool has_memory() const override { return heap_ != nullptr && data_ != nullptr; }

  std::uint64_t run_forward(const GivenBags& bags, const TablePieces& pieces, const BagResults& out,
                            void* on) override {
    auto* const stream = static_cast<cudaStream_t>(on);
    begin({.step = EmbeddingStep::forward,
           .number = number_ + 1,
           .wants = out.backward,
           .type = pieces.type},
          bags);
    ++number_;
    const DevicePieces view = show(pieces, on_16_bytes(out.sums), stream);
    publish(bags, number_, stream);
    if (limits_) limits_->limit_rows(bags_of(parts(), view, stream), pieces);
    sum_for_readers(view, out, stream);
    meet(stream);
    const DevicePart mine = part(world_.rank());
    collect_bags(view, mine.bags, {mine.rows, mine.extra, mine.places, mine.extra_places},
                 {.whole = out.sums, .whole_places = out.places}, stream);
    fault_point();
    ended_.record(stream);
    step_.end();
    return number_;
  }

  std::vector<RowGradients> run_backward(const GivenBags& bags, std::uint64_t number,
                                         const BagGradients& g, const Room& room,
                                         void* on) override {
    auto* const stream = static_cast<cudaStream_t>(on);
    begin({.step = EmbeddingStep::backward,
           .number = number,
           .wants = g.weights != nullptr,
           .lacks_pieces = g.pieces.at.empty()},
          bags);
    publish(bags, number, stream);
    const std::vector<void*> none(layout_.tables());
    const TablePieces given = g.pieces.at.empty() ? TablePieces{none} : g.pieces;
    const std::vector<DevicePart> parts = this->parts();
    const BackwardStep step{.bags = bags_of(parts, show(given, false, stream), stream),
                            .own = {g.sums, g.places},
                            .parts = parts,
                            .room = room};
    const DevicePart& mine = parts[static_cast<std::size_t>(world_.rank())];
    const std::uint64_t sums = mine.bags.per_table * layout_.tables() * layout_.width();
    if (world_.size() > 1) {
      copy_there(mine.rows, g.sums, sums * sizeof(float), stream);
      if (rules_.max()) copy_there(mine.places, g.places, sums * sizeof(Slot), stream);
    }
    meet(stream);
    const bool wanted = multiply_for_readers(step);
    auto found = gradients_->sum(step, *heap_);
    if (wanted && !gradients_->joins()) meet(stream);  // else ranks have met since
    if (g.weights != nullptr)
      collect_products(step.bags.pieces, mine.bags, {mine.products, bags.ids.size()}, g.weights,
                       stream);
    fault_point();
    ended_.record(stream);
    step_.end();
    return found;
  }

 private:
  DevicePart part(int rank) const {
    return {data_->part(rank), batches_[static_cast<std::size_t>(rank)].sizes, layout_};
  }
  std::vector<DevicePart> parts() const {
    std::vector<DevicePart> all;
    for (int rank = 0; rank < world_.size(); ++rank) all.push_back(part(rank));
    return all;
  }
  // Returns the step's bags, with gradients where ranks show them to others.
  StepBags bags_of(const std::vector<DevicePart>& parts, const DevicePieces& view,
                   cudaStream_t stream) const {
    StepBags step{.pieces = view, .readers = {}, .batches = batches_, .stream = stream};
    for (const DevicePart& of : parts)
      step.readers.at[step.readers.count++] = {of.bags, {of.rows, of.places}};
    return step;
  }
  DeviceBagTables tables_there() const {
    return {rows_there_.data(), padding_there_.data(), layout_.tables()};
  }

  // Where ranks meet: what their streams have written is seen by all afterwards.
  void meet(cudaStream_t stream) {
    if (world_.size() == 1) return;
    fault_point();
    watch_while(world_, [&] { check_cuda(cudaStreamSynchronize(stream), kWhat); });
    heap_->barrier();
    fault_point();
  }

  // Checks what the CPU knows of the bags. Their ids are on the GPU, and are checked by publish().
  DeviceSizes checked(const GivenBags& bags) const {
    if (!bags.fault.empty()) throw UsageError(bags.fault);
    require_room_for_numbers(bags, world_.size());
    if (bags.count() % layout_.tables() != 0 || (bags.count() == 0 && !bags.ids.empty()) ||
        (bags.with_end && bags.offsets.empty()))
      report(bags);
    return {.per_table = bags.count() / layout_.tables(),
            .ids = bags.ids.size(),
            .weighted = bags.weights != nullptr ? 1u : 0u,
            .max = rules_.max() ? 1u : 0u};
  }
  // Throws what the CPU finds wrong with bags that are wrong.
  [[noreturn]] void report(const GivenBags& bags) const {
    std::vector<std::int64_t> ids, offsets;
    watch_while(world_, [&] { ids = copied(bags.ids), offsets = copied(bags.offsets); });
    check_bags(GivenBags{.ids = ids, .offsets = offsets, .with_end = bags.with_end}, tables_);
    throw Error("ids of embedding tables are changed while they are read");
  }

  // Collective. Ranks meet when all that they enqueued for the last step has ended.
  void begin(EmbeddingStepOf step, const GivenBags& bags) {
    fault_point();
    watch_while(world_, [&] { check_cuda(cudaEventSynchronize(ended_.get()), kWhat); });
    DeviceSizes mine;
    step.failure = failure_of([&] { mine = checked(bags); });
    for (std::size_t t = 0; step.wants_products() && t < layout_.tables(); ++t)
      mine.shares = std::max(mine.shares, shares_of(layout_, t));
    step.bytes = DevicePart(nullptr, mine, layout_).bytes;
    std::memcpy(heap_->part(world_.rank()).data(), &mine, sizeof(DeviceSizes));
    const std::uint64_t most = begin_embedding_step(world_, *heap_, step);
    batches_.resize(static_cast<std::size_t>(world_.size()));
    for (int rank = 0; rank < world_.size(); ++rank)
      std::memcpy(&batches_[static_cast<std::size_t>(rank)].sizes, heap_->part(rank).data(),
                  sizeof(DeviceSizes));
    if (most > data_->bytes()) {
      published_ = 0;
      // Freeing memory waits for the whole GPU.
      watch_while(world_, [&] { check_cuda(cudaDeviceSynchronize(), kWhat); });
      DeviceHeap::replace(world_, data_, most + most / 4, DeviceTransport::vmm);
    }
    step_.begin();
    fault_point();
  }

  // Collective. Copies the bags to this rank's part of the heap, unless they are there, looks for
  // wrong ids meanwhile, and meets the others: then each rank knows where tables begin in the ids
  // of all. Throws UsageError on all ranks if the ids of one are wrong.
  void publish(const GivenBags& bags, std::uint64_t number, cudaStream_t stream) {
    if (std::exchange(published_, number) == number) return;
    std::vector<std::uint64_t> found(found_there_.size());
    write_bags(given_of(bags), tables_there(), part(world_.rank()).bags, found_there_.data(),
               stream);
    watch_while(world_, [&] {  // the copy itself waits: `found` is not pinned
      copy_there(found.data(), found_there_.data(), found.size() * sizeof(std::uint64_t), stream);
      check_cuda(cudaStreamSynchronize(stream), kWhat);
    });
    fault_point();
    const bool wrong = found.back() != 0;
    const std::string failure = wrong ? failure_of([&] { report(bags); }) : "";
    const std::size_t bytes = (found.size() - 1) * sizeof(std::uint64_t);
    std::memcpy(heap_->part(world_.rank()).data() + sizeof(DeviceSizes), found.data(), bytes);
    if (std::ranges::max(heap_->barrier(wrong ? 1 : 0)) > 0) {
      step_.end();
      published_ = 0;
      throw OnAllRanks<UsageError>(first_failure(world_, failure));
    }
    for (int rank = 0; rank < world_.size(); ++rank) {
      std::vector<std::uint64_t>& starts = batches_[static_cast<std::size_t>(rank)].starts;
      starts.resize(layout_.tables() + 1);
      std::memcpy(starts.data(), heap_->part(rank).data() + sizeof(DeviceSizes), bytes);
    }
  }

  // Enqueues the sums of all ranks' bags from this rank's pieces.
  void sum_for_readers(const DevicePieces& view, const BagResults& out, cudaStream_t stream) {
    BagWorks works;
    for (int k = 0; k < world_.size(); ++k) {  // others first, who wait
      const int reader = (world_.rank() + 1 + k) % world_.size();
      const bool own = reader == world_.rank();
      const DevicePart of = part(reader);
      const BagSums to{own ? out.sums : of.rows, of.extra, own ? out.places : of.places,
                       of.extra_places};
      if (rules_.max()) {
        take_maxima(view, of.bags, own, to, stream);
        continue;
      }
      for (std::size_t t = 0; t < layout_.tables(); ++t) {
        const EmbeddingPiece piece = layout_.piece(t, world_.rank());
        if (piece.columns == 0 || (is_replicated(t) && !own)) continue;
        const std::uint64_t ids = batches_[static_cast<std::size_t>(reader)].ids_of(t);
        works.add(of.bags, to, t, ids, piece.columns, view.vec);
      }
    }
    copy_there(works_there_.data(), works.works().data(), works.works().size_bytes(), stream);
    sum_bags(view, works, works_there_.data(), stream);
  }
  bool is_replicated(std::size_t t) const {
    return layout_.table(t).split == EmbeddingSplit::replicated;
  }

  // Copies the places of this rank's pieces to the GPU, unless they are there: the last copy has
  // ended, whatever its stream, because the host has waited for that step's end, or, where wrong
  // bags ended it, for its stream.
  DevicePieces show(const TablePieces& rows, bool aligned, cudaStream_t stream) {
    std::vector<DevicePiece> pieces;
    int vec = aligned ? most_bag_columns(size_of(rows.type)) : 1;
    std::uint32_t divided = 0;
    for (std::size_t t = 0; t < layout_.tables(); ++t) {
      const EmbeddingPiece own = layout_.piece(t, world_.rank());
      const EmbeddingTable& table = layout_.table(t);
      const bool by_rows = table.split == EmbeddingSplit::rows;
      const auto begin = reinterpret_cast<std::uintptr_t>(rows.at[t]) / size_of(rows.type);
      for (const std::uint64_t numbers : {layout_.width(), own.first_column, own.columns, begin})
        while (numbers % static_cast<unsigned>(vec) != 0) vec = vec > 4 ? 4 : 1;
      pieces.push_back({.rows = rows.at[t],
                        .columns = own.columns,
                        .first_column = own.first_column,
                        .split = table.split,
                        .owner = table.owner,
                        .divided = by_rows ? divided++ : 0,
                        .dealt = by_rows ? layout_.places(t).dealt : 0});
    }
    if (pieces != shown_)
      copy_there(pieces_there_.data(), pieces.data(), pieces.size() * sizeof(DevicePiece), stream);
    shown_ = std::move(pieces);
    return {.at = pieces_there_.data(),
            .tables = layout_.tables(),
            .width = layout_.width(),
            .rank = world_.rank(),
            .ranks = world_.size(),
            .vec = vec,
            .mode = rules_.mode,
            .type = rows.type};
  }

  // Enqueues products of rows of this rank and gradients of bags for ranks that want them. Returns
  // whether any does.
  bool multiply_for_readers(const BackwardStep& step) const {
    bool wanted = false;
    for (std::size_t reader = 0; reader < step.parts.size(); ++reader) {
      const DeviceSizes& sizes = batches_[reader].sizes;
      if (sizes.shares == 0) continue;
      wanted = true;
      const bool own = static_cast<int>(reader) == world_.rank();
      const DevicePart& of = step.parts[reader];
      multiply_rows(step.bags.pieces, of.bags, own, own ? step.own.sums : of.rows,
                    {of.products, sizes.ids}, step.bags.stream);
    }
    return wanted;
  }

  std::unique_ptr<DeviceHeap> data_;
  DeviceArray<std::uint64_t> rows_there_;
  DeviceArray<std::int64_t> padding_there_;
  DeviceArray<DevicePiece> pieces_there_;
  std::vector<DevicePiece> shown_;  // the copy of pieces_there_
  DeviceArray<BagWork> works_there_;
  DeviceArray<std::uint64_t> found_there_;  // as of write_bags()
  std::optional<GpuNormLimits> limits_;     // if norms are limited
  std::optional<GpuGradients> gradients_;   // always
  std::vector<DeviceBatch> batches_;        // of the step, by rank
  DeviceEvent ended_;                       // behind the last step
};

}  // namespace

std::unique_ptr<Embeddings> make_gpu_embeddings(World& world, const EmbeddingLayout& layout,
                                                const EmbeddingRules& rules,
                                                std::uint64_t most_numbered) {
  return together(world, "while making embedding tables", [&] {
    return std::make_unique<GpuEmbeddings>(world, layout, rules, most_numbered);
  });
}

}  // namespace plait
