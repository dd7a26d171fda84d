#include "plait/plan/halo_schedule.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace plait {
namespace {

class Timeline {
 public:
  Timeline(const RankLoad& load, const PassWidths& width, const PassCosts& costs)
      : load_(load), width_(width), costs_(costs) {
    const double reach = own() * static_cast<double>(width.y_bytes) +
                         static_cast<double>(load.halo * width.wire_bytes);
    missed_ = reach <= costs.cache ? 0 : 1 - costs.cache / reach;
  }

  double arrival(std::uint64_t rows) const {
    return costs_.first_row + static_cast<double>(rows * width_.wire_bytes) / costs_.link;
  }
  std::uint64_t arrived(double time) const {
    const double rows = (time - costs_.first_row) * costs_.link /
                        static_cast<double>(std::max<std::uint64_t>(width_.wire_bytes, 1));
    return rows <= 0 ? 0 : std::min(load_.halo, static_cast<std::uint64_t>(rows));
  }
  // Returns the time of one pass over all edges, which writes y, after all rows have arrived.
  double whole() const {
    return sum(static_cast<double>(edges()), own(), 1) + first_reads_of_own() +
           first_reads(load_.halo);
  }
  // Returns when the pass over own edges ends.
  double after_local() const {
    const double first = load_.local_edges == 0 ? 0 : first_reads_of_own();
    return beside(0, sum(static_cast<double>(load_.local_edges), own(), 1) + first);
  }
  // Returns when the pass over the edges to rows `from` to `to` of the halo ends if it may begin at
  // `time`.
  double after_remote(double time, std::uint64_t from, std::uint64_t to) const {
    const double edges = static_cast<double>(load_.remote_edges) * static_cast<double>(to - from) /
                         static_cast<double>(std::max<std::uint64_t>(load_.halo, 1));
    return beside(std::max(time, arrival(to)),
                  sum(edges, std::min(own(), edges), 2) + first_reads(to - from));
  }
  // Returns passes that each take the rows that have arrived when the one before ends, but at least
  // `least`.
  std::vector<std::uint64_t> greedy(std::uint64_t least) const {
    std::vector<std::uint64_t> cuts;
    double time = after_local();
    for (std::uint64_t done = 0; done < load_.halo; done = cuts.back()) {
      std::uint64_t cut = std::max(arrived(time), done + least);
      if (cut + least / 2 >= load_.halo) cut = load_.halo;
      time = after_remote(time, done, cut);
      cuts.push_back(cut);
    }
    return cuts;
  }

 private:
  double own() const { return static_cast<double>(load_.own); }
  std::uint64_t edges() const { return load_.local_edges + load_.remote_edges; }
  double sum(double edges, double rows, double times_y) const {
    const auto bytes = static_cast<double>(width_.y_bytes);
    const double slices = std::max(1.0, std::ceil(bytes / costs_.slice));
    const double edge =
        width_.work == EdgeWork::sum
            ? (costs_.edge + missed_ * costs_.miss) * slices + bytes * costs_.edge_byte
            : static_cast<double>(width_.wire_bytes) * costs_.work_edge_byte;
    const double row = width_.work == EdgeWork::sum         ? costs_.row * slices
                       : width_.work == EdgeWork::attention ? costs_.attention_row
                                                            : costs_.extremum_row;
    return costs_.pass + edges * edge + rows * (row + times_y * bytes * costs_.y_byte);
  }
  double first_reads(std::uint64_t rows) const {
    return static_cast<double>(rows * width_.wire_bytes) * costs_.first_byte;
  }
  // The bytes of an edge of the other operations contain them.
  double first_reads_of_own() const {
    return width_.work == EdgeWork::sum
               ? own() * static_cast<double>(width_.y_bytes) * costs_.first_byte
               : 0;
  }
  // Returns when `work` that begins at `time` ends: it is slower until the last row has arrived.
  double beside(double time, double work) const {
    const double left = std::max(0.0, arrival(load_.halo) - time);
    const double slow = std::min(work * costs_.beside_link, left);
    return time + slow + work - slow / costs_.beside_link;
  }

  const RankLoad& load_;
  const PassWidths& width_;
  const PassCosts& costs_;
  double missed_;  // share of the edges whose rows the cache does not hold
};

// Moves cuts, except the last, to a block's end within `reach`; cuts that meet become one.
void move_to_block_ends(std::vector<std::uint64_t>& cuts,
                        const std::vector<std::uint64_t>& block_ends, std::uint64_t reach) {
  for (std::uint64_t& cut : std::span(cuts).first(cuts.size() - 1))
    for (const std::uint64_t end : block_ends)
      if (end > 0 && std::max(cut, end) - std::min(cut, end) <= reach) {
        cut = end;
        break;
      }
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

std::vector<std::uint64_t> equal_cuts(std::uint64_t halo, std::uint64_t passes) {
  std::vector<std::uint64_t> cuts;
  for (std::uint64_t k = 1; k <= passes; ++k)
    if (const std::uint64_t cut = halo * k / passes; cut > (cuts.empty() ? 0 : cuts.back()))
      cuts.push_back(cut);
  return cuts;
}

}  // namespace

double predict_whole_pass(const RankLoad& load, const PassWidths& width, const PassCosts& costs) {
  return Timeline(load, width, costs).whole();
}

double predict_passes(const RankLoad& load, const PassWidths& width,
                      const std::vector<std::uint64_t>& cuts, const PassCosts& costs) {
  const Timeline line(load, width, costs);
  if (cuts.empty()) return (load.halo > 0 ? line.arrival(load.halo) : 0) + line.whole();
  double time = line.after_local();
  std::uint64_t done = 0;
  for (const std::uint64_t cut : cuts) {
    time = line.after_remote(time, done, cut);
    done = cut;
  }
  return time;
}

std::vector<std::uint64_t> cuts_at(const std::vector<double>& shares, std::uint64_t halo) {
  std::vector<std::uint64_t> cuts;
  for (const double share : shares) {
    const auto cut = static_cast<std::uint64_t>(share * static_cast<double>(halo));
    if (cut > (cuts.empty() ? 0 : cuts.back()) && cut < halo) cuts.push_back(cut);
  }
  if (halo > 0) cuts.push_back(halo);
  return cuts;
}

std::vector<HaloChunk> block_chunks(std::uint64_t begin, std::uint64_t rows,
                                    const std::vector<std::uint64_t>& cuts) {
  std::vector<HaloChunk> chunks;
  std::uint64_t before = 0;
  for (std::size_t pass = 0; pass < cuts.size(); ++pass) {
    const std::uint64_t from = std::max(before, begin), to = std::min(cuts[pass], begin + rows);
    if (from < to) chunks.push_back({from - begin, to - from, pass});
    before = cuts[pass];
  }
  return chunks;
}

std::vector<std::uint64_t> halo_cuts(const RankLoad& load, const PassWidths& width,
                                     const std::vector<std::uint64_t>& block_ends,
                                     const PassCosts& costs) {
  if (load.halo == 0) return {};
  const Timeline line(load, width, costs);
  std::vector<std::uint64_t> best;
  double least_time = predict_passes(load, width, {}, costs);
  const auto consider = [&](std::vector<std::uint64_t> cuts) {
    if (!block_ends.empty())
      move_to_block_ends(cuts, block_ends, load.halo / block_ends.size() / 4);
    const double time = predict_passes(load, width, cuts, costs);
    // More passes must be worth their while: the costs are estimates.
    if (time < 0.98 * least_time) least_time = time, best = std::move(cuts);
  };
  for (const std::uint64_t passes : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24}) {
    const std::uint64_t share = std::max<std::uint64_t>(1, load.halo / passes);
    consider(line.greedy(share));
    consider(equal_cuts(load.halo, passes));
  }
  return best;
}

}  // namespace plait
