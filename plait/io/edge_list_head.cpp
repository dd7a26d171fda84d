#include "plait/io/edge_list_head.h"

#include <algorithm>
#include <cctype>

#include "plait/base/error.h"
#include "plait/base/names.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

constexpr Names<FirstLine, 4> kNames{"first line", {"auto", "edge", "counts", "skip"}};
constexpr std::size_t kLongestHead = 4096;  // characters of a line that are looked at

std::string_view line_at(const TextInput& input, const char* at) {
  const auto begin = static_cast<std::size_t>(at - input.text().data());
  const std::string_view text = input.text().substr(begin, kLongestHead);
  return text.substr(0, text.find('\n'));
}

// Returns the words between blanks and commas, in lower case and without quotes.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (is_blank(c) || c == ',') {
      if (!words.back().empty()) words.emplace_back();
    } else if (c != '"' && c != '\'') {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<std::uint64_t> whole_number(const std::string& word) {
  const Found<std::uint64_t> found = find_unsigned_slowly(word.data(), word.data() + word.size());
  if (found.end != word.data() + word.size()) return std::nullopt;
  return found.value;
}

bool begins_number(std::string_view word) {
  const std::size_t digit = word.find_first_not_of("+-.");
  return digit != std::string_view::npos && is_digit(word[digit]);
}

// Tells whether no word of the line begins like a number, and the line begins as a name may.
bool names_columns(std::string_view line) {
  if (line.empty()) return false;
  const auto first = static_cast<unsigned char>(line[0]);
  return (std::isalpha(first) || first == '"' || first == '\'' || first == '_' || first >= 0x80) &&
         std::ranges::none_of(words_of(line), begins_number);
}

class HeadReader {
 public:
  HeadReader(const TextInput& input, FirstLine first_line)
      : input_(input), cursor_(input.text()), skips_(first_line == FirstLine::skip) {}

  EdgeListHead read() {
    pass_comments(true);
    const bool names = !skips_ && !cursor_.at_end() && names_columns(line_at(input_, cursor_.at()));
    if (names) take_names();
    if (names || skips_) {
      cursor_.skip_line();
      pass_comments(true);
    }
    head_.first = cursor_.at();
    if (!cursor_.at_end()) head_.counts = counts_in(cursor_.at());
    cursor_.skip_line();
    pass_comments(false);
    head_.second = cursor_.at();
    return std::move(head_);
  }

 private:
  void pass_comments(bool look) {
    while (cursor_.next_line() && begins_comment(cursor_.peek())) {
      if (look) look_at(cursor_.at());
      cursor_.skip_line();
    }
  }

  void take_names() {
    head_.names = cursor_.at();
    head_.columns = read_column_names(words_of(line_at(input_, head_.names)));
    if (head_.columns.order == ColumnOrder::not_edges)
      input_.fail(
          head_.names,
          input_.quote_line(head_.names) +
              " names columns that are not a source, a target and perhaps a weight",
          "bring them into this order, or read them so with " + setting("first-line", "skip"));
  }

  // Returns the counts of a line "N E" or "N N E".
  std::optional<StatedCounts> counts_in(const char* at) const {
    const std::vector<std::string> words = words_of(line_at(input_, at));
    if (words.size() < 2 || words.size() > 3) return std::nullopt;
    std::vector<std::uint64_t> numbers;
    for (const std::string& word : words)
      if (const auto number = whole_number(word)) numbers.push_back(*number);
    if (numbers.size() != words.size() || numbers[0] == 0) return std::nullopt;
    if (numbers.size() == 3 && numbers[0] != numbers[1]) return std::nullopt;
    return StatedCounts{numbers[0], numbers.back(), at};
  }

  void look_at(const char* at) {
    const std::string_view line = line_at(input_, at);
    const std::vector<std::string> words = words_of(line.substr(1));
    if (words.empty()) return;
    const bool konect = line[0] == '%' && !seen_mark_;
    seen_mark_ |= konect;
    const bool snap = line[0] == '#' && words[0] == "undirected" && words.size() > 1 &&
                      words[1].starts_with("graph");
    if (snap || (konect && words[0] == "sym")) head_.undirected = at;
    if (konect && words[0] == "bip")
      head_.notes.push_back(
          fmt::format("{} {} says that sources and targets are two sets of vertices, but the same "
                      "ids are read as the same vertices",
                      input_.line_of(at), input_.quote_line(at)));
    look_for_counts(at, words);
  }

  void look_for_counts(const char* at, const std::vector<std::string>& words) {
    StatedCounts found{.at = at};
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "nodes:") found.vertices = whole_number(words[i + 1]).value_or(0);
      if (words[i] == "edges:") found.edges = whole_number(words[i + 1]).value_or(0);
      if (words[i + 1] == "vertices") found.vertices = whole_number(words[i]).value_or(0);
      if (words[i + 1] == "edges") found.edges = whole_number(words[i]).value_or(0);
    }
    if (found.vertices > 0 && found.edges > 0) head_.comment = found;
  }

  const TextInput& input_;
  Cursor cursor_;
  const bool skips_;
  EdgeListHead head_;
  bool seen_mark_ = false;  // KONECT's, on its first comment
};

}  // namespace

FirstLine parse_first_line(std::string_view word) { return kNames.parse(word); }
std::string_view to_string(FirstLine line) { return kNames.of(line); }

EdgeListHead read_edge_list_head(const TextInput& input, FirstLine first_line) {
  return HeadReader(input, first_line).read();
}

}  // namespace plait
