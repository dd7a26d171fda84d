#include "plait/nn/inference/placed_model.h"

#include <utility>

#include "plait/nn/operations/torch_device.h"

namespace plait {

PlacedModel::PlacedModel(World& world, const Dataset& dataset, const Partition& partition,
                         const Route& route, TrainedModel trained, TableSource made_rows)
    : model_(std::move(trained.model)),
      input_({dataset.features, std::move(made_rows)}, partition, world.rank(), trained.normalize,
             torch_device(route.gpu)) {
  ShardOptions shard_options = model_.shard_options();
  shard_options.transposed = false;
  graph_ = c10::make_intrusive<GraphHandle>(
      world, dataset.graph, dataset.symmetric, partition,
      ExchangeOptions{.route = route,
                      .shards = shard_options,
                      .max_width = model_.moved_width(input_.is_sparse())});
  set_ = graph_set_of(world, dataset, input_, torch_device(route.gpu));
}

torch::Tensor PlacedModel::scores() const {
  return model_.forward(input_, graph_, {}, false, set_ ? &*set_ : nullptr);
}

}  // namespace plait
