#include <algorithm>
#include <cstring>
#include <map>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/base/limits.h"
#include "plait/store/cuda/bag_gradients.cuh"
#include "plait/store/cuda/id_weights.cuh"
#include "plait/store/cuda/row_norms.cuh"
#include "plait/store/row_norms.h"
#include "plait/store/sharded/cuda/device_part.cuh"
#include "plait/store/sharded/cuda/gpu_embeddings.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/cuda/heap.cuh"

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

class HeapEmbeddings : public GpuEmbeddings {
 public:
  HeapEmbeddings(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules)
      : world_(world), layout_(layout), rules_(rules) {
    require<UsageError>(layout_.tables() > 0 && layout_.tables() == rules_.padding.size(),
                        "{} embedding tables have {} ids of padding", layout_.tables(),
                        rules_.padding.size());
    require<UsageError>(world.size() <= kMostGpus, "{} ranks are more than the {} that GPUs serve",
                        world.size(), kMostGpus);
    for (std::size_t t = 0; t < layout_.tables(); ++t) rows_.push_back(layout_.table(t).rows);
    heap_ = SymmetricHeap::create(world, sizeof(DeviceSizes) + (layout_.tables() + 1) * 8);
    data_ = DeviceHeap::create(world, kLeastBytes, DeviceTransport::vmm);
    on_all_or_none(world, [&] {
      rows_there_ = DeviceArray<std::uint64_t>(std::span<const std::uint64_t>(rows_));
      padding_there_ = DeviceArray<std::int64_t>(std::span<const std::int64_t>(rules_.padding));
      pieces_there_ = DeviceArray<DevicePiece>(layout_.tables());
      works_there_ =
          DeviceArray<BagWork>(layout_.tables() * static_cast<std::size_t>(world.size()));
      found_there_ = DeviceArray<std::uint64_t>(layout_.tables() + 2);
    });
  }
  ~HeapEmbeddings() override { cudaDeviceSynchronize(); }

  std::uint64_t forward(const GivenBags& bags, const TablePieces& pieces, const BagResults& out,
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
    if (rules_.norm.limits()) limit_rows(view, pieces, stream);
    sum_for_readers(view, out, stream);
    meet(stream);
    const DevicePart mine = part(world_.rank());
    collect_bags(view, mine.bags, {mine.rows, mine.extra, mine.places, mine.extra_places},
                 {.whole = out.sums, .whole_places = out.places}, stream);
    ended_.record(stream);
    step_.end();
    return number_;
  }

  std::vector<GpuRowGradients> backward(const GivenBags& bags, std::uint64_t number,
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
    const Step step{
        .pieces = show(g.pieces.at.empty() ? TablePieces{none} : g.pieces, false, stream),
        .gradient = {g.sums, g.places},
        .room = room,
        .stream = stream};
    const DevicePart mine = part(world_.rank());
    const std::uint64_t sums = mine.bags.per_table * layout_.tables() * layout_.width();
    if (world_.size() > 1) {
      copy_there(mine.rows, g.sums, sums * sizeof(float), stream);
      if (rules_.max()) copy_there(mine.places, g.places, sums * sizeof(Slot), stream);
    }
    meet(stream);
    const bool wanted = multiply_for_readers(step);
    // Tables whose pieces have equally many columns are one product.
    std::map<std::uint64_t, std::vector<bool>> by_columns;
    std::vector<bool> replicated(layout_.tables());
    for (std::size_t t = 0; t < layout_.tables(); ++t) {
      const EmbeddingPiece piece = layout_.piece(t, world_.rank());
      replicated[t] = is_replicated(t);
      if (piece.columns == 0 || replicated[t]) continue;
      by_columns.try_emplace(piece.columns, layout_.tables()).first->second[t] = true;
    }
    std::vector<GpuRowGradients> found(layout_.tables());
    for (const auto& [columns, wanted] : by_columns) {
      const std::vector<Slot> bases = bases_of(wanted);
      put(sum_wanted(step, wanted, bases, columns, room), bases, columns, step, found);
    }
    if (std::ranges::find(replicated, true) != replicated.end()) join(step, replicated, found);
    if (wanted) meet(stream);
    if (g.weights != nullptr)
      collect_products(step.pieces, mine.bags, {mine.products, bags.ids.size()}, g.weights, stream);
    ended_.record(stream);
    step_.end();
    return found;
  }

 private:
  // A step backward.
  struct Step {
    DevicePieces pieces;
    BagGradientsThere gradient;
    const Room& room;
    cudaStream_t stream;
  };

  DevicePart part(int rank) const {
    return {data_->part(rank), batches_[static_cast<std::size_t>(rank)].sizes, layout_};
  }
  DeviceBagTables tables() const {
    return {rows_there_.data(), padding_there_.data(), layout_.tables()};
  }

  // Where ranks meet: what their streams have written is seen by all afterwards.
  void meet(cudaStream_t stream) {
    if (world_.size() == 1) return;
    check_cuda(cudaStreamSynchronize(stream), kWhat);
    heap_->barrier();
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
    const auto ids = copied(bags.ids), offsets = copied(bags.offsets);
    check_bags(GivenBags{.ids = ids, .offsets = offsets, .with_end = bags.with_end},
               BagTables{rows_, rules_.padding});
    throw Error("ids of embedding tables are changed while they are read");
  }

  // Collective. Ranks meet when all that they enqueued for the last step has ended.
  void begin(EmbeddingStepOf step, const GivenBags& bags) {
    require(heap_ != nullptr && data_ != nullptr,
            "the memory of the embedding tables is lost; end the program");
    step_.require_ended();
    check_cuda(cudaEventSynchronize(ended_.get()), kWhat);
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
      DeviceHeap::replace(world_, data_, most + most / 4, DeviceTransport::vmm);
    }
    step_.begin();
  }

  // Collective. Copies the bags to this rank's part of the heap, unless they are there, looks for
  // wrong ids meanwhile, and meets the others: then each rank knows where tables begin in the ids
  // of all. Throws UsageError on all ranks if the ids of one are wrong.
  void publish(const GivenBags& bags, std::uint64_t number, cudaStream_t stream) {
    if (std::exchange(published_, number) == number) return;
    std::vector<std::uint64_t> found(found_there_.size());
    write_bags(given_of(bags), tables(), part(world_.rank()).bags, found_there_.data(), stream);
    copy_there(found.data(), found_there_.data(), found.size() * sizeof(std::uint64_t), stream);
    check_cuda(cudaStreamSynchronize(stream), kWhat);
    const bool wrong = found.back() != 0;
    const std::string failure = wrong ? failure_of([&] { report(bags); }) : "";
    const std::size_t bytes = (found.size() - 1) * sizeof(std::uint64_t);
    std::memcpy(heap_->part(world_.rank()).data() + sizeof(DeviceSizes), found.data(), bytes);
    if (std::ranges::max(heap_->barrier(wrong ? 1 : 0)) > 0) {
      step_.end();
      published_ = 0;
      throw UsageError(first_failure(world_, failure));
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
        works.add(of.bags, to, t, ids, piece.columns, bag_columns_of_lane(view));
      }
    }
    copy_there(works_there_.data(), works.works().data(), works.works().size_bytes(), stream);
    sum_bags(view, works, works_there_.data(), stream);
  }
  bool is_replicated(std::size_t t) const {
    return layout_.table(t).split == EmbeddingSplit::replicated;
  }

  // Copies the places of this rank's pieces to the GPU.
  DevicePieces show(const TablePieces& rows, bool aligned, cudaStream_t stream) {
    std::vector<DevicePiece> pieces;
    bool in_vectors = aligned && layout_.width() % 4 == 0;
    std::uint32_t divided = 0;
    for (std::size_t t = 0; t < layout_.tables(); ++t) {
      const EmbeddingPiece own = layout_.piece(t, world_.rank());
      const EmbeddingTable& table = layout_.table(t);
      const bool by_rows = table.split == EmbeddingSplit::rows;
      in_vectors = in_vectors && own.first_column % 4 == 0 && own.columns % 4 == 0 &&
                   reinterpret_cast<std::uintptr_t>(rows.at[t]) % (4 * size_of(rows.type)) == 0;
      pieces.push_back({.rows = rows.at[t],
                        .columns = own.columns,
                        .first_column = own.first_column,
                        .split = table.split,
                        .owner = table.owner,
                        .divided = by_rows ? divided++ : 0,
                        .dealt = by_rows ? layout_.places(t).dealt : 0});
    }
    copy_there(pieces_there_.data(), pieces.data(), pieces.size() * sizeof(DevicePiece), stream);
    return {.at = pieces_there_.data(),
            .tables = layout_.tables(),
            .width = layout_.width(),
            .rank = world_.rank(),
            .ranks = world_.size(),
            .in_vectors = in_vectors,
            .mode = rules_.mode,
            .type = rows.type};
  }

  // Enqueues products of rows of this rank and gradients of bags for ranks that want them. Returns
  // whether any does.
  bool multiply_for_readers(const Step& step) const {
    bool wanted = false;
    for (int reader = 0; reader < world_.size(); ++reader) {
      const DeviceSizes& sizes = batches_[static_cast<std::size_t>(reader)].sizes;
      if (sizes.shares == 0) continue;
      wanted = true;
      const bool own = reader == world_.rank();
      const DevicePart of = part(reader);
      multiply_rows(step.pieces, of.bags, own, own ? step.gradient.sums : of.rows,
                    {of.products, sizes.ids}, step.stream);
    }
    return wanted;
  }

  // Returns the number of the first row of each wanted table, and the end.
  std::vector<Slot> bases_of(const std::vector<bool>& wanted) const {
    std::vector<Slot> bases;
    std::uint64_t rows = 0;
    for (std::size_t t = 0; t <= wanted.size(); ++t) {
      bases.push_back(static_cast<Slot>(rows));
      if (t < wanted.size() && wanted[t]) rows += layout_.piece(t, world_.rank()).rows;
    }
    require<UsageError>(rows < kNoRow, "{} rows of embedding tables are too many for one rank",
                        rows);
    return bases;
  }

  // Edges of bags to rows of this rank's pieces.
  struct WantedEdges {
    DeviceArray<EdgeTable> tables;  // by reader and table
    DeviceEdges edges;
    std::uint64_t bags;  // that have edges, counting those without ids

    const EdgeTable* tables_of(int reader, const EmbeddingLayout& layout) const {
      return tables.data() + static_cast<std::size_t>(reader) * layout.tables();
    }
  };
  // Enqueues the edges of the bags of all ranks, or (`local`) of this rank, to rows of the wanted
  // tables. `bases`: bases_of() these. Local edges read gradients where they are, others one row
  // per bag.
  WantedEdges edges_of(const DevicePieces& pieces, const std::vector<bool>& wanted,
                       const std::vector<Slot>& bases, bool local, cudaStream_t stream) const {
    const auto tables = static_cast<Slot>(layout_.tables());
    std::vector<EdgeTable> edge_tables;
    std::uint64_t edge = 0, from = 0;
    bool weighted = rules_.mean();
    for (int reader = 0; reader < world_.size(); ++reader) {
      const DeviceBatch& batch = batches_[static_cast<std::size_t>(reader)];
      for (Slot t = 0; t < tables; ++t) {
        const bool here = wanted[t] && (!local || reader == world_.rank());
        edge_tables.push_back({.edge = edge,
                               .row = bases[t],
                               .from = local ? t : static_cast<Slot>(from),
                               .from_step = local ? tables : 1,
                               .wanted = here});
        if (!here) continue;
        edge += batch.ids_of(t);
        from += batch.sizes.per_table;
        weighted = weighted || batch.sizes.weighted != 0;
      }
    }
    const FromPool pool{stream, stream};
    WantedEdges found{DeviceArray<EdgeTable>(edge_tables.size(), pool),
                      DeviceEdges(edge, weighted, pool), from};
    if (rules_.max()) found.edges.places = DeviceArray<Slot>(edge, pool);
    copy_there(found.tables.data(), edge_tables.data(), edge_tables.size() * sizeof(EdgeTable),
               stream);
    for (int reader = 0; reader < world_.size(); ++reader)
      if (!local || reader == world_.rank())
        write_edges(pieces, part(reader).bags, found.tables_of(reader, layout_), found.edges,
                    stream);
    return found;
  }

  // Limits the norms of rows that bags of any rank name, so that replicated rows stay the same.
  // Ranks that have columns of the same rows join their sums of powers.
  void limit_rows(const DevicePieces& view, const TablePieces& pieces, cudaStream_t stream) {
    const auto is_shared = [&](std::size_t t) {
      return layout_.table(t).split == EmbeddingSplit::columns;
    };
    std::vector<bool> wanted;
    for (std::size_t t = 0; t < layout_.tables(); ++t)
      wanted.push_back(is_shared(t) || layout_.piece(t, world_.rank()).columns > 0);
    const std::vector<Slot> bases = bases_of(wanted);
    const WantedEdges found = edges_of(view, wanted, bases, world_.size() == 1, stream);
    const DeviceRowSums named = distinct_rows(found.edges, bases, stream);
    DeviceArray<double> sums(named.count, FromPool{stream, stream});
    for (std::size_t t = 0; t < layout_.tables(); ++t) {
      const std::uint64_t first = named.starts[t], count = named.starts[t + 1] - first;
      if (count == 0) continue;  // on all ranks that share the table
      const SomeRows rows{named.rows.data() + first, count, bases[t],
                          pieces.rows(t, layout_.piece(t, world_.rank()).columns)};
      norm_sums(rules_.norm, rows, sums.data() + first, stream);
      if (is_shared(t)) {
        std::vector<double> here(count);
        const std::uint64_t bytes = count * sizeof(double);
        copy_there(here.data(), sums.data() + first, bytes, stream);
        check_cuda(cudaStreamSynchronize(stream), kWhat);
        join_norm_sums(rules_.norm, world_.all_gather(std::as_bytes(std::span(here))), here);
        copy_there(sums.data() + first, here.data(), bytes, stream);
        check_cuda(cudaStreamSynchronize(stream), kWhat);  // `here` goes
      }
      limit_norms(rules_.norm, rows, sums.data() + first, stream);
    }
  }

  // Sums the gradients of this rank's rows of the wanted tables: from the bags of all ranks, or, of
  // replicated tables, from its own.
  // `bases`: bases_of() these.
  DeviceRowSums sum_wanted(const Step& step, const std::vector<bool>& wanted,
                           const std::vector<Slot>& bases, std::uint64_t columns,
                           const Room& room) {
    const bool local = world_.size() == 1 || are_replicated(wanted);
    const WantedEdges found = edges_of(step.pieces, wanted, bases, local, step.stream);
    const FromPool pool{step.stream, step.stream};
    const std::uint64_t gathered = local ? 0 : found.bags * columns;
    DeviceArray<float> sums(gathered, pool);
    DeviceArray<Slot> places(rules_.max() ? gathered : 0, pool);
    for (int reader = 0; !local && reader < world_.size(); ++reader) {
      const DevicePart of = part(reader);
      gather_gradients(step.pieces, of.bags, found.tables_of(reader, layout_), {of.rows, of.places},
                       {sums.data(), rules_.max() ? places.data() : nullptr, columns}, step.stream);
    }
    GradientRows rows{sums.data(), found.bags, columns, columns, places.data()};
    if (local) {
      const std::uint64_t bags = batches_[static_cast<std::size_t>(world_.rank())].sizes.per_table;
      rows = {step.gradient.sums, bags * layout_.tables(), columns, layout_.width(),
              step.gradient.places};
    }
    const bool counts = rules_.by_frequency && are_replicated(wanted);  // join() divides
    const Frequency frequency = counts ? Frequency::counted : rules_.frequency();
    return sum_by_row(found.edges, bases, rows, room, frequency, step.stream);
  }

  bool are_replicated(const std::vector<bool>& wanted) const {
    const auto first = static_cast<std::size_t>(std::ranges::find(wanted, true) - wanted.begin());
    return first < wanted.size() && is_replicated(first);
  }

  // Sums the gradients of replicated tables over ranks, of which there are several
  // (EmbeddingLayout): each shows its own sums to the others.
  void join(const Step& step, const std::vector<bool>& replicated,
            std::vector<GpuRowGradients>& found) {
    const std::uint64_t width = layout_.width();
    const std::vector<Slot> bases = bases_of(replicated);
    const DevicePart mine = part(world_.rank());
    const DeviceRowSums own = sum_wanted(step, replicated, bases, width, [&](std::uint64_t) {
      return static_cast<void*>(mine.shared_values);
    });
    copy_there(mine.shared_rows, own.rows.data(), own.count * sizeof(Slot), step.stream);
    if (rules_.by_frequency)
      copy_there(mine.shared_counts, own.ids.data(), own.count * sizeof(Slot), step.stream);
    check_cuda(cudaStreamSynchronize(step.stream), kWhat);
    const auto counts = heap_->barrier(own.count);
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    const FromPool pool{step.stream, step.stream};
    DeviceEdges edges(all, false, pool);
    if (rules_.by_frequency) edges.counts = DeviceArray<Slot>(all, pool);
    DeviceArray<float> values(all * width, pool);
    std::uint64_t at = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
      const std::uint64_t count = counts[static_cast<std::size_t>(rank)];
      const DevicePart of = part(rank);
      copy_there(edges.rows.data() + at, of.shared_rows, count * sizeof(Slot), step.stream);
      if (rules_.by_frequency)
        copy_there(edges.counts.data() + at, of.shared_counts, count * sizeof(Slot), step.stream);
      copy_there(values.data() + at * width, of.shared_values, count * width * sizeof(float),
                 step.stream);
      at += count;
    }
    count_up(edges.from.data(), all, step.stream);
    put(sum_by_row(edges, bases, {values.data(), all, width, width}, step.room, rules_.frequency(),
                   step.stream),
        bases, width, step, found);
  }

  // Gives each table its part of the sums.
  void put(const DeviceRowSums& sums, const std::vector<Slot>& bases, std::uint64_t columns,
           const Step& step, std::vector<GpuRowGradients>& found) const {
    if (sums.count == 0) return;
    auto* const rows = static_cast<std::int64_t*>(step.room(sums.count * sizeof(std::int64_t)));
    for (std::size_t t = 0; t < layout_.tables(); ++t) {
      const std::uint64_t first = sums.starts[t], count = sums.starts[t + 1] - first;
      if (count == 0) continue;
      rows_from(sums.rows.data() + first, count, bases[t], rows + first, step.stream);
      found[t] = {rows + first, sums.values + first * columns, count};
    }
  }

  World& world_;
  const EmbeddingLayout layout_;
  const EmbeddingRules rules_;
  std::vector<std::uint64_t> rows_;
  std::unique_ptr<SymmetricHeap> heap_;  // of the host: sizes
  std::unique_ptr<DeviceHeap> data_;
  DeviceArray<std::uint64_t> rows_there_;
  DeviceArray<std::int64_t> padding_there_;
  DeviceArray<DevicePiece> pieces_there_;
  DeviceArray<BagWork> works_there_;
  DeviceArray<std::uint64_t> found_there_;  // as of write_bags()
  StepUnderWay step_;
  std::vector<DeviceBatch> batches_;  // of the step, by rank
  DeviceEvent ended_;                 // behind the last step
  std::uint64_t number_ = 0;          // of the last batch
  std::uint64_t published_ = 0;       // the number of the batch that the heap has; 0: none
};

}  // namespace

std::unique_ptr<GpuEmbeddings> GpuEmbeddings::create(World& world, const EmbeddingLayout& layout,
                                                     const EmbeddingRules& rules) {
  return std::make_unique<HeapEmbeddings>(world, layout, rules);
}

}  // namespace plait
