# SPDX-License-Identifier: Apache-2.0
"""Puts everything in place once PyTorch is imported, and ends the process with a result."""
import gc
import os
import sys
import threading
import time

import torch

from colloc_export.cuda_rules import cuda_rules
from colloc_export.recurrent import flatten

from . import cuda_module, ending, fake_tensor, library_kernels, loaders, result
from . import several_gpus, training
from .device import Device, is_fake


PROGRESS_S = 1  # between two notes of the progress; chosen


def _write_result(seen, folder):
    seen.seen["inference"] = seen.is_inference()
    if seen.seen["inference"] and seen.batch is None:
        seen.batch = seen.batch_of_pass
    try:
        result.write(seen, folder)
    except Exception as error:
        ending.write(f"cannot describe the run: {ending.reason_of(error)}")


def _leave():
    """Ends the process at once: no code of the script runs any more."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end(folder):
    def end(seen):
        _write_result(seen, folder)
        _leave()

    return end


def _refuse(reason):
    ending.write(reason)
    _leave()


def _explain_end(seen, folder):
    """Of a script that ended by itself: None, and a result, where that can be; else the reason."""

    def explain():
        if not seen.is_inference():
            return seen.progress()
        _write_result(seen, folder)
        return None

    return explain


def _note_progress(seen, folder):
    """Leaves in the file `progress` what was seen so far, once a second."""
    path = os.path.join(folder, "progress")

    def run():
        while True:
            time.sleep(PROGRESS_S)
            try:
                with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
                    file.write(seen.counts() + "\n")
                os.replace(f"{path}.{os.getpid()}", path)
            except (OSError, RuntimeError):  # the folder is gone; a list changed meanwhile
                pass

    threading.Thread(target=run, name="colloc-progress", daemon=True).start()


def _patch_recurrent():
    flatten_parameters = torch.nn.RNNBase.flatten_parameters

    def flattened(module):
        if all(map(is_fake, module.parameters())):
            flatten(module)
        else:
            flatten_parameters(module)

    torch.nn.RNNBase.flatten_parameters = flattened


def _patch_distributions():
    """Their checks of samples would find values that are not known outside of the support."""
    torch.distributions.Distribution.set_default_validate_args(False)


def install(folder):
    """Follows this process from now on.

    folder: where the result goes
    """
    torch.set_num_threads(1)  # as in a loader's worker: on a busy machine threads only wait
    device = Device()
    seen = training.Training(device, _end(folder), _refuse)
    ending.explain_end_by(_explain_end(seen, folder))
    fake_tensor.patch(device)
    cuda_module.patch(device)
    several_gpus.patch(seen)
    training.patch(seen)
    loaders.patch(seen)
    library_kernels.patch(device.note)
    _patch_recurrent()
    _patch_distributions()
    rules = cuda_rules(device.operations.note_attention, seen.note_recurrent)
    rules.__enter__()
    device.__enter__()
    threading.current_thread()._colloc_kept = (rules, device)  # until the process ends
    gc.collect()
    _note_progress(seen, folder)
