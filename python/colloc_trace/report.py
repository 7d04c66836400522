# SPDX-License-Identifier: Apache-2.0
"""The report of an import: jobs kept and skipped, and why."""

import json
import re
import sys
from typing import Any

from colloc_bench.text import print_error
from colloc_trace.jobs import LEFT_OUT_TEXTS, MIG, Counts, Jobs

EXPONENT = re.compile(r"([0-9]e[+-])0([0-9])")  # jansson writes 4e-5, where Python writes 4e-05


def _rounded(value: Any) -> Any:
    """Numbers with 15 digits, as those of colloc's programs in C."""
    if isinstance(value, dict):
        return {key: _rounded(of) for key, of in value.items()}
    if isinstance(value, list):
        return [_rounded(of) for of in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def print_json(value: Any) -> None:
    """Prints to standard output."""
    text = json.dumps(_rounded(value), indent=2)
    sys.stdout.write(EXPONENT.sub(r"\1\2", text) + "\n")
    sys.stdout.flush()


def report_kept(name: str, counts: Counts, kept: Jobs, as_json: bool) -> None:
    """On standard error, or as JSON on standard output."""
    left_out = {text: n for text, n in zip(LEFT_OUT_TEXTS, counts.left_out) if n}
    if as_json:
        print_json({"read": counts.read, "kept": len(kept), "left_out": left_out})
        return
    print_error(f"{name}: {counts.read} jobs read, {len(kept)} kept")
    for text, n in left_out.items():
        print_error(f"  skipped: {n} {text}")
    # Jobs without a GPU to themselves look like jobs of whole GPUs in the table of sizes.
    mig = sum(bool(flags & MIG) for flags in kept.flags)
    others = sum(part > 0 and not flags & MIG for part, flags in zip(kept.part, kept.flags))
    if mig:
        print_error(f"  {mig} had instances of MIG: each is its compute slices of 7, not a GPU")
    if others:
        print_error(f"  {others} requested parts of GPUs that others may share")
