# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start in every process of a script of the trial (script_hooks.py)."""
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import script_hooks  # noqa: E402  beside the folder of this file

script_hooks.install()
