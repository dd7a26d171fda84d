#!/bin/sh
# From a graph to accuracies: sh examples/first_run.sh [FOLDER]
set -eu
PLAIT=${PLAIT:-$(dirname "$0")/../build/bin/plait}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

# A graph with planted communities, as another tool would give it, and as Plait's own file, which is
# mapped into memory and not parsed again.
"$PLAIT" generate dcsbm --vertices 2000 --edges 40000 --seed 1 -o "$out/graph.npz"
"$PLAIT" convert "$out/graph.npz" "$out/graph.plait"
"$PLAIT" info "$out/graph.plait"

# What two ranks would exchange and hold, before anything is allocated.
"$PLAIT" partition "$out/graph.plait" --ranks 2 --dim 16
"$PLAIT" plan "$out/graph.plait" --ranks 2 --dim 16 --train

# Train on two processes. Ctrl-C would keep what was reached; --resume goes on from it.
"$PLAIT" train "$out/graph.plait" --model gcn --ranks 2 --epochs 60 \
  --checkpoint "$out/gcn.safetensors" --json >"$out/gcn.json"

# The class of every vertex, by the weights of the best epoch.
"$PLAIT" infer "$out/graph.plait" --checkpoint "$out/gcn.safetensors" --classes \
  --out "$out/classes.npy"

# Curves, time, bytes and memory on one page.
"$PLAIT" report "$out/gcn.json" -o "$out/report.html"
