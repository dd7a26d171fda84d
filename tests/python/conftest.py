"""Tests of the Python package, as the build leaves it; PLAIT_PYTHON names another folder that holds
it, or is empty for the package that is installed."""

import os
import pathlib
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = os.environ.get("PLAIT_PYTHON", str(CHECKOUT / "build/python"))
if FOLDER:
    sys.path.insert(0, FOLDER)
