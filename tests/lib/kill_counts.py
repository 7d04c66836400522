# SPDX-License-Identifier: Apache-2.0
"""What a campaign of kills did: one JSON line for each test, appended to $COLLOC_KILLS_FILE.

    with kill_counts.of(self, seed) as killed:
        killed["collocd"] += 1             # for each kill
        killed["helper", "copying"] += 1   # the same, where the phase is known
"""
import collections
import contextlib
import json
import os


@contextlib.contextmanager
def of(test, seed=None):
    """Counts kills by their victims. `has_held`: the test came to its end, so that all was as it
    must be after each of them."""
    killed, has_held = collections.Counter(), False
    try:
        yield killed
        has_held = True
    finally:
        path = os.environ.get("COLLOC_KILLS_FILE")
        if path:
            name = ".".join(test.id().split(".")[-2:])
            victims = collections.Counter()
            for kind, n in killed.items():
                victims[kind if isinstance(kind, str) else kind[0]] += n
            line = {"result": "emulated kills", "test": name, "killed": victims}
            phases = {" ".join(kind): n for kind, n in killed.items() if not isinstance(kind, str)}
            if phases:
                line["phases"] = phases
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps({**line, "seed": seed, "has_held": has_held}) + "\n")
