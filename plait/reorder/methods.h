// The methods behind the table of reorder.cpp, one file each. Internal to this room.
#pragma once

#include <cstdint>

#include "plait/reorder/reorder.h"

namespace plait {

// By descending number of edges at either end of a vertex; of equal ones, by id.
Reordering order_by_degree(const ReorderInput& input);

// By communities and, inside of each, by the smaller communities that it consists of.
//
// Label propagation (clusters.h) finds the smallest. These are merged as the Louvain method does
// (Blondel, Guillaume, Lambiotte and Lefebvre, "Fast unfolding of communities in large networks",
// Journal of Statistical Mechanics, 2008), level after level on the quotient graph, into a
// dendrogram, whose depth-first order is the result. Edges count, not their weights: a row that is
// read moves whole, whatever its weight. Label propagation looks at the row lists as they are, the
// rows that a vertex reads; the quotient graph counts an edge at both of its ends. Throws Error if
// there are 2^32 - 1 vertices or more.
Reordering order_by_communities(const ReorderInput& input);

// By reverse Cuthill-McKee (Cuthill and McKee, ACM National Conference, 1969; reversed: George,
// 1971), which makes the bandwidth small: breadth-first, neighbours by ascending degree, from a
// pseudo-peripheral vertex of each component (George and Liu, ACM Transactions on Mathematical
// Software 5, 1979). Edges count in both directions.
Reordering order_by_rcm(const ReorderInput& input);

// By first appearance in the list of edges (BOBA: Drescher, Awad, Porumbescu and Owens, 2022): here
// in the rows one after the other, then vertices that no row lists.
Reordering order_by_boba(const ReorderInput& input);

// By the parts into which METIS bisects the graph again and again: the halves of a part are
// neighbours in the order. Throws as partition_by_metis() of partition/partition.h.
Reordering order_by_metis(const ReorderInput& input);

}  // namespace plait
