#include "plait/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/json_text.h"
#include "plait/base/printable.h"

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

using nlohmann::json;

constexpr const char* kRemedy = "write it anew";

// Parses a header. What no array or metadata has is refused as soon as it is met, so that the
// parsed header takes a few times the memory of its text, whatever the text is.
json parse_header(std::string_view text, const std::string& file) {
  // The header has the depth 0, its entries 1, and their fields 2, which are texts or lists.
  bool plain = true;
  std::optional<std::string> name;  // of the entry
  const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::key && depth == 1 && plain) name = parsed.get<std::string>();
    if ((event == Event::object_start && depth > 1) || (event == Event::array_start && depth != 2))
      plain = false;
    return plain;
  };
  const json header = json::parse(text, keep, false);
  if (!plain && name)
    throw InputError(file, fmt::format("array '{}'", printable(*name)),
                     "holds lists or objects where texts or lists of counts belong", kRemedy);
  const bool ends = text.find('\0') != text.npos;  // the parser would take it for the end
  if (!plain || ends || !header.is_object())
    throw InputError(file, "header", "is not a JSON object", kRemedy);
  return header;
}

// The place of an array in the data.
struct Place {
  std::uint64_t begin, end;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Returns array `name` of the header, without its values, and its place.
std::pair<NamedTensor, Place> parse_entry(const std::string& name, const json& entry,
                                          std::uint64_t data_size, const std::string& file) {
  const auto fail = [&](const std::string& problem) -> void {
    throw InputError(file, fmt::format("array '{}'", name), problem, kRemedy);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    fail("lacks dtype, shape or data_offsets");
  if (entry["dtype"] != "F32")
    fail(fmt::format("is of type {}, not F32", short_text(entry["dtype"])));
  const json &shape = entry["shape"], &offsets = entry["data_offsets"];
  const auto counts = [](const json& list) {
    return list.is_array() && std::ranges::all_of(list, [](const json& n) {
             return n.is_number_unsigned() && n.get<std::uint64_t>() < std::uint64_t{1} << 48;
           });
  };
  if (!counts(shape) || !counts(offsets) || offsets.size() != 2)
    fail("has a shape or offsets that are not lists of counts");

  NamedTensor tensor{name, {}, {}};
  std::uint64_t size = 1;
  for (const json& n : shape) {
    if (__builtin_mul_overflow(size, n.get<std::uint64_t>(), &size)) fail("has an endless shape");
    tensor.shape.push_back(n.get<std::int64_t>());
  }
  const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data_size || (end - begin) / sizeof(float) != size ||
      (end - begin) % sizeof(float) != 0)
    fail(fmt::format("stands at {}..{} of {} bytes, where its shape needs {} numbers", begin, end,
                     data_size, size));
  return {std::move(tensor), {begin, end}};
}

// Sorted by place, arrays must fill the data without a gap: no byte is read twice.
void check_layout(std::vector<Place> places, std::uint64_t data_size, const std::string& file) {
  std::ranges::sort(places);
  std::uint64_t next = 0;
  for (const auto& [begin, end] : places) {
    if (begin != next)
      throw InputError(file, fmt::format("byte {} of the data", std::min(begin, next)),
                       "belongs to no array, or to two", kRemedy);
    next = end;
  }
  if (next != data_size)
    throw InputError(file, "data",
                     fmt::format("holds {} bytes, but the header names {}", data_size, next),
                     kRemedy);
}

// Copies values out of the data, which need not be aligned.
Array<float> copied(std::span<const std::byte> bytes) {
  Buffer<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::map<std::string, std::string> parse_metadata(const json& entry, const std::string& file) {
  if (!entry.is_object()) throw InputError(file, "metadata", "is not an object", kRemedy);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) throw InputError(file, "metadata " + key, "is not text", kRemedy);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::string checksum_of_content(const TensorFile& file) {
  json tensors = json::object(), metadata = file.metadata;
  metadata.erase(kChecksumKey);
  for (const NamedTensor& tensor : file.tensors)
    tensors[tensor.name] = {
        {"shape", tensor.shape},
        {"checksum", checksum_text(checksum_of(std::as_bytes(tensor.values.span())))}};
  const std::string text = json{{"metadata", metadata}, {"tensors", tensors}}.dump();
  return checksum_text(checksum_of(std::as_bytes(std::span(text))));
}

}  // namespace

const NamedTensor* TensorFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    throw InputError(file, "start", "is shorter than a header's length", kRemedy);
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > bytes.size() - sizeof(length))
    throw InputError(file, "start",
                     fmt::format("promises a header of {} bytes, but the file holds {}", length,
                                 bytes.size() - sizeof(length)),
                     kRemedy);
  if (length > kLargestHeader)
    throw InputError(file, "start",
                     fmt::format("a header of {} bytes is longer than {}", length, kLargestHeader),
                     kRemedy);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(length);
  const json header = parse_header({text, length}, file);
  const auto data = bytes.subspan(sizeof(length) + length);
  TensorFile result;
  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      result.metadata = parse_metadata(entry, file);
      continue;
    }
    auto [tensor, place] = parse_entry(name, entry, data.size(), file);
    result.tensors.push_back(std::move(tensor));
    places.push_back(place);
  }
  check_layout(places, data.size(), file);
  for (std::size_t i = 0; i < places.size(); ++i)
    result.tensors[i].values =
        copied(data.subspan(places[i].begin, places[i].end - places[i].begin));
  const auto sum = result.metadata.find(kChecksumKey);
  if (sum != result.metadata.end() && sum->second != checksum_of_content(result))
    throw InputError(file, fmt::format("metadata '{}'", kChecksumKey),
                     "does not match the content: the file is damaged, or changed by hand",
                     "copy it again or " + std::string(kRemedy));
  return result;
}

TensorFile read_safetensors(const std::string& path) {
  return parse_safetensors(MappedFile::open(path)->bytes(), path);
}

void write_safetensors(const TensorFile& tensors, const std::string& path) {
  json header = json::object();
  header["__metadata__"] = tensors.metadata;
  header["__metadata__"][kChecksumKey] = checksum_of_content(tensors);
  std::uint64_t at = 0;
  for (const NamedTensor& tensor : tensors.tensors) {
    const std::uint64_t bytes = tensor.values.size() * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // arrays begin on 8 bytes
  const std::uint64_t length = text.size();
  require(length <= kLargestHeader, "{}: cannot be written: a header of {} bytes is longer than {}",
          path, length, kLargestHeader);
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(text);
  for (const NamedTensor& tensor : tensors.tensors) out.write(std::as_bytes(tensor.values.span()));
  out.commit();
}

}  // namespace plait
