"""Runs the program plait, or another one of this build, for benchmarks. What it writes to stderr stays visible; if it
fails, this process ends with its exit code, as shells tell it, and a line that names the command."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLAIT = os.environ.get("PLAIT_PROGRAM", str(ROOT / "build/bin/plait"))


def output_of(*arguments, program=PLAIT, threads=None):
    """Returns what the program prints. `threads`: those of each process, instead of the environment's."""
    words = [str(word) for word in (program, *arguments)]
    env = os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=env)
    code = done.returncode
    if code != 0:
        how = f"was ended by signal {-code}" if code < 0 else "failed"
        print(f"{pathlib.Path(sys.argv[0]).stem}: {pathlib.Path(program).name} {words[1]} {how}", file=sys.stderr)
        sys.exit(128 - code if code < 0 else code)
    return done.stdout


def result_of(*arguments, **how):
    """Returns the object that a command of plait prints. `how`: as output_of()."""
    return json.loads(output_of(*arguments, "--json", "--quiet", **how))
