// Strategies `bulk` and `replicate`: bring the halo in, each row once, behind the own rows, so that
// one pass over slots sums all edges. The halo that the shard was made with tells them apart:
// the distinct rows that edges read, or all rows of all other ranks.
//
// With a wire type of less than fp32, each number of the halo is rounded to it as it crosses, as
// GPUs do, and stands in its slot as the fp32 number of the same value. Messages between hosts then
// have the type's size; ranks of one host read the fp32 rows of their owners.
#include <algorithm>
#include <cstring>

#include "plait/base/number.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/exchange/strategy_run.h"

namespace plait {
namespace {

// Pulls the rows as numbers of type T.
template <class T>
void pull_halo_as(const Halo& halo, std::uint64_t stride, const SymmetricRows& rows, float* to) {
  parallel_blocks(halo.rows(), std::size_t{1} << 10, [&](std::size_t begin, std::size_t end) {
    for (std::size_t h = begin; h < end; ++h) {
      const float* const from = rows.peer(static_cast<int>(halo.owner[h])) + halo.row[h] * stride;
      std::transform(from, from + stride, to + h * stride,
                     [](float value) { return widened(rounded<T>(value)); });
    }
  });
}

}  // namespace

void pull_halo(const Halo& halo, std::uint64_t stride, const SymmetricRows& rows, float* to) {
  pull_halo_as<float>(halo, stride, rows, to);
}

namespace {

// Ranks are on several hosts: each packs the rows that others asked for when the strategy was made.
class Messages {
 public:
  Messages(World& world, const Shard& shard) : world_(world) {
    const auto ranks = static_cast<std::size_t>(world.size());
    std::vector<std::uint64_t> wanted(ranks);
    for (std::size_t p = 0; p < ranks; ++p) wanted[p] = shard.halo.rows_of(static_cast<int>(p));
    const auto tables = world.all_gather(std::as_bytes(std::span<const std::uint64_t>(wanted)));
    asked_.resize(ranks);
    std::vector<std::span<const std::byte>> send(ranks);
    std::vector<std::span<std::byte>> receive(ranks);
    const auto me = static_cast<std::size_t>(world.rank());
    for (std::size_t p = 0; p < ranks; ++p) {
      std::uint64_t count = 0;
      std::memcpy(&count, tables[p].data() + me * sizeof(count), sizeof(count));
      asked_[p].resize(count);
      receive[p] = std::as_writable_bytes(std::span(asked_[p]));
      send[p] = std::as_bytes(shard.halo.row.span().subspan(shard.halo.starts[p], wanted[p]));
    }
    world.all_to_all(send, receive);
  }

  // Rows cross as numbers of type T.
  template <class T>
  void exchange(const Shard& shard, std::uint64_t stride, float* slots) {
    const std::size_t ranks = asked_.size();
    float* const halo = slots + shard.own * stride;
    std::vector<Buffer<T>> packed(ranks);
    std::vector<std::span<const std::byte>> send(ranks);
    std::vector<std::span<std::byte>> receive(ranks);
    Buffer<T> arrived;  // of floats, rows arrive in their slots
    if constexpr (!std::is_same_v<T, float>) arrived = Buffer<T>(shard.halo.rows() * stride);
    for (std::size_t p = 0; p < ranks; ++p) {
      packed[p] = Buffer<T>(asked_[p].size() * stride);
      for (std::size_t k = 0; k < asked_[p].size(); ++k) {
        const float* const row = slots + asked_[p][k] * stride;
        std::transform(row, row + stride, packed[p].data() + k * stride, rounded<T>);
      }
      send[p] = std::as_bytes(std::span<const T>(packed[p].data(), packed[p].size()));
      T* to = arrived.data();
      if constexpr (std::is_same_v<T, float>) to = halo;
      receive[p] = std::as_writable_bytes(std::span(
          to + shard.halo.starts[p] * stride, shard.halo.rows_of(static_cast<int>(p)) * stride));
    }
    world_.all_to_all(send, receive);
    std::transform(arrived.begin(), arrived.end(), halo, [](T value) { return widened(value); });
  }

 private:
  World& world_;
  std::vector<std::vector<std::uint32_t>> asked_;  // by rank: my rows that it reads
};

class FetchStrategy : public StrategyRun {
 public:
  FetchStrategy(World& world, const Shard& shard, DType wire) : shard_(shard), wire_(wire) {
    for (int p = 0; p < shard.parts; ++p) rows_from_.push_back(shard.halo.rows_of(p));
    if (world.size() > 1 && !world.one_host()) messages_ = std::make_unique<Messages>(world, shard);
  }

  RowSource gather(std::uint64_t stride, SymmetricRows& rows, ExchangeCost& cost) override {
    const Timed timed("bring rows");
    AddTime time(cost.fetching);
    with_number(wire_, [&]<class T>(T) {
      if (messages_)
        messages_->exchange<T>(shard_, stride, rows.own());
      else if (rows.shared())  // each rank pulls its halo out of its peers' slots
        pull_halo_as<T>(shard_.halo, stride, rows, rows.own() + shard_.own * stride);
    });
    const std::uint64_t row_bytes = stride * size_of(messages_ ? wire_ : DType::f32);
    const std::uint64_t bytes = count_fetched(rows_from_, row_bytes, cost);
    if (!messages_) count_moved(bytes);  // World counts messages
    return {rows.own(), stride, static_cast<Slot>(shard_.own)};
  }

 private:
  const Shard& shard_;
  const DType wire_;
  std::vector<std::uint64_t> rows_from_;  // by rank
  std::unique_ptr<Messages> messages_;
};

}  // namespace

std::unique_ptr<StrategyRun> make_fetch_strategy(World& world, const Shard& shard, DType wire) {
  return std::make_unique<FetchStrategy>(world, shard, wire);
}

}  // namespace plait
