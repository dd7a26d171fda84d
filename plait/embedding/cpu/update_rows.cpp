// A thread takes blocks of rows. The rule is chosen outside of the loop over a row, and the
// compiler vectorises this loop.
#include "plait/base/names.h"
#include "plait/base/parallel.h"
#include "plait/embedding/row_update.h"

namespace plait {
namespace {

constexpr Names<RowRule, 3> kRules{"optimizer", {"sgd", "adagrad", "adam"}};

}  // namespace

RowRule parse_row_rule(std::string_view name) { return kRules.parse(name); }
std::string_view to_string(RowRule rule) { return kRules.of(rule); }

void update_rows(const RowUpdate& update) {
  constexpr std::size_t kGrain = 64;  // rows of a block
  const auto change = [&]<class T>(T, auto rule) {
    parallel_blocks(update.count, kGrain, [&](std::size_t begin, std::size_t end) {
      RowUpdate u = update;  // of this block: the compiler sees that nothing else changes it
      u.rule = decltype(rule)::value;
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint64_t first = static_cast<std::uint64_t>(u.rows[i]) * u.width;
        for (std::uint64_t k = 0; k < u.width; ++k)
          update_number<T>(u, first + k, u.gradients[i * u.width + k]);
      }
    });
  };
  const auto with_rule = [&](auto rule) {
    with_number(update.type, [&]<class T>(T number) { change(number, rule); });
  };
  switch (update.rule) {
    case RowRule::sgd:
      return with_rule(std::integral_constant<RowRule, RowRule::sgd>{});
    case RowRule::adagrad:
      return with_rule(std::integral_constant<RowRule, RowRule::adagrad>{});
    case RowRule::adam:
      return with_rule(std::integral_constant<RowRule, RowRule::adam>{});
  }
}

}  // namespace plait
