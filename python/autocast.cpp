// Under torch.autocast the operations compute in float32, as sums over neighbours do in PyTorch
// itself: tensors of bfloat16 or float16 are converted, and their gradients are converted back.
#include <ATen/autocast_mode.h>

#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;
using Graph = c10::intrusive_ptr<GraphHandle>;

constexpr char kAggregate[] = "plait::aggregate";
constexpr char kAttend[] = "plait::attend";
constexpr char kExtremum[] = "plait::extremum_of_neighbours";

template <class T>
const T& in_float32(const T& value) {
  return value;
}
Tensor in_float32(const Tensor& tensor) {
  return at::autocast::cached_cast(at::kFloat, tensor, tensor.device().type());
}

template <const char* Name, class Signature>
struct InFloat32;

template <const char* Name, class... Arguments>
struct InFloat32<Name, Tensor(Arguments...)> {
  static Tensor call(Arguments... arguments) {
    const c10::impl::ExcludeDispatchKeyGuard below(
        c10::DispatchKeySet({c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}));
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow(Name, "").typed<Tensor(Arguments...)>();
    return operation.call(in_float32(arguments)...);
  }
};

using OptionalScale = const OptionalTensor&;

void register_on(torch::Library& m) {
  register_graph_class();
  m.impl("aggregate", &InFloat32<kAggregate, Tensor(const Tensor&, const Graph&, bool,
                                                    OptionalScale, OptionalScale, bool)>::call);
  m.impl("attend", &InFloat32<kAttend, Tensor(const Tensor&, const Tensor&, const Graph&, double,
                                              double, std::int64_t, const OptionalTensor&)>::call);
  m.impl("extremum_of_neighbours",
         &InFloat32<kExtremum, Tensor(const Tensor&, const Graph&, bool)>::call);
}

}  // namespace

TORCH_LIBRARY_IMPL(plait, AutocastCPU, m) { register_on(m); }
TORCH_LIBRARY_IMPL(plait, AutocastCUDA, m) { register_on(m); }

}  // namespace plait
