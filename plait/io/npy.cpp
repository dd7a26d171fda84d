// The header of .npy: read and written. It is a Python literal; a strict parser accepts only the
// words that can stand in it.
#include "plait/io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>
#include <utility>

#include "plait/base/printable.h"

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are used as they lie in files");

using namespace std::string_view_literals;

constexpr auto kMagic = "\x93NUMPY"sv;
constexpr std::size_t kMaxRank = 64;  // as in NumPy 2

[[noreturn]] void fail_header(const std::string& name, const std::string& problem,
                              const std::string& remedy) {
  throw InputError(name, "header", problem, remedy);
}

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  void parse(NpyArray& array) {
    bool seen[3] = {};
    take('{');
    while (!try_take('}')) {
      const std::string_view key = quoted();
      const int index = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (index == 3) damaged("a key that is not descr, fortran_order or shape");
      if (std::exchange(seen[index], true)) damaged("a key that comes twice");
      take(':');
      if (index == 0) array.type = type();
      if (index == 1) array.fortran_order = boolean();
      if (index == 2) array.shape = tuple();
      if (!try_take(',')) {
        take('}');
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2]) damaged("no descr, fortran_order or shape");
    skip_spaces();
    if (!rest_.empty()) damaged("more than one dictionary");
  }

 private:
  [[noreturn]] void damaged(const char* problem) const {
    fail_header(name_, fmt::format("it holds {}", problem), "write the array anew with numpy.save");
  }

  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }

  bool try_take(char wanted) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void take(char wanted) {
    if (!try_take(wanted)) damaged("no Python dictionary as NumPy writes it");
  }

  std::string_view quoted() {
    const char quote = try_take('\'') ? '\'' : '"';
    if (quote == '"') take('"');
    const auto end = rest_.find(quote);
    if (end == std::string_view::npos) damaged("a string without an end");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_spaces();
    const bool yes = rest_.starts_with("True");
    if (!yes && !rest_.starts_with("False")) damaged("a fortran_order other than True or False");
    rest_.remove_prefix(yes ? 4 : 5);
    return yes;
  }

  std::uint64_t number() {
    skip_spaces();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) damaged("a shape that is not made of numbers from 0 to 2^64 - 1");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  // Reads (), (5,), (2, 5) or (2, 5,); but (5) is a number in brackets.
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    bool comma = true;
    take('(');
    while (!try_take(')')) {
      if (!comma) damaged("a shape without a comma between its numbers");
      if (values.size() == kMaxRank) damaged("a shape of more than 64 dimensions");
      values.push_back(number());
      comma = try_take(',');
    }
    if (values.size() == 1 && !comma) damaged("a shape that is a number, not a tuple");
    return values;
  }

  NpyType type() {
    skip_spaces();
    if (rest_.starts_with('['))
      fail_header(name_, "the elements are structures", "save each field as an array of its own");
    const std::string_view descr = quoted();
    const char order = descr.empty() ? '\0' : descr[0];
    const std::string_view code = descr.substr(order == '<' || order == '|' || order == '>');
    if (code.starts_with('O'))
      fail_header(name_, "it holds Python objects, which would need a pickle",
                  "save with allow_pickle=False");
    if (order == '>')
      fail_header(name_, fmt::format("the elements are big-endian ('{}')", shown(descr)),
                  "convert them with a.astype(a.dtype.newbyteorder('<'))");
    NpyType type{code.empty() ? '\0' : code[0], 0};
    const char* end = code.data() + code.size();
    const auto parsed = std::from_chars(code.data() + (code.empty() ? 0 : 1), end, type.size);
    if (parsed.ec != std::errc() || parsed.ptr != end || !supported(order, type))
      fail_header(name_, fmt::format("elements of type '{}' are not supported", shown(descr)),
                  "use one of b1, i1, i2, i4, i8, u1, u2, u4, u8, f4, f8 or S");
    return type;
  }

  // Single bytes have no order and may say so ('|'); others must be little-endian.
  static bool supported(char order, const NpyType& type) {
    if (type.kind == 'S') return order == '|';
    if (order != '<' && !(order == '|' && type.size == 1)) return false;
    const auto has = [&](std::initializer_list<std::uint64_t> sizes) {
      return std::find(sizes.begin(), sizes.end(), type.size) != sizes.end();
    };
    switch (type.kind) {
      case 'b':
        return has({1});
      case 'i':
      case 'u':
        return has({1, 2, 4, 8});
      case 'f':
        return has({4, 8});
      default:
        return false;
    }
  }

  static std::string shown(std::string_view text) { return printable(text.substr(0, 40)); }

  std::string_view rest_;
  const std::string& name_;
};

// Sets `bytes` to the bytes that type and shape promise; returns false if they pass 2^64. A zero
// anywhere makes the product zero, whatever stands beside it.
bool promised_bytes(const NpyArray& array, std::uint64_t& bytes) {
  bytes = array.type.size;
  if (std::find(array.shape.begin(), array.shape.end(), 0u) != array.shape.end()) bytes = 0;
  for (const std::uint64_t extent : array.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  return true;
}

}  // namespace

std::string NpyArray::shape_text() const {
  return fmt::format("({}{})", fmt::join(shape, ", "), rank() == 1 ? "," : "");
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic))
    throw InputError(name, "byte 0", "it does not begin with NumPy's mark", "give a .npy file");
  if (text.size() < 10) fail_header(name, "the file ends within it", "copy the file again");
  const int version = text[6];
  if (version < 1 || version > 3 || text[7] != 0)
    fail_header(name, fmt::format("version {}.{} is outside 1.0..3.0", version, int{text[7]}),
                "write the array anew with numpy.save");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  if (text.size() >= begin) std::memcpy(&length, text.data() + 8, begin - 8);
  if (text.size() < begin + length)
    fail_header(name, "the file ends within it", "copy the file again");

  NpyArray array;
  array.name = name;
  HeaderParser(text.substr(begin, length), name).parse(array);
  array.data = bytes.subspan(begin + length);
  std::uint64_t promised = 0;
  const bool fits = promised_bytes(array, promised);
  if (!fits || promised != array.data.size())
    fail_header(name,
                fmt::format("shape {} of {} promises {} bytes where {} follow", array.shape_text(),
                            array.type.text(), fits ? fmt::to_string(promised) : "over 2^64",
                            array.data.size()),
                "copy the file again or write it anew");
  return array;
}

std::string npy_header(NpyType type, std::span<const std::uint64_t> shape) {
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   type.size == 1 || type.kind == 'S' ? '|' : '<', type.text(),
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kBefore = 10;
  const std::size_t padded = (kBefore + header.size() + 1 + 63) / 64 * 64;
  header.resize(padded - kBefore - 1, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  std::string start(kMagic);
  start += {1, 0, static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return start + header;
}

}  // namespace plait
