"""The Python package under test, as the build leaves it. PLAIT_PYTHON names another folder with the
package, or is empty for the installed one."""

import os
import pathlib

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = os.environ.get("PLAIT_PYTHON", str(CHECKOUT / "build/python"))
