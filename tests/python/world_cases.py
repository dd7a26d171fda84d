"""Processes that torchrun has not started, and processes that work by themselves. As a program, it runs the case of
the given name, whose processes print lines of JSON."""

import functools
import itertools
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import GCN

import plait
from ranks import free_port
from spread_cases import CLASSES, NODES, WIDTH, basic, error_of, make_data

STEPS = 3


def tell(**facts):
    os.write(1, (json.dumps(facts) + "\n").encode())


def trained(seed, steps=STEPS):
    """Trains a GCN whose first weights are those of the seed on rank 0; returns facts of it."""
    torch.manual_seed(seed)
    model, data = plait.parallelize(basic(GCN), make_data())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)[data.train_mask]
        loss = plait.mean(F.cross_entropy(out, data.y[data.train_mask], reduction="none"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"rank": plait.rank(), "ranks": plait.world_size(), "own": data.num_nodes, "losses": losses}


def join_group(rank, ranks, method):
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=ranks)


# --- processes ---


def spawned(rank, method):
    join_group(rank, 2, method)
    tell(**trained(rank))
    dist.destroy_process_group()


def after_work_alone(rank, method):
    """Plait is used before there is a group, which ends before the ranks do."""
    graph = plait.Graph(torch.tensor([[0, 1], [1, 2]]))
    before = plait.aggregate(graph, torch.eye(3)).sum().item(), plait.world_size()
    join_group(rank, 2, method)
    found = trained(rank)
    dist.destroy_process_group()
    plait.init()  # has no effect
    rows = plait.aggregate(graph, torch.ones(graph.num_own, 1))  # the same graph, now on two ranks
    tell(before=before, sum=plait.sum(rows).item(), **found)


def as_by_hand(rank, port):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo")
    tell(**trained(rank))


def with_other_environment(rank, method):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    join_group(rank, 2, method)
    said = error_of(plait.world_size)
    plait.init(dist.group.WORLD)
    tell(said=said, again=error_of(lambda: plait.init(dist.group.WORLD)), **trained(rank))


def with_a_part(rank, method):
    join_group(rank, 3, method)
    part = dist.new_group([0, 2])
    if rank == 1:
        said = error_of(lambda: plait.init(part))
        with plait.alone():
            tell(said=said, **trained(0))
    else:
        plait.init(part)
        tell(second=error_of(lambda: plait.init(dist.group.WORLD)), **trained(rank // 2))


def at_an_address(rank, port):
    bad = [error_of(functools.partial(plait.init, **given)) for given in (
        {"rank": rank}, {"rank": 2, "world_size": 2, "address": "localhost:1"},
        {"rank": 0, "world_size": 2, "address": "localhost"}, {"group": 3})]
    plait.init(rank=rank, world_size=2, address=f"127.0.0.1:{port}")
    with plait.alone():
        bad.append(error_of(plait.init))
    tell(bad=bad, **trained(rank))


def failing(rank, method):
    join_group(rank, 2, method)
    plait.init()
    if rank == 1:
        raise KeyError("no such thing")
    plait.sum(torch.ones(1))


def in_parallel(rank, method):
    """PyG's style: DistributedDataParallel, with a loader in each process."""
    join_group(rank, 2, method)
    plait.alone()
    data = make_data()
    seeds = torch.arange(24).chunk(2)[rank]
    for fanout, workers in itertools.product((3, -1), (0, 2)):
        torch.manual_seed(4)
        model = DistributedDataParallel(plait.nn.SAGEConv(WIDTH, CLASSES))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in plait.loader.NeighborLoader(data, [fanout], batch_size=4, input_nodes=seeds,
                                                 num_workers=workers):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            F.cross_entropy(out, batch.y[:batch.batch_size]).backward()
            optimizer.step()
        tell(fanout=fanout, workers=workers, ranks=plait.world_size(),
             weights=torch.cat([p.detach().flatten() for p in model.parameters()]).tolist())


def fork(process, *arguments, count=2):
    mp.start_processes(process, arguments, nprocs=count, start_method="fork")


def new_file():
    return f"file://{tempfile.mktemp()}"


# --- cases ---


def spawn():
    mp.spawn(spawned, (f"tcp://127.0.0.1:{free_port()}",), nprocs=2)


def threads():
    """The exchanges of one thread do not come into the midst of another's operation."""
    import threading
    import time

    plait.world_size()
    begun = threading.Event()
    index = torch.randint(40000, (2, 2_000_000), generator=torch.Generator().manual_seed(1))
    owners = torch.ops.plait.partition_of_ranges(torch.tensor([0, 20000, 40000]))

    def place():
        begun.set()
        handles.append(torch.ops.plait.graph_from_edges(index, 40000, None, False, 1.0, owners))

    handles, placing = [], threading.Thread(target=place)
    placing.start()
    begun.wait()
    time.sleep(0.2)
    totals = {plait.sum(torch.ones(3)).item() for _ in range(2000)}
    placing.join()
    tell(totals=[*totals], edges=handles[0].num_edges())


def own_graphs():
    """A graph in each process that torchrun has started, then one graph on all."""
    mine = int(os.environ["RANK"])
    with plait.alone():
        own = plait.Graph(torch.tensor([[0, 1, 2], [1, 2, 0]])[:, : 2 + mine], 3 + mine)
        sums = plait.aggregate(own, torch.ones(3 + mine, 1)).sum().item()
        alone = trained(mine)
        layer = plait.nn.GCNConv(WIDTH, 2)(make_data().x, make_data().edge_index).shape
    together = trained(mine)
    data = make_data()
    model, spread = plait.parallelize(GCN(WIDTH, 8, 2, CLASSES, norm="batch_norm"), data)
    scores = spread.edge_index.gather(model.eval()(spread.x, spread.edge_index))
    with plait.alone():  # the same model, on the whole graph
        whole = model(data.x, plait.Graph(data.edge_index, NODES))
        close = bool(torch.allclose(whole, scores, atol=1e-5))
    loss = plait.mean(model.train()(spread.x, spread.edge_index))
    with plait.alone():
        said = error_of(loss.backward)
    tell(sums=sums, alone=alone, layer=[*layer], together=together, close=close, said=said)


CASES = {
    "spawn": spawn,
    "after_work_alone": lambda: fork(after_work_alone, new_file()),
    "as_by_hand": lambda: fork(as_by_hand, free_port()),
    "with_other_environment": lambda: fork(with_other_environment, new_file()),
    "with_a_part": lambda: fork(with_a_part, new_file(), count=3),
    "at_an_address": lambda: fork(at_an_address, free_port()),
    "failing": lambda: fork(failing, new_file()),
    "in_parallel": lambda: fork(in_parallel, new_file()),
    "threads": threads,
    "own_graphs": own_graphs,
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
