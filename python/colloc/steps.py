# SPDX-License-Identifier: Apache-2.0
"""Reports the steps of a training to the task that it runs in (docs/steps.md)."""
import ctypes

_report = None


def step(count=1):
    """Reports `count` more steps. Costs about a microsecond.

    Returns whether they are counted: False outside of a task, and in one without the preloaded
    library. It never raises for that, so that a script runs anywhere.
    """
    global _report
    if not isinstance(count, int) or count < 1:
        raise ValueError("count is %r: give a whole number from 1 on" % (count,))
    if _report is None:
        try:
            _report = ctypes.CDLL(None).colloc_step
            _report.argtypes = [ctypes.c_long]
        except AttributeError:
            _report = False
    return bool(_report) and _report(count) == 0
