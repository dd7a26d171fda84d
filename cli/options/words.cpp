// The words that options of an enumeration take.
#include <fmt/ranges.h>

#include "cli/cli.h"

namespace plait::cli {
namespace {

// The words of the values from 0 to the last.
template <class T>
std::string words_up_to(T last) {
  std::vector<std::string_view> words;
  for (int value = 0; value <= static_cast<int>(last); ++value)
    words.push_back(to_string(static_cast<T>(value)));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

CLI::Option* show_words(CLI::Option* option, const std::string& list) {
  std::string words;
  for (const char c : list)
    if (c != ' ') words += c;
  return option->type_name("TEXT:{" + words + "}");
}

std::string counted(std::uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string words_of(Strategy) { return words_up_to(Strategy::automatic); }
std::string words_of(PartitionScheme) { return words_up_to(partition_schemes().back()); }
std::string words_of(ReorderMethod) { return words_up_to(reorder_methods().back()); }
std::string words_of(DeviceTransport) { return words_up_to(DeviceTransport::nvshmem); }
std::string words_of(DType) { return words_up_to(DType::bf16); }
std::string words_of(NormKind) { return words_up_to(NormKind::layer); }
std::string words_of(MetricKind) { return words_up_to(MetricKind::micro_f1); }
std::string words_of(Pool) { return "sum, mean"; }
std::string words_of(StructurePlace) { return words_up_to(StructurePlace::sharded); }
std::string words_of(Precision) { return words_up_to(Precision::bf16); }
std::string words_of(FirstLine) { return words_up_to(FirstLine::skip); }
std::string words_of(Normalize) { return words_up_to(Normalize::none); }

}  // namespace plait::cli
