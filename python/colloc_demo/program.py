# SPDX-License-Identifier: Apache-2.0
"""The life of a demo: a temporary folder, and no process that outlives it."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from colloc import DaemonError
from colloc_demo.server import PROGRAMS
from colloc_demo.trace import ROOT, TRACES, Trouble
from colloc_fit.options import positive


def adopt_orphans():
    """Makes this process the parent of orphaned descendants, so that it can end all of them."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                    yield int(name)
        except OSError:
            pass


def end_all_children():
    while True:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def read_options(parser, speed, result):
    """Those of every demo and of the parser; `result` is the default file in BUILD/demo."""
    build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
    parser.add_argument("--trace", default=os.path.join(TRACES, "philly-60.txt"))
    parser.add_argument(
        "--tasks", type=positive(int), help="replay only the first N tasks", metavar="N"
    )
    parser.add_argument(
        "--speed",
        type=positive(float),
        default=speed,
        help="emulated seconds in a second (default %(default)s)",
    )
    parser.add_argument("--build", type=os.path.abspath, default=build)
    parser.add_argument("--result", type=os.path.abspath, help=f"default: BUILD/demo/{result}")
    parser.add_argument("--keep", action="store_true", help="leave the servers' folders")
    options = parser.parse_args()
    options.result = options.result or os.path.join(options.build, "demo", result)
    return options


def check_programs(options, more=()):
    missing = [
        path
        for path in [*PROGRAMS.values(), *more]
        if not os.path.exists(os.path.join(options.build, path))
    ]
    if missing:
        raise Trouble(f"{options.build} has no {', '.join(missing)}: 'make' builds it")


def write_result(options, results):
    os.makedirs(os.path.dirname(options.result), exist_ok=True)
    with open(options.result, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
        file.write("\n")


def live(run, options):
    """Calls run(options, temporary folder). Returns the exit status, once all processes below this
    one have ended and the folder is gone."""
    folder = tempfile.mkdtemp(prefix="colloc-demo-")
    adopt_orphans()
    others = signal.SIGTERM, signal.SIGHUP
    for number in others:
        signal.signal(number, lambda *_: sys.exit(1))
    keep, status = options.keep, 0
    try:
        run(options, folder)
    except KeyboardInterrupt:
        status = 130
    except (Trouble, DaemonError, OSError, AssertionError, subprocess.SubprocessError) as error:
        sys.stdout.flush()
        print(f"\n{error}", file=sys.stderr)
        keep, status = bool(os.listdir(folder)), 1
        if keep:
            print(f"The logs are in {folder}", file=sys.stderr)
    finally:
        for number in (signal.SIGINT, *others):
            signal.signal(number, signal.SIG_IGN)
        end_all_children()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return status
