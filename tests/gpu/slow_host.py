"""Trains a spread model of PyTorch Geometric on GPUs and prints its losses and outputs as JSON; run as
the ranks of a world.

slow_host.py WHEN WHAT: rank 1 does WHAT (pause, for TEST_PAUSE seconds, or endless, a kernel that
never ends) WHEN: in `step`, between two training steps; in `evaluation`, before a forward pass without
gradients; in `checkpoint`, while others go on after one was written; or `never`."""

import json
import os
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from spread_cases import CLASSES, WIDTH, make_data

import plait


def disturb(what):
    if plait.rank() != 1:
        return
    if what == "endless":
        torch.cuda._sleep(1 << 62)  # cycles
    else:
        time.sleep(float(os.environ["TEST_PAUSE"]))


def main(when, what):
    device = torch.device("cuda", plait.rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    model, data = plait.parallelize(
        pyg.GCN(WIDTH, 16, num_layers=2, out_channels=CLASSES).to(device), make_data().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(8):
        if step == 3 and when == "step":
            disturb(what)
        optimizer.zero_grad()
        out = model.train()(data.x, data.edge_index)[data.train_mask]
        loss = plait.mean(F.cross_entropy(out, data.y[data.train_mask], reduction="none"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 3 and when == "checkpoint":
            model.state_dict()
            disturb(what)
    if when == "evaluation":
        disturb(what)
    with torch.no_grad():
        scores = model.eval()(data.x, data.edge_index)
    print(json.dumps({"losses": losses, "scores": scores.double().sum(0).tolist()}))
    plait.mean(scores)  # a rank that has printed its own does not leave the others


if __name__ == "__main__":
    main(*sys.argv[1:])
