"""Tests of the Python package."""

import sys

from built_package import FOLDER

if FOLDER:
    sys.path.insert(0, FOLDER)
