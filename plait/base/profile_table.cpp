#include "plait/base/profile_table.h"

#include <algorithm>

namespace plait {
namespace {

using Counts = std::vector<std::uint64_t>;

// A phase with the phases inside of it.
struct Node {
  ProfileRow row;
  std::vector<std::size_t> inner;  // indices of nodes
};

// The phases of all ranks as one tree; node 0 is the whole run.
class Tree {
 public:
  explicit Tree(const std::vector<Profile>& ranks) : ranks_(ranks.size()) {
    nodes_.push_back({.row = row_of("", "", 0), .inner = {}});
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) add(ranks[rank], rank);
  }

  // Appends the rows inside of a node, and returns the bytes that crossed in them, by rank.
  Counts append_inner(std::size_t at, std::vector<ProfileRow>& rows) const {
    const Node& node = nodes_[at];
    ProfileRow other = row_of("other", path_in(node.row, "other"), depth_in(at));
    other.ns = node.row.ns;
    Counts bytes(ranks_);
    for (const std::size_t i : node.inner) {
      const std::size_t place = rows.size();
      rows.push_back(nodes_[i].row);
      const Counts inside = append_inner(i, rows);
      ProfileRow& row = rows[place];
      row.moves = nodes_[i].inner.empty() && std::ranges::max(row.bytes) > 0;
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        row.bytes[rank] += inside[rank];
        bytes[rank] += row.bytes[rank];
        other.ns[rank] -= row.ns[rank];
      }
    }
    if (!node.inner.empty() || at == 0) rows.push_back(std::move(other));
    return bytes;
  }

 private:
  ProfileRow row_of(const std::string& name, std::string path, std::size_t depth) const {
    return {.name = name,
            .path = std::move(path),
            .depth = depth,
            .calls = Counts(ranks_),
            .ns = Counts(ranks_),
            .bytes = Counts(ranks_)};
  }
  static std::string path_in(const ProfileRow& outer, const std::string& name) {
    return outer.path.empty() ? name : outer.path + "/" + name;
  }
  std::size_t depth_in(std::size_t at) const { return at == 0 ? 0 : nodes_[at].row.depth + 1; }

  std::size_t inner_node(std::size_t outer, const std::string& name) {
    for (const std::size_t i : nodes_[outer].inner)
      if (nodes_[i].row.name == name) return i;
    Node made{.row = row_of(name, path_in(nodes_[outer].row, name), depth_in(outer)), .inner = {}};
    nodes_.push_back(std::move(made));
    nodes_[outer].inner.push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }

  void add(const Profile& profile, std::size_t rank) {
    nodes_[0].row.ns[rank] = profile.ns;
    std::vector<std::size_t> node_of;  // by phase of this rank
    for (const PhaseTotal& phase : profile.phases) {
      const std::size_t outer =
          phase.outer < 0 ? 0 : node_of[static_cast<std::size_t>(phase.outer)];
      node_of.push_back(inner_node(outer, phase.name));
      ProfileRow& row = nodes_[node_of.back()].row;
      row.calls[rank] = phase.calls;
      row.ns[rank] = phase.ns;
      row.bytes[rank] = phase.bytes;
    }
  }

  std::size_t ranks_;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<ProfileRow> profile_table(const std::vector<Profile>& ranks) {
  std::vector<ProfileRow> rows;
  Tree(ranks).append_inner(0, rows);
  return rows;
}

}  // namespace plait
