// Communities of high modularity, each of which is connected, by the Leiden method (Traag, Waltman
// and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific
// Reports 9, 2019): as Louvain (louvain.h), but only connected parts of communities become the
// vertices of the next graph, which move on from the communities that the parts come from.
//
// A part grows from vertices that are alone and join the part of a neighbour where modularity gains
// the most (MoveRules::within), without the chance by which the paper's parts are drawn. At the
// end, communities that are not connected fall into those of their parts that are.
#pragma once

#include "plait/apps/louvain.h"

namespace plait {

template <class Operators>
class Leiden : public Louvain<Operators> {
 public:
  explicit Leiden(const Operators& on) : Louvain<Operators>(on, true) {}
};

}  // namespace plait
