// Random numbers of training, keyed by what they are for rather than by when they are drawn: the
// same for every number of ranks, every partition and every thread count.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/random.h"

namespace plait {

// Dropout (Srivastava et al., 2014): element (vertex, column) of the input of `layer` in `epoch` is
// kept when its own number, uniform in [0, 1), is at least p; what is kept is divided by 1 - p.
//
// Encoding of the counter: low = global vertex; high = epoch (24 bits) | layer (8) | column / 4
// (32): one Philox block serves four columns.
class Dropout {
 public:
  // p in [0, 1). Throws UsageError otherwise.
  Dropout(std::uint64_t seed, float p);

  float p() const { return p_; }
  // row[c] *= kept(c) / (1 - p), for all columns of one row.
  void apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
             std::span<float> row) const;
  // The same for a row of which only some columns are stored, ascending; `values` are theirs.
  void apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
             std::span<const std::uint32_t> columns, std::span<float> values) const;

 private:
  float scale_of(std::uint32_t bits) const { return uniform_float(bits) >= p_ ? scale_ : 0.0f; }
  Philox philox_;
  float p_;
  float scale_;
};

// Glorot and Bengio (2010): uniform in +-sqrt(6 / (in + out)); values is out x in, row major.
// `tensor` numbers the weight among those of the model.
void glorot_uniform(std::uint64_t seed, std::uint32_t tensor, std::int64_t in, std::int64_t out,
                    std::span<float> values);

}  // namespace plait
