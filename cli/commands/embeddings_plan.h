// plait plan --store --embeddings: the memory of embedding tables over ranks.
#pragma once

#include "cli/cli.h"
#include "plait/embedding/embedding_memory.h"

namespace plait::cli {

// The values of --embeddings, --dtype, --ids, --samples, --split and --optimizer.
struct EmbeddingsOptions {
  std::vector<std::uint64_t> rows;      // by table
  DType type = DType::f32;              // of all tables
  std::vector<double> ids;              // per sample, by table; none: 1
  std::uint64_t samples = 2048;         // of each rank in a step
  std::optional<EmbeddingSplit> split;  // of all tables; none: chosen by table
  RowRule rule = RowRule::adagrad;
};
void add_embeddings_options(CLI::App* command, EmbeddingsOptions& options);

// Prints the account, and throws DoesNotFitError if it does not fit.
void plan_embedding_tables(const EmbeddingsOptions& options, const Session& session,
                           std::uint64_t width);

}  // namespace plait::cli
