// The world of this process: which ranks it has joined, and whether it works by itself for now.
//
// Python chooses (plait/world.py). Whoever calls an operation before Python has chosen joins the
// ranks that the environment names, or works alone if it names none.
#include <atomic>
#include <mutex>

#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/world/fail.h"
#include "plait/world/host.h"
#include "plait/world/join.h"
#include "plait/world/launch.h"
#include "python/operations.h"

namespace plait {
namespace {

std::mutex joining_mutex;  // held while the two below are made
std::atomic<World*> joined_world{nullptr};
std::unique_ptr<Rendezvous> served_store;   // of rank 0, until it joins
std::atomic<World*> chosen_world{nullptr};  // null: nobody has chosen yet

World& world_of_one() {
  static World& world = *World::alone().release();
  return world;
}

// A process joins once. The world is never destroyed.
void join_ranks(const WorldConfig& config) {
  const std::lock_guard lock(joining_mutex);
  require<UsageError>(joined_world == nullptr,
                      "this process has joined the ranks of another world already");
  joined_world = join_at(config, std::move(served_store)).release();
  chosen_world = joined_world.load();
}

WorldConfig config_of_rank(std::int64_t rank, std::int64_t size) {
  WorldConfig config;
  config.rank = static_cast<int>(rank);
  config.size = static_cast<int>(size);
  take_settings(config);
  return config;
}

}  // namespace

World& current_world() {
  if (World* const world = chosen_world) return *world;
  if (const auto config = world_from_environment())
    join_ranks(*config);
  else
    chosen_world = &world_of_one();
  return *chosen_world;
}

World& require_here(World& world, const char* what) {
  require<Error>(world.size() == 1 || &world == &current_world(),
                 "{} on {} ranks, but here this process works alone; leave plait.alone() before",
                 what, world.size());
  return world;
}

bool is_beside_ranks(const World& world) {
  const World* const joined = joined_world;
  return joined != nullptr && joined != &world;
}

namespace {

// Returns the rank and the size of the world that the environment names, and whether its launcher
// keeps the store; nothing if it names none.
std::vector<std::int64_t> named_world() {
  return with_python_errors([]() -> std::vector<std::int64_t> {
    const auto config = world_from_environment();
    if (!config) return {};
    return {config->rank, config->size, config->store_is_external ? 1 : 0};
  });
}

void join_named() {
  with_python_errors([] {
    const auto config = world_from_environment();
    require<UsageError>(config.has_value(), "the environment names no ranks");
    join_ranks(*config);
  });
}

// Opens the store that rank 0 keeps, where the hosts are that reach the host of that name. Returns
// its address, its port, and its secret if the others cannot find that in their environment.
std::tuple<std::string, std::int64_t, std::string> open_store(const std::string& towards,
                                                              std::int64_t port) {
  return with_python_errors([&] {
    WorldConfig config = config_of_rank(0, 2);
    const bool known = config.secret != Secret{};
    if (!known) config.secret = make_secret();
    config.master_address = local_address_towards(towards, static_cast<int>(port));
    const std::lock_guard lock(joining_mutex);
    served_store = Rendezvous::serve(rendezvous_address(config), config.listen_address);
    return std::tuple<std::string, std::int64_t, std::string>(
        config.master_address, served_store->port(), known ? "" : to_text(config.secret));
  });
}

// Joins the ranks whose store rank 0 keeps there; it has opened it already if there is a secret.
void join_at_store(std::int64_t rank, std::int64_t size, const std::string& address,
                   std::int64_t port, const std::string& secret) {
  with_python_errors([&] {
    WorldConfig config = config_of_rank(rank, size);
    config.master_address = address;
    config.master_port = static_cast<int>(port);
    if (!secret.empty()) config.secret = parse_secret(secret, "the text of rank 0");
    join_ranks(config);
  });
}

// From now on this process works by itself, or as the rank that it is.
void work_alone(bool alone) { chosen_world = alone ? &world_of_one() : joined_world.load(); }

std::int64_t rank() {
  return with_python_errors([] { return current_world().rank(); });
}

std::int64_t world_size() {
  return with_python_errors([] { return current_world().size(); });
}

// Returns the place of this process's tensors: its GPU, or the CPU if there is none. `rank`: its
// number among the ranks that share the hosts' GPUs equally, unless the environment tells; -1:
// none.
std::string device(std::int64_t rank) {
  return with_python_errors([&]() -> std::string {
    const int count = gpu_count();
    if (count == 0) return "cpu";
    const auto named = world_from_environment();
    if (named && (named->size > 1 || rank < 0))
      return fmt::format("cuda:{}", gpu_of_rank(*named, count));
    WorldConfig config;
    config.rank = static_cast<int>(rank);
    return fmt::format("cuda:{}", rank < 0 ? 0 : gpu_of_rank(config, count) % count);
  });
}

// Returns the error that a collective of the joined ranks would throw for a lost rank; empty if
// none is lost.
std::string loss() {
  try {
    if (World* const world = joined_world) world->check_alive();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("rank() -> int", &rank);
  m.def("world_size() -> int", &world_size);
  m.def("device(int rank=-1) -> str", &device);
  m.def("loss() -> str", &loss);
  m.def("fail(str reason) -> ()", &fail_world);
  m.def("leave() -> ()", &leave_world);
  m.def("host_identity() -> str", &host_identity);
  m.def("named_world() -> int[]", &named_world);
  m.def("join_named() -> ()", &join_named);
  m.def("open_store(str towards, int port) -> (str, int, str)", &open_store);
  m.def("join_at_store(int rank, int size, str address, int port, str secret) -> ()",
        &join_at_store);
  m.def("work_alone(bool alone) -> ()", &work_alone);
}

}  // namespace plait
