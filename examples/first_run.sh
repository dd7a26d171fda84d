#!/bin/sh
# Goes from a graph to accuracies: sh examples/first_run.sh [FOLDER]
set -eu
PLAIT=${PLAIT:-$(dirname "$0")/../build/bin/plait}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

# A graph with planted communities, in NumPy's format and converted to Plait's own, which is mapped
# into memory instead of parsed.
"$PLAIT" generate dcsbm --vertices 2000 --edges 40000 --seed 1 -o "$out/graph.npz"
"$PLAIT" convert "$out/graph.npz" "$out/graph.plait"
"$PLAIT" info "$out/graph.plait"

# The rows that two ranks would exchange and the memory that they need, before anything is allocated.
"$PLAIT" partition "$out/graph.plait" --ranks 2 --width 16
"$PLAIT" plan "$out/graph.plait" --ranks 2 --width 16 --train

# Train on two processes. Ctrl-C keeps the weights reached so far; --resume continues from them.
"$PLAIT" train "$out/graph.plait" --model gcn --ranks 2 --epochs 60 \
  --checkpoint "$out/gcn.safetensors" --json >"$out/gcn.json"

# Compute the class of every vertex with the weights of the best epoch.
"$PLAIT" infer "$out/graph.plait" --checkpoint "$out/gcn.safetensors" --classes \
  --out "$out/classes.npy"

# Put curves, time, bytes and memory on one page.
"$PLAIT" report "$out/gcn.json" -o "$out/report.html"
