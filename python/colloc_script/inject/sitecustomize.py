# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start in every process of a followed script.

It imports the sitecustomize that it hides, waits for PyTorch to be imported, and reports a process
that ends without a result. Nothing here imports PyTorch.
"""
import importlib
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _is_launcher():
    with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as file:
        words = file.read().split("\0")[:-1]
    return importlib.import_module("colloc_script.launchers").is_launcher(words)


def _import_hidden():
    """Runs the sitecustomize of the system, such as Debian's."""
    rest = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _follow():
    importlib.import_module("colloc_script.follow").install(os.environ["COLLOC_SCRIPT_FOLDER"])


def _trace_nothing():
    """TensorBoard draws a model by tracing it, which has no meaning without data."""
    writer = sys.modules["torch.utils.tensorboard.writer"].SummaryWriter
    writer.add_graph = lambda *_, **__: None


if os.environ.get("COLLOC_SCRIPT_FOLDER"):
    try:
        _import_hidden()
    except Exception as error:  # as the interpreter itself treats it
        print(f"Error in sitecustomize; {type(error).__name__}: {error}", file=sys.stderr)
    if os.path.dirname(os.path.dirname(HERE)) not in sys.path:
        sys.path.append(os.path.dirname(os.path.dirname(HERE)))
    importlib.import_module("colloc_script.ending").watch(os.environ["COLLOC_SCRIPT_FOLDER"])
    if not _is_launcher():
        importlib.import_module("colloc_script.deepspeed_library").find()
        importlib.import_module("colloc_script.after_import").call(
            {"torch": _follow, "torch.utils.tensorboard.writer": _trace_nothing}
        )
