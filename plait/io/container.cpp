// Reading .plait containers.
#include "plait/io/container.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/graph/validate.h"
#include "plait/io/container_layout.h"
#include "plait/io/rows.h"

namespace plait {
namespace {

using namespace container;

class Reader {
 public:
  Reader(std::shared_ptr<const void> owner, Bytes bytes, const std::string& file)
      : owner_(std::move(owner)), bytes_(bytes), file_(file) {}

  Dataset read() {
    read_header();
    check_layout();
    check_content();
    Dataset dataset;
    dataset.name = name_;
    dataset.symmetric = header_.flags & kSymmetric;
    dataset.graph = read_graph();
    dataset.features = read_features();
    dataset.classes = static_cast<std::int32_t>(header_.classes);
    dataset.graphs = header_.graphs;
    dataset.graph_ids = array<std::uint32_t>(Kind::graph_ids, header_.vertices);
    const std::uint64_t examples = header_.graphs > 0 ? header_.graphs : header_.vertices;
    dataset.labels = array<std::int32_t>(Kind::labels, examples);
    dataset.label_sets = array<std::uint8_t>(Kind::label_sets, times(examples, header_.classes));
    if ((header_.split_count > 0) != (find(Kind::splits) != nullptr))
      fail("header", fmt::format("{} splits and {} section of them", header_.split_count,
                                 find(Kind::splits) ? "a" : "no"));
    dataset.split_count = header_.split_count;
    dataset.splits = array<Split>(Kind::splits, times(header_.split_count, examples));
    dataset.original_ids = array<std::uint64_t>(Kind::original_ids, header_.vertices);
    dataset.numbers = array<std::uint64_t>(Kind::numbers, header_.vertices);
    for (const Section& section : sections_)
      dataset.checked.push_back({bytes_of(section), section.checksum});
    return dataset;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& problem) const {
    throw InputError(file_, place, problem, "copy the file again or write it anew with convert");
  }
  [[noreturn]] void fail(const Section& section, const std::string& problem) const {
    fail(fmt::format("section {}", kKindNames[static_cast<std::uint32_t>(section.kind)]), problem);
  }

  void read_header() {
    if (bytes_.size() < sizeof(Header) ||
        std::memcmp(bytes_.data(), kContainerMark.data(), kContainerMark.size()) != 0)
      fail("header", bytes_.size() < sizeof(Header) ? "the file ends within it"
                                                    : "the mark of a .plait file is not there");
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    if (header_.version > kVersion)
      throw InputError(file_, "header",
                       fmt::format("written by a newer Plait: version {}, this one reads {}",
                                   header_.version, kVersion),
                       "read it with that Plait");
    if (header_.file_bytes != bytes_.size())
      fail("header", fmt::format("it promises a file of {} bytes, but there are {}",
                                 header_.file_bytes, bytes_.size()));
    const std::uint64_t table_end =
        sizeof(Header) + std::uint64_t{header_.section_count} * sizeof(Section);
    if (header_.header_bytes > bytes_.size() ||
        table_end + header_.name_bytes != header_.header_bytes)
      fail("header", fmt::format("its length, {}, is not that of its parts, {}",
                                 header_.header_bytes, table_end + header_.name_bytes));
    check_header_sum();
    if (header_.version == 0) fail("header", "version 0 does not exist");
    check_fields();
    const Bytes name = bytes_.subspan(table_end, header_.name_bytes);
    name_.assign(reinterpret_cast<const char*>(name.data()), name.size());
    sections_.resize(header_.section_count);
    if (!sections_.empty())
      std::memcpy(sections_.data(), bytes_.data() + sizeof(Header), table_end - sizeof(Header));
  }

  void check_header_sum() const {
    Header blank = header_;
    blank.checksum = 0;
    XXH3_state_t* const state = XXH3_createState();
    if (!state) throw std::bad_alloc();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &blank, sizeof blank);
    XXH3_64bits_update(state, bytes_.data() + sizeof blank, header_.header_bytes - sizeof blank);
    const std::uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (sum != header_.checksum) fail("header", "its checksum does not match: it is damaged");
  }

  // Refuses fields that are wrong although the checksum is right: another program wrote them.
  void check_fields() const {
    const std::uint32_t kinds = kinds_of(header_.version);
    if (header_.section_count > kinds)
      fail("header", fmt::format("{} sections are outside 2..{}", header_.section_count, kinds));
    if (header_.vertices >= std::uint64_t{1} << 60)
      fail("header", fmt::format("{} vertices are outside 1..2^60 - 1", header_.vertices));
    if (header_.classes > std::uint32_t{std::numeric_limits<std::int32_t>::max()})
      fail("header", fmt::format("{} classes are outside 0..2^31 - 1", header_.classes));
    if ((header_.flags & ~kSymmetric) != 0 || (header_.version == 1 && header_.graphs != 0))
      fail("header", "flags that this version does not know");
    if (header_.name_bytes > kLongestName)
      fail("header",
           fmt::format("a name of {} bytes is longer than {}", header_.name_bytes, kLongestName));
  }

  // Kinds rise, so none comes twice; each section begins where the one before leaves off, so none
  // overlap and nothing is hidden between.
  void check_layout() const {
    if (printable(name_) != name_)
      fail("header", "the name holds control characters, or is not UTF-8");
    std::uint64_t end = header_.header_bytes;
    std::uint32_t previous = 0;
    for (const Section& section : sections_) {
      const auto kind = static_cast<std::uint32_t>(section.kind);
      if (const std::uint32_t kinds = kinds_of(header_.version); kind == 0 || kind > kinds)
        fail("section table", fmt::format("kind {} is outside 1..{}", kind, kinds));
      if (kind <= previous)
        fail(section, kind == previous ? "it is there twice" : "it is not in the order of kinds");
      previous = kind;
      if (section.begin != aligned(end))
        fail(section,
             fmt::format("it begins at byte {} instead of {}", section.begin, aligned(end)));
      if (section.begin > bytes_.size() || section.bytes > bytes_.size() - section.begin)
        fail(section, fmt::format("it ends beyond the {} bytes of the file", bytes_.size()));
      for (std::uint64_t i = end; i < section.begin; ++i)
        if (bytes_[i] != std::byte{0})
          fail(fmt::format("byte {}", i), "it is between sections and not zero");
      end = section.begin + section.bytes;
    }
    if (end != bytes_.size())
      fail(fmt::format("byte {}", end), "the last section ends here, but the file does not");
  }

  void check_content() const {
    parallel_for(sections_.size(), [&](std::size_t i) {
      const Section& section = sections_[i];
      if (checksum_of(bytes_of(section)) != section.checksum)
        fail(section, "its checksum does not match: it is damaged");
    });
  }

  Bytes bytes_of(const Section& section) const {
    return bytes_.subspan(section.begin, section.bytes);
  }

  const Section* find(Kind kind) const {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section& section) { return section.kind == kind; });
    return found == sections_.end() ? nullptr : &*found;
  }

  const Section& get(Kind kind) const {
    const Section* section = find(kind);
    if (!section)
      fail("section table",
           fmt::format("no section {}", kKindNames[static_cast<std::uint32_t>(kind)]));
    return *section;
  }

  // Returns a product of counts, or the largest number, which no section's size can match.
  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? ~std::uint64_t{0} : product;
  }

  // Returns the elements of a section, which must be `size` if that is given; none if it is not
  // there.
  template <class T>
  Array<T> array(Kind kind, std::optional<std::uint64_t> size) const {
    const Section* section = find(kind);
    if (!section) return {};
    if (section->element != element_of<T>())
      fail(*section, fmt::format("elements of {} do not belong in it", name_of(section->element)));
    if (section->bytes % sizeof(T) != 0 || (size && section->bytes / sizeof(T) != *size))
      fail(*section, fmt::format("it has {} bytes instead of {} elements of {}", section->bytes,
                                 size ? fmt::to_string(*size) : "whole", sizeof(T)));
    const std::byte* begin = bytes_.data() + section->begin;
    return {owner_, {reinterpret_cast<const T*>(begin), section->bytes / sizeof(T)}};
  }

  template <VertexId V>
  AnyCsr read_csr() const {
    Csr<V> graph;
    graph.offsets = array<EdgeOffset>(Kind::offsets, header_.vertices + 1);
    graph.neighbours = array<V>(Kind::neighbours, header_.edges);
    graph.weights = array<float>(Kind::weights, header_.edges);
    return graph;
  }

  AnyCsr read_graph() const {
    get(Kind::offsets);
    if (get(Kind::neighbours).element == Element::u64) return read_csr<std::uint64_t>();
    if (header_.vertices > kMaxVertices32)
      fail(get(Kind::neighbours),
           fmt::format("32-bit ids in a graph of {} vertices", header_.vertices));
    return read_csr<std::uint32_t>();
  }

  Features read_features() const {
    const Section* dense = find(Kind::features);
    const bool sparse =
        find(Kind::feature_offsets) || find(Kind::feature_columns) || find(Kind::feature_values);
    if ((dense || sparse) != (header_.width > 0) || (dense && sparse))
      fail("header", fmt::format("a feature width of {} with {} features", header_.width,
                                 dense && sparse   ? "both dense and sparse"
                                 : dense || sparse ? "sections of"
                                                   : "no"));
    Features features;
    if (header_.width == 0) return features;
    features.rows = header_.vertices;
    features.width = header_.width;
    const std::uint64_t elements = times(header_.vertices, header_.width);
    if (sparse) {
      for (const Kind kind : {Kind::feature_offsets, Kind::feature_columns, Kind::feature_values})
        get(kind);
      if (header_.width > kMaxVertices32)
        fail("header", fmt::format("a sparse feature width of {} is outside 1..{}", header_.width,
                                   kMaxVertices32));
      features.sparse.offsets = array<EdgeOffset>(Kind::feature_offsets, header_.vertices + 1);
      features.sparse.neighbours = array<std::uint32_t>(Kind::feature_columns, std::nullopt);
      features.sparse.weights = array<float>(Kind::feature_values, features.sparse.edges());
    } else if (dense->element == Element::bf16) {
      features.bf16 = array<BFloat16>(Kind::features, elements);
    } else {
      features.f32 = array<float>(Kind::features, elements);
    }
    return features;
  }

  std::shared_ptr<const void> owner_;
  Bytes bytes_;
  const std::string& file_;
  Header header_;
  std::vector<Section> sections_;
  std::string name_;
};

}  // namespace

Dataset read_container(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                       const std::string& file) {
  require(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0,
          "{}: its bytes must be aligned to 8 to be used in place", file);
  Dataset dataset = Reader(std::move(owner), bytes, file).read();
  validate(dataset, file);
  if (dataset.symmetric) require_symmetric(dataset.graph, file);
  return dataset;
}

}  // namespace plait
