#!/bin/sh
# Trains four models on one graph and compares them on one page: sh examples/compare_models.sh [FOLDER]
set -eu
PLAIT=${PLAIT:-$(dirname "$0")/../build/bin/plait}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

"$PLAIT" generate dcsbm --vertices 2000 --edges 40000 --seed 1 -o "$out/graph.plait"
for model in mlp gcn sage gat; do
  "$PLAIT" train "$out/graph.plait" --model "$model" --epochs 60 --json >"$out/$model.json"
done
"$PLAIT" report "$out/mlp.json" "$out/gcn.json" "$out/sage.json" "$out/gat.json" \
  -o "$out/comparison.html"
