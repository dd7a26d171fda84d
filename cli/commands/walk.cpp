// plait walk GRAPH: random walks, whose starts ranks share.
#include <memory>

#include "cli/commands/app_output.h"
#include "cli/ranks.h"
#include "plait/apps/rows.h"
#include "plait/apps/walk_verifier.h"
#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/io/vertex_list.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph, starts;
  AnswerOptions answer;
  WalkSettings walk{.length = 10};
  std::uint64_t walks = 1;
  bool weighted = false;
  StructurePlace structure = StructurePlace::automatic;
};

class WalkCommand {
 public:
  WalkCommand(const Options& o, World& world, const Session& session)
      : o_(o), world_(world), session_(session), dataset_(read_graph(world, o.graph, session)) {
    question_ = {.settings = o.walk,
                 .starts = {},
                 .vertices = dataset_.vertices(),
                 .walks = o.walks,
                 .key = walk_key(session.seed)};
    require<UsageError>(dataset_.vertices() > 0, "{} has no vertices to walk on", dataset_.name);
    if (o.weighted) require_weights(dataset_, "its edges can only be followed with equal chances");
    if (!o.starts.empty()) read_starts();
  }

  void run() {
    auto walks = in_phase("placing the graph", [&] {
      return std::make_unique<SpreadWalks>(world_, dataset_, o_.weighted, place());
    });
    walks->check(question_);
    in_phase("walking", [&] {
      first_run(*walks);
      for (int k = 1; k < o_.answer.repetitions; ++k)
        ms_.push_back(1e3 * walks->run(question_, nullptr));
    });
    if (world_.rank() == 0)
      print_report({.app = "walk",
                    .dataset = dataset_,
                    .partition = {},
                    .facts = facts(walks->totals()),
                    .ms = ms_,
                    .options = o_.answer},
                   world_, session_);
  }

 private:
  // Rank 0 reads the file, for all.
  void read_starts() {
    std::vector<std::uint64_t> starts;
    on_all_or_none(world_, [&] {
      if (world_.rank() == 0) starts = read_vertex_list(o_.starts, dataset_.vertices());
    });
    share_first_list(world_, starts);
    question_.starts = std::move(starts);
  }

  WalkPlace place() const {
    WalkPlace place{.gpu = session_.gpus > 0};
    if (o_.structure != StructurePlace::automatic)
      place.shared = o_.structure == StructurePlace::sharded;
    return place;
  }

  // Writes and checks walks while they are made: they need not fit in memory together.
  void first_run(SpreadWalks& walks) {
    std::optional<MatrixFile> file;
    std::optional<WalkVerifier> verifier;
    on_all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      if (!o_.answer.out.empty())
        file.emplace(o_.answer.out, question_.count(), question_.width(), "walk", "step");
      if (o_.answer.verify) verifier.emplace(dataset_, o_.weighted, question_);
    });
    TakeWalks take;
    if (!o_.answer.out.empty() || o_.answer.verify)
      take = [&](std::span<const std::int64_t> some) {
        if (verifier) timed("verify", [&] { verifier->check(some); });
        if (file) timed("write", [&] { file->write(some); });
      };
    ms_.push_back(1e3 * walks.run(question_, take));
    on_all_or_none(world_, [&] {
      if (verifier) verifier->check(walks.totals());
      if (file) file->commit();
    });
  }

  std::vector<AppFact> facts(const WalkTotals& totals) const {
    return {{"starts", question_.start_count()},
            {"walks", question_.count()},
            {"length", o_.walk.length},
            {"steps", totals.steps},
            {"stopped", totals.stopped}};
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  const Dataset dataset_;
  WalkQuestion question_;
  std::vector<double> ms_;  // of each repetition
};

void add_walk_options(CLI::App* command, Session& session, Options& o) {
  constexpr double kLeast = WalkSettings::kLeast, kMost = WalkSettings::kMost;
  command->add_option(
      "--starts", o.starts,
      "File with the vertices where walks begin, by the graph's own numbers from 0: "
      ".npy, or text with one per line; else every vertex, in order");
  command->add_option("--walks", o.walks, "Walks from each start")
      ->check(in_range(std::uint64_t{1}, std::uint64_t{1000000000}))
      ->capture_default_str();
  command->add_option("--length", o.walk.length, "Steps of a walk")
      ->check(in_range(std::uint64_t{1}, WalkSettings::kMostSteps))
      ->capture_default_str();
  command->add_flag("--weighted", o.weighted, "Follow edges in proportion to their weights");
  command
      ->add_option("--p", o.walk.p,
                   "node2vec: an edge back to the vertex before has the weight 1 / p")
      ->check(in_range(kLeast, kMost))
      ->capture_default_str();
  command
      ->add_option("--q", o.walk.q,
                   "node2vec: an edge to a vertex that has no edge to the one before has the "
                   "weight 1 / q")
      ->check(in_range(kLeast, kMost))
      ->capture_default_str();
  command
      ->add_option("--restart", o.walk.restart,
                   "Chance that a step leads back to the start instead, below 1")
      ->check(in_range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--seed", session.seed,
                   "Seed of the walks: those of plait.random_walk after torch.manual_seed")
      ->check(in_range(std::uint64_t{0}, std::uint64_t{0xffffffff}))
      ->capture_default_str();
}

}  // namespace

void add_walk(CLI::App& program, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      program, session, "walk",
      "Walk at random from vertices: a step follows an edge in its direction, and a walk stays "
      "where no edge leads on",
      [=, &session] {
        if (!o->answer.out.empty()) check_answer_file(o->answer.out);
        require<UsageError>(o->walk.restart < 1, "--restart is 1: no walk would leave its start");
        session.reaches_peers = o->structure == StructurePlace::sharded;
        on_ranks(session, [&](World& world) { WalkCommand(*o, world, session).run(); });
      });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  add_walk_options(command, session, *o);
  add_answer_options(
      command, session, o->answer,
      {.file = "File for the walks, a row of length + 1 vertices each, by the graph's own numbers: "
               ".npy, .csv or .txt",
       .verified = "Check each step by the graph, on one process; a wrong one exits with 3",
       .repeated = "Times that all walks are made on the placed graph, for their median time"});
  add_count_options(command, session);
  add_choice(command, "--structure", o->structure, parse_structure, "auto",
             "Graph on GPUs: a copy on each, or shared out over them; auto: a copy on each if it "
             "fits");
  add_timeout_options(command, session);
  add_profile_options(command, session);
  std::vector<std::string> asked{"--starts", "--walks", "--length",  "--weighted",
                                 "--p",      "--q",     "--restart", "--seed"};
  asked.insert(asked.end(), kAnswerOptions.begin(), kAnswerOptions.end());
  group_options(command, {{"Question and answer", asked}, {"GPUs and ranks", {"--structure"}}});
  add_examples(command,
               "  plait walk cora.plait --length 20 --walks 5 -o walks.npy\n"
               "  plait walk cora.plait --p 0.25 --q 4 --starts seeds.txt -o walks.txt --verify\n"
               "  plait walk products.plait --gpus 4 --walks 10 --length 80 -o walks.npy");
}

}  // namespace plait::cli
