# SPDX-License-Identifier: Apache-2.0
"""What the trial of other authors' scripts changes in their processes (script_trial.py).

Nothing here changes how a script trains. Data sets of torchvision and PyTorch Geometric are made
up, because nothing can be downloaded; packages that only log or deliver data have a stand-in
(the folder standins), where the machine does not have the real one; and on the GPU the process ends
once each optimizer has made its steps.

    COLLOC_TRIAL_DATA     the folder that script_data.py has made
    COLLOC_TRIAL_STEPS    steps of each optimizer until the process ends; without it: to the end
    COLLOC_TRIAL_SECONDS  from then on three steps are enough
    COLLOC_TRIAL_REPORT   a file for what PyTorch's allocator says at the end
"""
import contextlib
import importlib.util
import json
import multiprocessing
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STANDINS = os.path.join(HERE, "standins")
FEWEST_STEPS = 3
MIB = 1 << 20


# ---- data ----


def use_images_that_are_here():
    """Data sets of torchvision without their checksums and downloads, in the trial's folder."""
    from torchvision import datasets

    data = os.environ["COLLOC_TRIAL_DATA"]
    datasets.MNIST.raw_folder = property(lambda self: os.path.join(data, "MNIST", "raw"))
    datasets.MNIST._check_exists = lambda self: True
    datasets.MNIST.download = lambda self: None
    for kind in (datasets.CIFAR10, datasets.CIFAR100):
        kind.base_folder = os.path.join(data, kind.base_folder)
        kind.meta = {**kind.meta, "md5": None}
        kind._check_integrity = lambda self: True
        kind.download = lambda self: None


def use_graphs_that_are_made_up():
    """The data sets of PyTorch Geometric that scripts of the trial name."""
    import made_graphs

    made_graphs.replace_data_sets()


# ---- imports ----


def _is_missing(package):
    return importlib.util.find_spec(package) is None


class _Finder:
    """Calls a function after a module was imported, and puts a writer in TensorBoard's place."""

    def __init__(self, calls):
        self._calls = calls

    def find_spec(self, name, path=None, target=None):
        if name == "torch.utils.tensorboard" and _is_missing("tensorboard"):
            place = os.path.join(STANDINS, "tensorboard_writer.py")
            return importlib.util.spec_from_file_location(name, place)
        call = self._calls.pop(name, None)
        if call is None:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec), None)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                call()

            spec.loader.exec_module = exec_module
        return spec


# ---- the end ----


class _Steps:
    """Counts the steps of each optimizer, and backward passes of a loop without one."""

    def __init__(self, most):
        self._most, self._steps, self._backwards = most, {}, 0

    def begin(self, optimizer):
        self._steps[id(optimizer)] = 0

    def step(self, optimizer):
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1

    def backward(self):
        self._backwards += 1

    def made(self):
        """The fewest of an optimizer; one that hardly steps does not hold the others up."""
        counts = self._steps.values() or [self._backwards]
        return max(min(counts), max(counts) // 6)

    def are_enough(self):
        return self.made() >= self._most


def _report(steps):
    import torch

    place = os.environ.get("COLLOC_TRIAL_REPORT")
    if not place or not torch.cuda.is_initialized():
        return
    peaks = {
        "reserved_mib": torch.cuda.max_memory_reserved() / MIB,
        "allocated_mib": torch.cuda.max_memory_allocated() / MIB,
        "steps": steps.made(),
        "benchmark": torch.backends.cudnn.benchmark,
    }
    with open(f"{place}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(peaks, file)
    os.replace(f"{place}.{os.getpid()}", place)


def _end_process(steps):
    import torch

    with contextlib.suppress(Exception):
        torch.cuda.synchronize()
    time.sleep(0.15)  # for the poll of the other process
    _report(steps)
    for worker in multiprocessing.active_children():  # a fork keeps the GPU's memory in use
        worker.kill()
        worker.join()
    os._exit(0)


def _end_after(seconds, steps):
    def wait():
        time.sleep(seconds)
        while steps.made() < FEWEST_STEPS:
            time.sleep(0.2)
        _end_process(steps)

    threading.Thread(target=wait, daemon=True).start()


def count_steps():
    """Ends this process once each optimizer has made its steps, or the loop as many by hand."""
    import torch

    steps = _Steps(int(os.environ["COLLOC_TRIAL_STEPS"]))
    initialize, backward = torch.optim.Optimizer.__init__, torch.autograd.backward

    def initialized(optimizer, *args, **kwargs):
        initialize(optimizer, *args, **kwargs)
        steps.begin(optimizer)
        step = type(optimizer).step

        def stepped(self, *args, **kwargs):
            result = step(self, *args, **kwargs)
            steps.step(self)
            if steps.are_enough():
                _end_process(steps)
            return result

        if not getattr(step, "_trial", False):
            stepped._trial = True
            stepped.__name__ = "step"
            type(optimizer).step = stepped

    def ran(*args, **kwargs):
        backward(*args, **kwargs)
        steps.backward()
        if not steps._steps and steps.are_enough():
            _end_process(steps)

    torch.optim.Optimizer.__init__, torch.autograd.backward = initialized, ran
    _end_after(float(os.environ.get("COLLOC_TRIAL_SECONDS", "12")), steps)


# ---- together ----


def install():
    """For this process, before or after it has imported PyTorch."""
    if STANDINS not in sys.path:
        sys.path.append(STANDINS)  # last: a real package comes first
    calls = {}
    if os.environ.get("COLLOC_TRIAL_DATA"):
        calls["torchvision.datasets"] = use_images_that_are_here
        calls["torch_geometric.datasets"] = use_graphs_that_are_made_up
    if os.environ.get("COLLOC_TRIAL_STEPS"):
        calls["torch"] = count_steps
    for name in [name for name in calls if name in sys.modules]:
        calls.pop(name)()
    sys.meta_path.insert(0, _Finder(calls))
