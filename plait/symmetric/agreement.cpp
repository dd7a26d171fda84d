#include "plait/symmetric/agreement.h"

#include <algorithm>

#include "plait/base/failure.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

// Tells whether a text begins with a rank, "rank 3: ".
bool names_rank(std::string_view text) {
  constexpr std::string_view kRank = "rank ";
  return text.starts_with(kRank) && text.find_first_of("0123456789") == kRank.size();
}

}  // namespace

std::uint64_t agree_on_size(World& world, const std::function<MemoryRequest()>& ask,
                            const std::string& where, SizeRule rule) {
  const auto all = gather_found(world, ask);
  const MemoryRequest& mine = all[static_cast<std::size_t>(world.rank())];
  const std::uint64_t bytes = std::ranges::max(all, {}, &MemoryRequest::bytes).bytes;
  for (int rank = 0; rank < world.size(); ++rank) {
    const MemoryRequest& request = all[static_cast<std::size_t>(rank)];
    require_on_all<UsageError>(
        rule == SizeRule::largest || request.bytes == mine.bytes,
        "the symmetric heap needs the same size on every rank, but rank {} asks "
        "for {} bytes and rank {} for {}",
        world.number_of(world.rank()), mine.bytes, world.number_of(rank), request.bytes);
    require_on_all<DoesNotFitError>(
        bytes < request.available / request.sharers,
        "the symmetric heap needs {} on each of {} {} of {}, but only {} "
        "are free in all",
        format_bytes(bytes), request.sharers, request.sharers == 1 ? "rank" : "ranks", where,
        format_bytes(request.available));
  }
  return bytes;
}

std::string first_failure(World& world, const std::string& failure, FailureOf of) {
  // Texts are exchanged only where there is one.
  const auto failed = gather_values(world, !failure.empty());
  if (std::ranges::find(failed, true) == failed.end()) return {};
  const auto all = world.all_gather(std::as_bytes(std::span(failure.data(), failure.size())));
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto& text = all[static_cast<std::size_t>(rank)];
    const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
    if (text.empty()) continue;
    const bool of_host = of == FailureOf::host;
    if (!world.is_watched() || (of_host && names_rank(view))) return std::string(view);
    return fmt::format("{} {}: {}", of_host ? "on the host of rank" : "rank", world.number_of(rank),
                       view);
  }
  return {};
}

void agree_on_failure(World& world, const std::string& failure) {
  const std::string first = first_failure(world, failure);
  require_on_all<DoesNotFitError>(first.empty(), "{}", first);
}

Error error_in_flight() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return Error(failure.text, failure.code);
  } catch (...) {
    return Error("an error without a text");
  }
}

void agree_on_error(World& world, const std::optional<Error>& error, FailureOf of) {
  constexpr auto kNone = ExitCode::right;
  const auto codes = gather_values(world, error ? error->exit_code() : kNone);
  auto first = std::ranges::find_if(
      codes, [](ExitCode code) { return code != kNone && code != ExitCode::does_not_fit; });
  if (first == codes.end()) first = std::ranges::find(codes, ExitCode::does_not_fit);
  if (first == codes.end()) return;
  const bool own = first - codes.begin() == world.rank();
  const std::string text = first_failure(world, own ? error->what() : "", of);
  if (*first == ExitCode::usage) throw OnAllRanks<UsageError>(text);
  if (*first == ExitCode::does_not_fit) throw OnAllRanks<DoesNotFitError>(text);
  if (*first == ExitCode::interrupted) throw OnAllRanks<Interrupted>(text);
  throw OnAllRanks<Error>(Error(text, *first));
}

}  // namespace plait
