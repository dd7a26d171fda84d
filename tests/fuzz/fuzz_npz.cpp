// Whatever the bytes, the reader of .npz returns the parts of a valid dataset, on which all later
// work can rely, or throws an Error.
//
// An archive has checksums that a fuzzer cannot guess, so the bytes are tried as an archive, and
// then cut into the arrays of one whose checksums are right.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/build.h"
#include "plait/graph/validate.h"
#include "plait/io/npz.h"
#include "tests/fuzz/operate.h"
#include "tests/io/npy_file.h"
#include "tests/io/zip_file.h"

namespace {

void read(const void* data, std::size_t size) {
  plait::ParsedDataset parsed;
  try {
    const auto* bytes = static_cast<const std::byte*>(data);
    parsed = plait::parse_npz(std::span(bytes, size), "fuzz.npz");
  } catch (const plait::Error&) {
    return;
  }
  plait::Dataset dataset = std::move(parsed.dataset);
  dataset.graph = plait::build_csr(std::move(parsed.edges));
  try {
    plait::validate(dataset, "fuzz.npz");
  } catch (const plait::Error&) {
    return;
  }
  dataset.symmetric = plait::is_symmetric(dataset.graph);
  plait::Chooser choose(static_cast<const std::uint8_t*>(data), size);
  plait::operate(dataset, choose);
}

// Makes an array of one of the names that mean something, with a small shape of any type.
plait::ZipMember choose_member(plait::Chooser& choose) {
  static const char* const kNames[] = {
      "edge_index",   "edge_weight", "x",         "x_data",     "x_indices",
      "x_indptr",     "x_shape",     "y",         "train",      "val",
      "test",         "train_masks", "val_masks", "test_masks", "graph_id",
      "format",       "shape",       "indptr",    "indices",    "data",
      "original_ids", "src_li",      "dst_li",    "num_nodes",  "tag",
      "src",          "dst",         "row",       "col",        "label_sets",
      "edge_attr",    "labels",      "valid_mask"};
  static const char* const kTypes[] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1",
                                       "<u4", "<u8", "<f4", "<f8", "|S3"};
  static const char* const kForms[] = {"csr", "csc", "coo", "bsr"};
  const std::string name = kNames[choose.next() % std::size(kNames)];
  if (name == "format")
    return {.name = "format.npy",
            .data = plait::file_of(plait::dictionary("|S3", "()"),
                                   kForms[choose.next() % std::size(kForms)])};
  const std::string type = kTypes[choose.next() % std::size(kTypes)];
  const std::size_t rank = choose.next() % 4;
  std::size_t count = 1;
  std::string shape = "(";
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t extent = choose.next() % 9;
    shape += std::to_string(extent) + ",";
    count *= extent;
  }
  std::string data;
  const auto width = static_cast<std::size_t>(type[2] - '0');
  for (std::size_t i = 0; i < count; ++i) {
    // Fills in small numbers, or the same byte throughout, which is a negative or a very large
    // number.
    const auto value = static_cast<char>(choose.next());
    data += std::string(1, value) + std::string(width - 1, value < 0 ? value : '\0');
  }
  return {
      .name = name + ".npy",
      .data = plait::file_of(
          plait::dictionary(type, shape + ")", choose.next() % 8 == 7 ? "True" : "False"), data)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(data, size);
  plait::Chooser choose(data, size);
  std::vector<plait::ZipMember> members;
  while (choose.more() && members.size() < 16) members.push_back(choose_member(choose));
  const std::string archive = plait::zip_of(members);
  read(archive.data(), archive.size());
  return 0;
}
