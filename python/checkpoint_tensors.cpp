// Files of named arrays (io/safetensors.h), which checkpoints are, as operations.
#include <algorithm>

#include "plait/io/safetensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;
using Texts = c10::Dict<std::string, std::string>;
using Tensors = c10::Dict<std::string, Tensor>;

std::tuple<Texts, Tensors> read_tensors(const std::string& path) {
  check_path(path);
  const TensorFile file = with_python_errors([&] { return read_safetensors(path); });
  Texts metadata;
  for (const auto& [key, value] : file.metadata) metadata.insert(key, value);
  Tensors tensors;
  for (const NamedTensor& array : file.tensors) {
    Tensor tensor = torch::empty(array.shape, torch::kFloat32);
    std::ranges::copy(array.values, tensor.mutable_data_ptr<float>());
    tensors.insert(array.name, tensor);
  }
  return {metadata, tensors};
}

// Takes float32 tensors on the CPU alone. The file appears whole, or stays as it was.
void write_tensors(const std::string& path, const Texts& metadata, const Tensors& tensors) {
  check_path(path);
  TensorFile file;
  for (const auto& entry : metadata) file.metadata.emplace(entry.key(), entry.value());
  for (const auto& entry : tensors) {
    const std::string name = entry.key();
    check_dense(entry.value(), name.c_str(), torch::kCPU, "a file's content");
    const Tensor flat = entry.value().detach().contiguous();
    Buffer<float> values(static_cast<std::size_t>(flat.numel()));
    std::copy_n(flat.const_data_ptr<float>(), values.size(), values.data());
    file.tensors.push_back({name, flat.sizes().vec(), std::move(values)});
  }
  with_python_errors([&] { write_safetensors(file, path); });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("read_tensors(str path) -> (Dict(str, str), Dict(str, Tensor))", &read_tensors);
  m.def("write_tensors(str path, Dict(str, str) metadata, Dict(str, Tensor) tensors) -> ()",
        &write_tensors);
}

}  // namespace plait
