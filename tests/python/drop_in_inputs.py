"""A small graph between two sets of nodes, and functions that make layers, for the tables of
drop_in_cases.py."""

import copy

import torch

SOURCES, TARGETS, WIDTH, OTHER = 9, 5, 6, 3
torch.manual_seed(5)
# Both sets of nodes have nodes without edges; there are parallel edges and loops.
BOTH = torch.stack([torch.randint(0, SOURCES - 1, (30,)), torch.randint(0, TARGETS - 1, (30,))])
BOTH = torch.cat([BOTH, torch.tensor([[1, 1, 2], [2, 2, 2]])], 1)
BOTH = BOTH[:, BOTH[1].argsort(stable=True)]  # as some aggregations want it
EDGES = BOTH.size(1)
TURNED = BOTH.flip(0)  # to more nodes than it is from
X, X_TARGETS = torch.randn(SOURCES, WIDTH), torch.randn(TARGETS, WIDTH)
NARROW = torch.randn(TARGETS, OTHER)
STATIC = torch.randn(2, SOURCES, WIDTH)
WEIGHT, OF_EDGES = torch.rand(EDGES) + 0.5, torch.randn(EDGES, 4)
WIDE_OF_EDGES = torch.randn(EDGES, WIDTH)


def sparse(weighted=False, shape=(SOURCES, SOURCES)):
    """Returns adj_t, a row for each target, of the edges that are neither loops nor parallel."""
    single = BOTH[:, BOTH[0] != BOTH[1]].unique(dim=1)
    values = (WEIGHT if weighted else torch.ones(EDGES))[:single.size(1)]
    return torch.sparse_coo_tensor(single.flip(0), values, shape).coalesce()


def own_messages(layer):
    class Scaled(layer):
        def message(self, x_j):
            return 3 * x_j
    return Scaled(WIDTH, 4)


def mixed_in(layer):
    class Scaling:
        def message(self, x_j):
            return 3 * x_j

    class Scaled(Scaling, layer):
        pass
    return Scaled(WIDTH, 4)


def messages_of_one(layer):
    conv = layer(WIDTH, 4)
    conv.message = lambda x_j: 3 * x_j
    return conv


def hooked_aggregation(layer):
    conv = layer(WIDTH, 4, aggr=["sum", "std"])
    conv.aggr_module.aggrs[1].register_forward_hook(lambda module, given, out: 2 * out)
    return conv


def forward_of_one(layer):
    conv = layer(WIDTH, 4)
    forward = conv.lin_l.forward
    conv.lin_l.forward = lambda x: 2 * forward(x)
    return conv


def linear_with_bias(layer):
    conv = layer(WIDTH, 4)
    conv.lin = torch.nn.Linear(WIDTH, 4)
    return conv


def lazy_and_hooked(layer):
    conv = layer(-1, 4)
    calls = []
    conv.lin.register_forward_hook(lambda module, given, out: calls.append(1) or out * len(calls))
    return conv


def own_forward(layer):
    class Doubled(layer):
        def forward(self, x, edge_index):
            return 2 * super().forward(x, edge_index)
    return Doubled(WIDTH, 4)


def hooked(layer):
    conv = layer(WIDTH, 4)
    conv.register_message_forward_hook(lambda module, given, out: out + 1)
    return conv


def prelude_hooked(layer):
    conv = layer(WIDTH, 4)
    conv.register_forward_pre_hook(lambda module, given: (given[0] + 1, *given[1:]))
    return conv


def explained(layer):
    conv = layer(WIDTH, 4)
    conv.explain = True
    conv._edge_mask, conv._loop_mask = torch.rand(EDGES), BOTH[0] != BOTH[1]
    conv._apply_sigmoid = True
    return conv


def hooked_edges(layer):
    conv = layer(WIDTH, 4)
    conv.register_edge_update_forward_hook(lambda module, given, out: out / 2)
    return conv


def hooked_map_of_edges(layer):
    conv = layer(WIDTH, 4, heads=2, edge_dim=4)
    conv.lin_edge.register_forward_hook(lambda module, given, out: 2 * out)
    return conv


# PyTorch Geometric keeps what it reads of a class by the class's name: each has its own.
def own_attention(layer):
    class DoubledAttention(layer):
        def message(self, x_j, alpha):
            return 2 * x_j * alpha.unsqueeze(-1)
    return DoubledAttention(WIDTH, 4)


def own_forward_of_attention(layer):
    class DoubledResult(layer):
        def forward(self, x, edge_index):
            return 2 * super().forward(x, edge_index)
    return DoubledResult(WIDTH, 4)


def transformer(*args, **options):
    """Returns a function that makes a layer without a gradient of the keys' bias, on which the softmax does
    not depend: that gradient is rounding."""
    def make(layer):
        conv = layer(*args, **options)
        conv.lin_key.bias.requires_grad_(False)
        return conv
    return make


def double(*args):
    return lambda layer: layer(*args).double()


def evaluated(*args, **options):
    return lambda layer: layer(*args, **options).eval()


def of(*args, **options):
    """Returns a function that makes a layer, with modules of its own."""
    return lambda layer: layer(*copy.deepcopy(args), **copy.deepcopy(options))
