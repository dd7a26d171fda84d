#!/bin/sh
# Computes means over neighbours on two ranks, without a model: sh examples/aggregate.sh [FOLDER]
# Needs python3 with NumPy, to make x and to check y.
set -eu
PLAIT=${PLAIT:-$(dirname "$0")/../build/bin/plait}
PYTHON=${PYTHON:-$(dirname "$0")/../.venv/bin/python}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

"$PLAIT" generate grid --rows 100 --columns 100 -o "$out/grid.plait"
"$PYTHON" -c 'import numpy, sys
x = numpy.arange(10000, dtype=numpy.float32).reshape(-1, 1)
numpy.save(sys.argv[1], x)' "$out/x.npy"
"$PLAIT" aggregate "$out/grid.plait" --features "$out/x.npy" --out "$out/y.npy" --op mean --ranks 2
# In a grid whose vertices are numbered row by row, the mean of the four neighbours is the
# vertex's own number.
"$PYTHON" -c 'import numpy, sys
x, y = (numpy.load(path).reshape(100, 100)[1:-1, 1:-1] for path in sys.argv[1:])
print("largest difference within the grid:", abs(x - y).max())
sys.exit(bool((x != y).any()))' "$out/x.npy" "$out/y.npy"
