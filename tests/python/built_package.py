"""The Python package under test: as the build leaves it; PLAIT_PYTHON names another folder that holds
it, or is empty for the package that is installed."""

import os
import pathlib

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = os.environ.get("PLAIT_PYTHON", str(CHECKOUT / "build/python"))
