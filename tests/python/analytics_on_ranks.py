"""Ranks that ask questions of one graph: answers against those of one process, and refusals. Prints the facts."""

import json

import numpy as np
import torch

import plait

NODES = 83


def edges():
    draw = torch.Generator().manual_seed(5)
    return torch.randint(NODES, (2, 260), generator=draw), torch.rand(260, generator=draw)


QUESTIONS = (("bfs", {"source": 7}), ("components", {}), ("components", {"strong": True}), ("sssp", {"source": 7}),
             ("kcore", {}), ("pagerank", {"weighted": True}), ("pagerank", {"source": 3}), ("triangles", {}),
             ("louvain", {}), ("leiden", {"resolution": 2}))


def answers(**layout):
    """Yields the columns of all nodes and the facts of each question."""
    index, weight = edges()
    graph = plait.Graph(index, NODES, weight, **layout)
    for name, settings in QUESTIONS:
        result = getattr(plait, name)(graph, **settings)
        columns = [getattr(result, name) for name in result._fields if torch.is_tensor(getattr(result, name))]
        assert all(column.shape == (graph.num_own,) for column in columns)
        whole = [bits(graph, column) for column in columns]
        yield whole, [value for value in result if not torch.is_tensor(value)]


def bits(graph, column):
    """Returns the bits of the numbers of all nodes, as lists of four small ones that float32 keeps."""
    parts = torch.from_numpy(column.numpy().view(np.uint16).reshape(-1, 4).astype(np.float32))
    return graph.gather(parts).to(torch.int64).tolist()


def refuse(error, call, text):
    try:
        call()
    except error as found:
        assert text in str(found), found
    else:
        raise AssertionError(text)


def main():
    plait.init()
    here = [list(answers(partition="hash")), list(answers(partition="edges", reorder="rcm"))]
    with plait.alone():
        assert here == [list(answers())] * 2
    index, weight = edges()
    graph = plait.Graph(index, NODES, weight)
    rank = plait.rank()
    refuse(ValueError, lambda: plait.bfs(graph, source=rank), "ranks ask different questions")
    refuse(ValueError, lambda: (plait.bfs if rank else plait.components)(graph), "ranks ask different questions")
    refuse(ValueError, lambda: plait.bfs(graph, source=NODES), "is not in 0..82")
    print(json.dumps([facts for _, facts in answers()]))


main()
