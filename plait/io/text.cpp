#include "plait/io/text.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/progress.h"

namespace plait {
namespace {

constexpr std::size_t kSmallestChunk = std::size_t{64} << 10;
constexpr std::size_t kLargestChunk = std::size_t{4} << 20;
constexpr std::size_t kChunks = 256;  // of a text of middle size

std::string_view token_at(const char* at, const char* end) {
  return {at, static_cast<std::size_t>(std::find_if(at, end, ends_number) - at)};
}

std::string quote(std::string_view found) {
  constexpr std::size_t kLongest = 40;
  std::string text = "'";
  for (const char c : found.substr(0, kLongest)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (found.size() > kLongest ? "...'" : "'");
}

}  // namespace

std::vector<std::string_view> TextInput::chunks(std::size_t begin) const {
  const std::size_t size = std::clamp(text_.size() / kChunks, kSmallestChunk, kLargestChunk);
  std::vector<std::string_view> pieces;
  while (begin < text_.size()) {
    std::size_t end = text_.size();
    if (end - begin > size) {
      const std::size_t line_end = text_.find('\n', begin + size);
      if (line_end != std::string_view::npos) end = line_end + 1;
    }
    pieces.push_back(text_.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

std::string TextInput::line_of(const char* at) const {
  return fmt::format("line {}", 1 + std::count(text_.data(), at, '\n'));
}

void TextInput::fail(const char* at, const std::string& problem, const std::string& remedy) const {
  throw InputError(file_, line_of(at), problem, remedy);
}

void TextInput::fail_number(const char* at, std::string_view what, std::uint64_t low,
                            std::uint64_t high) const {
  const std::string_view found = token_at(at, text_.data() + text_.size());
  const std::string range = fmt::format("{}..{}", low, high);
  if (found.empty())
    fail(at, fmt::format("{} is missing in {}", what, quote_line(at)),
         fmt::format("give a whole number in {}", range));
  const bool negative = found.size() > 1 && found[0] == '-' && is_digit(found[1]);
  const bool whole = std::all_of(found.begin(), found.end(), is_digit);
  fail(at,
       fmt::format("{} {} is {}", what, quote(found),
                   whole ? "outside " + range
                         : (negative ? "negative, outside " : "not a whole number in ") + range),
       "correct the line");
}

void TextInput::fail_weight(const char* at) const {
  const std::string_view found = token_at(at, text_.data() + text_.size());
  const std::string problem = found.empty()
                                  ? fmt::format("the weight is missing in {}", quote_line(at))
                                  : fmt::format(
                                        "weight {} is not a finite number in "
                                        "-3.4e38..3.4e38",
                                        quote(found));
  fail(at, problem, "correct the line");
}

std::string TextInput::quote_line(const char* at) const {
  const char* const begin = text_.data();
  const char* const end = begin + text_.size();
  const char* first = at;
  while (first != begin && first[-1] != '\n') --first;
  const char* last = std::find(at, end, '\n');
  while (last != first && is_blank(last[-1])) --last;
  return quote({first, static_cast<std::size_t>(last - first)});
}

void for_each_chunk(const std::vector<std::string_view>& chunks, const std::string& label,
                    const std::function<void(std::size_t)>& body) {
  std::uint64_t bytes = 0;
  for (const std::string_view chunk : chunks) bytes += chunk.size();
  Progress progress(label, bytes);
  std::mutex mutex;
  std::exception_ptr error;
  std::atomic<std::size_t> failed{chunks.size()};  // the first chunk that threw
  parallel_for(chunks.size(), [&](std::size_t i) {
    if (i > failed.load(std::memory_order_relaxed)) return;
    try {
      body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        error = std::current_exception();
      }
    }
    progress.advance(chunks[i].size());
  });
  if (error) std::rethrow_exception(error);
}

std::uint64_t exclusive_sum(std::vector<std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (std::uint64_t& count : counts) sum += std::exchange(count, sum);
  return sum;
}

// Where every line begins with a digit, which the compiler's vectors find out at memory speed,
// there are as many lines as line ends.
std::uint64_t count_lines(std::string_view chunk) {
  if (chunk.empty()) return 0;
  const char* const text = chunk.data();
  std::uint64_t line_ends = 0;
  bool plain = is_digit(text[0]);
  for (std::size_t begin = 1; plain && begin < chunk.size(); begin += 1 << 14) {
    const std::size_t end = std::min(begin + (1 << 14), chunk.size());
    std::uint32_t ends = 0, others = 0;
#pragma omp simd reduction(+ : ends, others)
    for (std::size_t i = begin; i < end; ++i) {
      const bool starts = text[i - 1] == '\n';
      ends += starts;
      others += starts & !is_digit(text[i]);
    }
    line_ends += ends;
    plain = others == 0;
  }
  if (plain) return line_ends + 1;
  std::uint64_t lines = 0;
  for (Cursor cursor(chunk); cursor.next_line(); cursor.skip_line()) ++lines;
  return lines;
}

std::uint64_t count_words(std::string_view chunk) {
  if (chunk.empty()) return 0;
  const auto within = [](char c) { return !is_blank(c) && c != '\n'; };
  const char* const text = chunk.data();
  std::uint64_t words = within(text[0]);
  for (std::size_t begin = 1; begin < chunk.size(); begin += 1 << 14) {
    const std::size_t end = std::min(begin + (1 << 14), chunk.size());
    std::uint32_t starts = 0;  // few bits, so that vectors hold many
    for (std::size_t i = begin; i < end; ++i) {
      const bool before = within(text[i - 1]), now = within(text[i]);
      starts += now & !before;
    }
    words += starts;
  }
  return words;
}

Found<std::uint64_t> find_unsigned_slowly(const char* at, const char* end) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (at == end || !is_digit(*at)) return {};
  Found<std::uint64_t> found{at, 0};
  for (; found.end != end && is_digit(*found.end); ++found.end) {
    const auto digit = static_cast<std::uint64_t>(*found.end - '0');
    if (found.value > kMost / 10 || found.value * 10 > kMost - digit) return {};
    found.value = found.value * 10 + digit;
  }
  return found;
}

Found<float> find_float(const char* at, const char* end) {
  if (end - at > 1 && at[0] == '+' && at[1] != '-') ++at;  // std::from_chars refuses a plus
  Found<float> found;
  const auto [stop, status] = std::from_chars(at, end, found.value);
  if (status == std::errc::result_out_of_range) {
    double wide = 0;
    const auto again = std::from_chars(at, end, wide);
    if (again.ec != std::errc() || std::abs(wide) > 1) return {};
    found.value = static_cast<float>(wide);
  } else if (status != std::errc() || !std::isfinite(found.value)) {
    return {};
  }
  found.end = stop;
  return found;
}

}  // namespace plait
