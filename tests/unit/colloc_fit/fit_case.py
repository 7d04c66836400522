# SPDX-License-Identifier: Apache-2.0
"""What the tests of python/colloc_fit share. Importing it skips the test where SciPy is missing."""
import importlib.util
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("COLLOC_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "python"))

if not importlib.util.find_spec("scipy"):
    print("skipped: no SciPy for this Python (scripts/install-deps report)")
    sys.exit(77)


main = unittest.main


class Point:
    """A run with features, as far as the learned correction looks at one."""

    def __init__(self, family, features, y, kind="real"):
        self.row = {"family": family, "kind": kind}
        self.features, self.y = features, y
