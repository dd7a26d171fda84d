"""Spreads a model and a graph from one process over all ranks.

    model, data = plait.parallelize(model, data)
    loss = plait.mean(F.cross_entropy(out[mask], y[mask], reduction="none"))

See docs/parallel.md. All ranks hold the same weights; each holds the rows of its own nodes. Within
the model's computation, weights are replaced by shared ones (plait.reduce), dropout is drawn by
node (plait._spread.dropout), and layers that look at other nodes are Plait's (plait._spread.replace) or get the rows
of other ranks (plait._spread.conv).
"""

import contextlib
import copy
import functools
import types

import torch

from plait._devices import is_capturing
from plait._draws import StepCounter
from plait._library import ops
from plait._made_classes import derived
from plait._spread.checkpointing import checkpointing_refused
from plait._spread.choice import choose
from plait._spread.dropout import VertexDropout
from plait._spread.layer_advice import device_of, layer_advice, require_sums
from plait._spread.pooling import find_pooling, pooling_refused
from plait._spread.replace import is_left_alone, replace_layers
from plait.graph import Graph
from plait.reduce import of_all_ranks
from plait.spread import spread_by
from plait.world import require_equal, world_size


def parallelize(model, data, *, methods=("forward",), partition=None, strategy=None, reorder=None, wire=None,
                strict=True):
    """Spreads the model and the data over the ranks: the processes that torchrun, mpirun or srun has started,
    or those of the default process group of torch.distributed.

    Collective. Every rank passes the same whole graph and the same model, whose weights become
    those of rank 0. It also works on one rank, with the same results.

    Args:
        model: a torch.nn.Module. It is changed in place: layers of torch_geometric.nn become those of
            plait.nn where these are fast; all other layers of message passing compute by their own
            code, with rows that are brought from other ranks; batch norms cover the rows of all ranks.
            Parameters and their names stay.
        data: torch_geometric.data.Data, or another object with edge_index, x, y and masks; or a
            plait.Graph. It is not changed.
        methods: the methods of the model that are called from outside. Calls of other methods that
            use weights are refused on several ranks.
        partition, strategy: as in plait.Graph. None: the fastest that `plait tune` measured on this graph
            for layers as wide as the model's, else "edges", and on GPUs the strategy and the partition
            that are predicted to be the fastest. plait.advise says which, and why. A plait.Graph keeps those that it
            has, or is in use with: others are a ValueError.
        reorder: as in plait.Graph: the order of nodes in which operations work and ranks get their nodes. Rows
            of data and results, and ids, keep the caller's order. None: that of a plait.Graph, else "none".
        wire: as in plait.Graph: "bf16" halves the bytes that sums bring from other GPUs and hosts, and rounds what
            crosses, forward and backward; it is refused for a model whose layers make no such sums. None: "fp32",
            or that of a plait.Graph. Nothing but this argument chooses "bf16".
        strict: True: an error names layers and attributes that would need rows of other ranks.
            False: a warning names them, and such attributes are left out.

    Returns:
        model: the same object. It takes and returns own rows; gradients are summed over ranks. Its state_dict has
            the names of before. A pickle of it, as torch.save makes one, is the model for one process.
        data: a copy with the rows of this rank's own nodes; data.edge_index is a plait.Graph.

    Raises ValueError if ranks pass different models or graphs, and NotImplementedError for layers
    that cannot be spread; both on every rank.
    """
    def choice(graph):
        way = strategy, partition, graph.wire, graph.reorder
        return choose(graph, layer_advice(model), device_of(model), None, way).layout

    data = spread_by(data, (partition, strategy, reorder, wire), strict, choice)
    if data.edge_index.wire != "fp32":
        require_sums(model, data.edge_index.wire)
    spread_parts = [name for name, part in model.named_modules()
                    if isinstance(getattr(part, "_ranks", None), _Ranks)]
    if spread_parts:
        which = spread_parts[0]
        raise ValueError(f"{f'the part {which} of ' if which else ''}the model is spread already; spread "
                         "the outermost model alone, and further graphs by plait.spread")
    replace_layers(model, strict)
    find_pooling()
    _equalize(model)
    model._ranks = _Ranks(data.edge_index)
    model.__class__ = _spread_class(type(model), tuple(methods))
    for name in methods:
        if name in vars(model):  # as torch_geometric.nn.Sequential has its forward
            model._ranks.own_methods[name] = vars(model)[name]
            setattr(model, name, types.MethodType(_spread_method(_unbound(vars(model)[name], model)), model))
    return model, data


def _unbound(method, model):
    """Returns a function of the model for the object that stands in a method's place in the model itself."""
    if isinstance(method, types.MethodType) and method.__self__ is model:
        return method.__func__
    return lambda self, *args, **kwargs: method(*args, **kwargs)


def _equalize(model):
    """Copies the parameters and buffers of rank 0 to all ranks."""
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            raise ValueError(
                f"{name} has no shape yet; give the layer its in_channels instead of -1"
            )
        if isinstance(tensor, torch.nn.Parameter) and tensor.dtype != torch.float32:
            raise ValueError(f"{name} holds {tensor.dtype}; only float32 is supported yet")
    shapes = {name: f"{t.dtype}{list(t.shape)}" for name, t in tensors.items()}
    shapes["the devices"] = ", ".join(sorted({t.device.type for t in tensors.values()}))
    require_equal("models", {"the model": type(model).__name__, **shapes})
    if world_size() == 1:
        return
    with torch.no_grad():
        for tensor in tensors.values():
            ops.wait_for(tensor)
            values = tensor.detach().cpu().contiguous()
            ops.broadcast_(values, 0)
            tensor.copy_(values)


class ModelCalls:
    """Counts the calls of a spread model in one world: by its ranks together, or by one of them alone. What all ranks
    do at a call follows from counts that are the same on each, so calls of one rank alone have counts of their own.

    Attributes:
        steps: the StepCounter of calls in training mode; dropout draws by its steps.
        compared: the number of calls in training with gradients; ranks compare their weights at some of these calls.
    """

    def __init__(self):
        self.steps, self.compared = StepCounter(), 0

    def catch_up(self, calls, compared):
        """Counts as the ranks do that have called the model most often, in all and with gradients."""
        self.steps.advance(calls - self.steps.calls)
        self.compared = compared


class _Ranks:
    """The state of a spread model besides its weights; copies of the model share the graph."""

    def __init__(self, graph):
        self.graph = graph
        self.own_methods = {}  # the methods that stand in the model itself, as they were
        self._size = world_size()
        self._together, self._apart = ModelCalls(), ModelCalls()  # by all ranks, and by this one within plait.alone()
        seed = torch.tensor([torch.initial_seed() & (1 << 63) - 1])
        ops.broadcast_(seed, 0)
        self.seed = int(seed)
        self._inside = False

    def __deepcopy__(self, memo):
        copied = object.__new__(_Ranks)
        counts = {name: copy.deepcopy(getattr(self, name)) for name in ("_together", "_apart")}
        copied.__dict__.update(self.__dict__, **counts, _inside=False)
        return copied

    def _calls(self):
        """Returns the ModelCalls of the world in which this process works now. Raises RuntimeError if the model was
        spread by this process alone, and several ranks work here: their weights are not known to be the same."""
        now = world_size()
        if now == self._size:
            return self._together
        if now > 1:
            raise RuntimeError(f"the model was spread where this process worked alone, but here {now} ranks work "
                               "together; call plait.parallelize outside of plait.alone()")
        return self._apart

    @contextlib.contextmanager
    def around(self, model, inputs):
        """Within this context, `model` computes on own rows of the graph among the inputs."""
        if self._inside:
            yield
            return
        self._inside = True
        try:
            calls = self._calls()
            if model.training:  # counted before anything can fail, on one rank perhaps: all then skip the same number
                calls.steps.advance()
                if torch.is_grad_enabled():
                    calls.compared += 1
                    _compare_state(model, calls)
            graph = next(filter(None, map(_graph_of, inputs)), self.graph)
            with (_shared_parameters(model),
                  VertexDropout(graph, self.seed, calls, is_apart=calls is self._apart),
                  checkpointing_refused(), pooling_refused()):
                yield
        except ValueError as error:
            raise _explained(error, model) from error.__cause__
        finally:
            self._inside = False


def _explained(error, model):
    """Returns the error, or a better one if a layer of PyTorch Geometric was given a plait.Graph."""
    if "MessagePassing.propagate" not in str(error):
        return error
    new = [name for name, part in model.named_modules() if is_left_alone(part)]
    return ValueError(f"{', '.join(new)}: layers that came into the model after plait.parallelize; make "
                      "them before") if new else error


def _compare_state(model, calls):
    """Raises ValueError, on every rank, if ranks have come to hold different weights, as after
    reset_parameters() or another step of the optimiser on one of them, or have made different numbers of calls. Reads
    the weights at calls 1, 2, 4, 8, 16, 32, 64, 96 and so on."""
    call = calls.compared
    if world_size() == 1 or is_capturing() or (call & (call - 1) and call % 32):
        return
    named = [(name, p) for name, p in model.named_parameters() if p.dtype == torch.float32]
    sums = torch.zeros(0, dtype=torch.int64)
    if named:  # sums of whole numbers, which have the same bits in any order
        sums = torch.stack([p.detach().view(torch.int32).sum() for _, p in named])
        ops.wait_for(sums)
    names = (f"the bits of {name}" for name, _ in named)
    require_equal("weights, for one has been changed alone",
                  {**dict(zip(names, sums.tolist())), "the number of calls in training": calls.steps.calls})


def _graph_of(value):
    value = getattr(value, "edge_index", None) if not isinstance(value, Graph) else value
    return value if isinstance(value, Graph) else None


def _spread_class(cls, methods):
    """Returns a subclass of the same name whose `methods` run within _Ranks.around. A pickle has the model as it
    was before."""
    wrapped = {name: _spread_method(getattr(cls, name)) for name in methods}

    def plain_state(self):
        state = {**self.__dict__, **self._ranks.own_methods}
        del state["_ranks"]
        return state

    return derived(cls, {"_plain_state": plain_state, **wrapped})


def _spread_method(inner):
    # A compiler cannot see into collective operations.
    @torch.compiler.disable
    @functools.wraps(inner)
    def method(self, *args, **kwargs):
        with self._ranks.around(self, (*args, *kwargs.values())):
            return inner(self, *args, **kwargs)

    return method


@contextlib.contextmanager
def _shared_parameters(model):
    """Within this context, of_all_ranks() gives the parameters of the model and its parts."""
    places = [
        (module._parameters, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None and parameter.requires_grad
    ]
    if world_size() == 1 or not torch.is_grad_enabled() or not places:
        yield
        return
    distinct = {id(parameter): parameter for _, _, parameter in places}
    frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    shared = dict(zip(distinct, of_all_ranks(distinct.values(), frozen)))
    try:
        for parameters, name, parameter in places:
            parameters[name] = shared[id(parameter)]
        yield
    finally:
        for parameters, name, parameter in places:
            parameters[name] = parameter
