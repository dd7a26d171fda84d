// Replaces the folders cuda/ of the rooms of plait_core in a build without CUDA: there are no GPUs,
// and every function that would run on one throws UsageError.
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/setting.h"
#include "plait/kernels/cuda/dropout.h"
#include "plait/kernels/cuda/edge_values.h"
#include "plait/kernels/cuda/get_module.h"
#include "plait/kernels/cuda/get_occupancy.h"
#include "plait/kernels/cuda/padded_copy.h"
#include "plait/kernels/cuda/sparse.h"
#include "plait/kernels/word_hash.h"
#include "plait/reorder/cuda/community_order.h"
#include "plait/sample/cuda/columns.h"
#include "plait/sample/cuda/eligible_edges.h"
#include "plait/sample/cuda/layer_edges.h"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/cuda/non_edges.h"
#include "plait/sample/cuda/walks.h"
#include "plait/table/cuda/gather_rows.h"

namespace plait {

// --- base/gpu.h ---

bool built_with_cuda() { return false; }
int gpu_count() { return 0; }
std::vector<Gpu> list_gpus() { return {}; }
void use_gpu(int) {
  throw UsageError("this build has no GPU engine; build it where nvcc is found, or use " +
                   setting("ranks"));
}
int current_gpu() { return 0; }
std::uint64_t gpu_free_memory(std::uint64_t) { return 0; }
std::uint64_t gpu_used_memory() { return 0; }
GpuId current_gpu_id() { return {}; }
int gpu_of(const GpuId&) { return -1; }
std::string current_gpu_name() { return {}; }
bool gpu_reaches(const GpuId&) { return true; }
std::string gpu_kernel_fault(int) { return "this build has no GPU engine"; }
void release_gpu_caches() {}
void set_gpu_cache_release(void (*)()) {}
void wait_for_gpu() {}

// --- kernels ---

std::span<const std::byte> get_module_image() { return {}; }
std::string_view nvshmem_of_build() { return {}; }
void require_get_module() { use_gpu(0); }
GetOccupancy get_occupancy(const GetTuning&, std::uint64_t) {
  use_gpu(0);
  return {};
}

void gpu_drop_rows(const DropoutStep&, const DropoutRows&, void*) { use_gpu(0); }
void gpu_drop_relu_gradient(const DropReluGradient&, void*) { use_gpu(0); }
void gpu_copy_padded(std::span<const PaddedCopy>, void*) { use_gpu(0); }

struct GpuSparse::Arrays {};

GpuSparse::GpuSparse(const Csr32&, std::uint64_t) { use_gpu(0); }
GpuSparse::~GpuSparse() = default;
std::uint64_t GpuSparse::rows() const { return 0; }
std::uint64_t GpuSparse::scratch(std::uint64_t) const { return 0; }
void GpuSparse::multiply(const GpuProduct&, void*) const {}
void GpuSparse::drop(const DropoutStep&, const std::uint64_t*, const float*, float*, void*) const {}

struct GpuEdgeGroups::Groups {};

GpuEdgeGroups::GpuEdgeGroups(const EdgeOffset*, std::uint64_t, EdgeOffset, void*) { use_gpu(0); }
GpuEdgeGroups::~GpuEdgeGroups() = default;
std::uint64_t GpuEdgeGroups::scratch_of_sums(std::uint64_t) const { return 0; }
std::uint64_t GpuEdgeGroups::scratch_of_softmax(std::uint64_t) const { return 0; }
void GpuEdgeGroups::scores(const EdgeValues&, float*, void*) const {}
void GpuEdgeGroups::sums(const EdgeValues&, float*, float*, void*) const {}
void GpuEdgeGroups::rows(const EdgeValues&, float*, void*) const {}
void GpuEdgeGroups::softmax(const EdgeSoftmax&, float*, float*, void*) const {}

WordHash gpu_hash_words(std::span<const std::byte>, void*) {
  use_gpu(0);
  return {};
}

// --- reorder ---

Reordering gpu_order_by_communities(const ReorderInput&) {
  use_gpu(0);
  return {};
}

// --- table ---

void gpu_gather_rows(const GatherRows&, void*) { use_gpu(0); }
void gpu_gather_rows(const GatherRows&, const GatherDropout&, void*) { use_gpu(0); }

struct GpuOrderedSums::Memory {};

GpuOrderedSums::GpuOrderedSums() { use_gpu(0); }
GpuOrderedSums::~GpuOrderedSums() = default;
void GpuOrderedSums::add(const AddRows&, void*) {}

// --- sample ---

struct GpuGraph::Arrays {
  GpuCsr csr;
};

GpuGraph::GpuGraph(const AnyCsr&) { use_gpu(0); }
GpuGraph::~GpuGraph() = default;
const GpuCsr& GpuGraph::csr() const { return arrays_->csr; }

struct GpuSampleBuffers::Memory {
  GpuSample sample;
};

GpuSampleBuffers::GpuSampleBuffers() { use_gpu(0); }
GpuSampleBuffers::~GpuSampleBuffers() = default;

GpuNeighbourSampler::GpuNeighbourSampler(const GpuCsr&, SampleSettings, const GpuSampleValues&) {
  use_gpu(0);
}
void GpuNeighbourSampler::enqueue(std::span<const std::uint64_t>, std::uint64_t, GpuSampleBuffers&,
                                  void*, std::span<const std::int64_t>, std::uint32_t) const {}
void GpuNeighbourSampler::enqueue(const GpuSeeds&, std::uint64_t, GpuSampleBuffers&, void*) const {}
void GpuNeighbourSampler::enqueue_hop(std::size_t, std::span<const std::uint64_t>, std::uint64_t,
                                      GpuSampleBuffers&, void*) const {}
const GpuSample& GpuNeighbourSampler::wait(GpuSampleBuffers& buffers) const {
  return buffers.memory().sample;
}

Sample to_host(const GpuSample&) { return {}; }

void gpu_write_columns(const GpuSample&, const SampleColumns&, void*) { use_gpu(0); }
void gpu_layer_edges(const LayerEdges&, void*) { use_gpu(0); }
void gpu_eligible_edges(const GpuCsr&, const GpuSampleValues&, const GpuHopByValues&,
                        const EligibleArrays&, void*) {
  use_gpu(0);
}

struct GpuNonEdges::Arrays {};

GpuNonEdges::GpuNonEdges(const NonEdges&) { use_gpu(0); }
GpuNonEdges::~GpuNonEdges() = default;
void GpuNonEdges::draw(const Draw&, std::uint64_t*, std::uint64_t*, void*) const {}
void GpuNonEdges::draw_columns(const std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t*,
                               void*) const {}

struct GpuRandomWalks::State {};

GpuRandomWalks::GpuRandomWalks(const GpuCsr&, const RandomWalks&) { use_gpu(0); }
GpuRandomWalks::GpuRandomWalks(const GpuCsr&, const RandomWalks&, const double*) { use_gpu(0); }
GpuRandomWalks::~GpuRandomWalks() = default;
void GpuRandomWalks::enqueue(const WalkSettings&, const std::uint64_t*, std::uint64_t,
                             std::uint64_t, std::uint64_t*, void*) const {}
RawVector<std::uint64_t> GpuRandomWalks::walk(const WalkSettings&, std::span<const std::uint64_t>,
                                              std::uint64_t) const {
  return {};
}

}  // namespace plait
