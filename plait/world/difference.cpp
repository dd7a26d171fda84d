#include "plait/world/difference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <span>
#include <string_view>

namespace plait {
namespace {

constexpr std::string_view kMissing = "missing", kNothing = "nothing";

// Returns "KEY\0VALUE\0KEY\0VALUE\0".
std::string encoded(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text.append(key).push_back('\0');
    text.append(value).push_back('\0');
  }
  return text;
}

Facts decoded(std::string_view text) {
  const auto take = [&] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  Facts facts;
  while (!text.empty()) {
    std::string key = take();
    facts.emplace_back(std::move(key), take());
  }
  return facts;
}

std::string_view value_of(const Facts& facts, const std::string& key) {
  const auto found = std::ranges::find(facts, key, &Facts::value_type::first);
  if (found == facts.end()) return kMissing;
  return found->second.empty() ? kNothing : std::string_view(found->second);
}

// Returns "rank 2" or "ranks 2-5, 7"; `ranks` ascend.
std::string name_ranks(const std::vector<int>& ranks) {
  std::string list;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    for (last = first; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;) ++last;
    if (!list.empty()) list += ", ";
    list += first == last ? fmt::to_string(ranks[first])
                          : fmt::format("{}-{}", ranks[first], ranks[last]);
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", list);
}

// Returns the difference in one fact; empty if all ranks have the same.
std::string difference(const World& world, const std::vector<Facts>& all, const std::string& key) {
  const std::string_view wanted = value_of(all[0], key);
  std::map<std::string_view, std::vector<int>> others;  // by value
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (const std::string_view found = value_of(all[rank], key); found != wanted)
      others[found].push_back(world.number_of(static_cast<int>(rank)));
  std::string list;
  for (const auto& [value, ranks] : others)
    list += fmt::format("{}{} on {}", list.empty() ? "" : ", ", value, name_ranks(ranks));
  if (list.empty()) return "";
  return fmt::format("{} is {} on rank {}, but {}", key, wanted, world.number_of(0), list);
}

// The call that a rank is about to make. Every call has the same size, so that ranks that make
// different ones can still exchange them.
struct Call {
  Given given;
  std::array<char, 112> text{};  // ends with a zero

  std::string_view name() const { return text.data(); }
};

// Returns the calls of all ranks. One sum takes fewer messages between threads than an exchange:
// each rank adds its own words to the zeros of the others.
std::vector<Call> gather_calls(World& world, const Call& mine) {
  using Words = std::array<std::uint64_t, sizeof(Call) / sizeof(std::uint64_t)>;
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<std::uint64_t> words(ranks * Words().size());
  const auto of = [&](std::size_t rank) { return words.begin() + rank * Words().size(); };
  std::ranges::copy(std::bit_cast<Words>(mine), of(static_cast<std::size_t>(world.rank())));
  world.all_reduce_sum(words);
  std::vector<Call> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Words call;
    std::copy(of(rank), of(rank + 1), call.begin());
    all.push_back(std::bit_cast<Call>(call));
  }
  return all;
}

}  // namespace

std::vector<Given> agree(World& world, std::string_view call, const Given& mine) {
  if (world.size() == 1) return {mine};
  Call own{.given = mine};
  call.copy(own.text.data(), own.text.size() - 1);
  std::vector<Given> given;
  const std::vector<Call> all = gather_calls(world, own);
  for (const Call& other : all) {
    require_on_all<UsageError>(
        other.name() == all[0].name(),
        "ranks call different operations: rank {} {}, but rank {} {}; every rank "
        "must make the same calls in the same order",
        world.number_of(0), all[0].name(), world.number_of(static_cast<int>(&other - all.data())),
        other.name());
    given.push_back(other.given);
  }
  return given;
}

std::string first_difference(World& world, const Facts& mine) {
  if (world.size() == 1) return "";
  const std::string text = encoded(mine);
  std::vector<Facts> all;
  for (const auto& bytes : world.all_gather(std::as_bytes(std::span(text.data(), text.size()))))
    all.push_back(decoded({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  for (const Facts& facts : all)
    for (const auto& [key, value] : facts)
      if (const std::string found = difference(world, all, key); !found.empty()) return found;
  return "";
}

}  // namespace plait
