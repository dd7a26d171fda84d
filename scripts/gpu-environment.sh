# The scripts that run on GPUs source this file, from the root of the checkout. It finds the programs: in
# build/gpu-bundle (or the folder BUNDLE), if scripts/gpu-bundle has made it, else in build/bin. It sets
#   bundled   yes, or nothing
#   bin       the folder of the programs
#   plait     the program plait
#   packages  the folder of the Python package, which need not be there
#   python    the Python that has torch: python3 beside a bundle, else the one of .venv
# With a bundle, programs load their libraries from there, from python3's torch, and from CUDA's folder.
# shellcheck shell=bash disable=SC2034
bin=${BUNDLE:-build/gpu-bundle}
if [[ -d $bin ]]; then
  bundled=yes bin=$(cd "$bin" && pwd) python=python3
  packages=$bin/python
  torch=$(python3 -c 'import importlib.util as u
found = u.find_spec("torch")
print(found.submodule_search_locations[0] if found else "")')
  export LD_LIBRARY_PATH=$bin:${torch:+$torch/lib:}/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
else
  bundled='' bin=$PWD/build/bin python=.venv/bin/python
  packages=$PWD/build/python
fi
plait=$bin/plait
