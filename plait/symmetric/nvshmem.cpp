#include "plait/symmetric/nvshmem.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "plait/base/error.h"
#include "plait/base/library.h"
#include "plait/base/setting.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

// NVSHMEM's interface, as far as it is used (version 3; nvshmemx_api.h). Each struct begins with
// the version of its layout, which is 1, in the upper half, and its size in the lower.
template <class T>
constexpr int layout_of() {
  return (1 << 16) + static_cast<int>(sizeof(T));
}

struct UniqueId {
  int layout = layout_of<UniqueId>();
  char bytes[124] = {};
};
struct UniqueIdArguments {
  int layout = layout_of<UniqueIdArguments>();
  UniqueId* id = nullptr;
  int rank = -1;
  int ranks = -1;
};
struct InitArguments {
  int layout = layout_of<InitArguments>();
  UniqueIdArguments unique_id;
  char reserved[96] = {};
};
struct InitAttributes {
  int layout = layout_of<InitAttributes>();
  void* mpi_communicator = nullptr;
  InitArguments arguments;
};
static_assert(sizeof(UniqueId) == 128 && offsetof(UniqueId, bytes) == 4);
static_assert(sizeof(UniqueIdArguments) == 24 && offsetof(UniqueIdArguments, id) == 8 &&
              offsetof(UniqueIdArguments, rank) == 16 && offsetof(UniqueIdArguments, ranks) == 20);
static_assert(sizeof(InitArguments) == 128 && offsetof(InitArguments, unique_id) == 8);
static_assert(sizeof(InitAttributes) == 144 && offsetof(InitAttributes, mpi_communicator) == 8 &&
              offsetof(InitAttributes, arguments) == 16);

constexpr unsigned kInitWithUniqueId = 1u << 3;  // NVSHMEMX_INIT_WITH_UNIQUEID
// NVSHMEM_STATUS_IS_INITIALIZED; above it are modes of ranks that share a GPU.
constexpr int kInitialized = 2;

struct Library {
  void (*version)(int*, int*, int*);
  int (*get_unique_id)(UniqueId*);
  int (*set_unique_id)(int, int, const UniqueId*, InitAttributes*);
  int (*init)(unsigned, InitAttributes*);
  int (*init_status)();
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*pointer)(const void*, int);
};

LibraryFunctions functions_of_library() {
  return {kNvshmem,
          "install the package nvidia-nvshmem-cu13, or use " + setting("transport", "cuda")};
}

const Library& library() {
  static const Library loaded = [] {
    const LibraryFunctions functions = functions_of_library();
    Library l{};
    functions.find(l.version, "nvshmemx_vendor_get_version_info");
    functions.find(l.get_unique_id, "nvshmemx_get_uniqueid");
    functions.find(l.set_unique_id, "nvshmemx_set_attr_uniqueid_args");
    functions.find(l.init, "nvshmemx_hostlib_init_attr");
    functions.find(l.init_status, "nvshmemx_init_status");
    functions.find(l.malloc, "nvshmem_malloc");
    functions.find(l.free, "nvshmem_free");
    functions.find(l.pointer, "nvshmem_ptr");
    return l;
  }();
  return loaded;
}

void set_environment(bool one_host) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 0); };
  set("NVSHMEM_DISABLE_NVLS", "1");
  set("NVSHMEM_DISABLE_NCCL", "1");
  // A transport's thread would still run when the process ends, in libraries that are closed
  // before.
  set("NVSHMEM_REMOTE_TRANSPORT", "none");
  set("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "1");
  if (one_host) set("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo");
}

// Makes, on the calling rank, the id that all ranks use to meet.
UniqueId new_unique_id() {
  UniqueId id;
  const int status = library().get_unique_id(&id);
  require(status == 0,
          "NVSHMEM finds no way for ranks to meet (status {}); its own message is above", status);
  return id;
}

// While it lives, text that is printed on stdout goes to stderr: NVSHMEM warns on stdout, which is
// for results.
class StdoutOnStderr {
 public:
  StdoutOnStderr() {
    std::fflush(stdout);
    stdout_ = ::dup(STDOUT_FILENO);
    if (stdout_ >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~StdoutOnStderr() {
    std::fflush(stdout);
    if (stdout_ < 0) return;
    ::dup2(stdout_, STDOUT_FILENO);
    ::close(stdout_);
  }
  StdoutOnStderr(const StdoutOnStderr&) = delete;
  StdoutOnStderr& operator=(const StdoutOnStderr&) = delete;

 private:
  int stdout_;
};

}  // namespace

Nvshmem& Nvshmem::join(World& world) {
  static std::unique_ptr<Nvshmem> joined;
  if (!joined)
    together(world, "while joining by NVSHMEM", [&] { joined.reset(new Nvshmem(world)); });
  require_on_all(joined->rank_ == world.rank() && joined->ranks_ == world.size(),
                 "this process has joined NVSHMEM as rank {} of {}, and cannot as rank {} of {}",
                 joined->rank_, joined->ranks_, world.rank(), world.size());
  return *joined;
}

Nvshmem::Nvshmem(World& world) : rank_(world.rank()), ranks_(world.size()) {
  const Phase phase("joining by NVSHMEM");
  const StdoutOnStderr redirection;
  set_environment(world.one_host());
  UniqueId id;
  const std::string mine = failure_of([&] {
    library();
    if (rank_ == 0) id = new_unique_id();
  });
  const std::string failure = first_failure(world, mine);
  require_on_all(failure.empty(), "{}", failure);
  world.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);

  const Library& l = library();
  InitAttributes attributes;
  l.set_unique_id(rank_, ranks_, &id, &attributes);
  const int status = l.init(kInitWithUniqueId, &attributes);
  // Without a GPU it reports success, and that it is not initialised.
  require(status == 0 && l.init_status() >= kInitialized,
          "rank {}: NVSHMEM cannot be initialised on this GPU (status {}, state {}); its own "
          "message is above; GPUs must reach each other directly; {} does without it",
          world.number_of(rank_), status, l.init_status(), setting("transport", "cuda"));
}

std::byte* Nvshmem::allocate(std::uint64_t bytes) {
  const StdoutOnStderr redirection;
  void* const memory = library().malloc(bytes);
  if (memory != nullptr) used_ += bytes;
  most_ = std::max(most_, used_);
  return static_cast<std::byte*>(memory);
}

void Nvshmem::free(std::byte* memory, std::uint64_t bytes) {
  const StdoutOnStderr redirection;
  library().free(memory);
  used_ -= bytes;
}

std::byte* Nvshmem::address(const std::byte* own, int rank) const {
  return static_cast<std::byte*>(library().pointer(own, rank));
}

void Nvshmem::prepare(void* module, std::string_view version) {
  require_same_nvshmem(version);
  int (*init)(void*) = nullptr;  // not among those of all runs: NVSHMEM has it since version 3.3
  functions_of_library().find(init, "nvshmemx_culibrary_init");
  const StdoutOnStderr redirection;
  const int status = init(module);
  require(status == 0,
          "NVSHMEM does not prepare its device functions (status {}); its own message is above; "
          "{} does without them",
          status, setting("read-with", "addresses"));
}

std::string nvshmem_version() {
  int major = 0, minor = 0, patch = 0;
  library().version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void require_same_nvshmem(std::string_view built) {
  const std::string here = nvshmem_version();
  require(built == here,
          "reads by NVSHMEM's device functions were built with NVSHMEM {}, but version {} is here; "
          "build Plait again with it, or use {}",
          built, here, setting("read-with", "addresses"));
}

}  // namespace plait
